#include "config.h"

#include "common/protocol/reply.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/protocol/wire.h"

#include <sys/socket.h>

void reply_send(int take_fd, json_t *take_reply)
{
    struct err e = ERR_INIT;

    if (wire_post(take_fd, take_reply, -1, &e) < 0)
        log_debug("the caller left before the answer: %s", e.text);
    json_decref(take_reply);
    shutdown(take_fd, SHUT_RDWR);
    auto_close_fd(&take_fd);
}

void reply_send_error(int take_fd, const struct err *why)
{
    reply_send(take_fd, wire_error_new(why));
}
