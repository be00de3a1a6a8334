#include "config.h"

#include "common/supervisor/psandbox_self.h"

#include "common/base/log.h"
#include "common/base/sock.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define REDIAL_MS  200
#define MESSAGE_MS 1000 /* for the rest of a message whose beginning is there */

static void heed(struct psandbox *s, const json_t *message, int take_fd)
{
    AUTO_FD int connection = take_fd;
    const char *what = json_get_string(message, "do");

    if (what && strcmp(what, "hand") == 0 && connection >= 0)
        psandbox_take(s, json_object_get(message, "head"), TAKE_FD(connection));
    else if (what && strcmp(what, "end") == 0)
        s->ending = true;
}

static void lose_channel(struct psandbox *s)
{
    epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, s->channel, NULL);
    auto_close_fd(&s->channel);
    if (s->ending || s->stop)
        return;
    s->orphan = deadline_in_ms(PSANDBOX_ORPHAN_MS);
    s->redial = deadline_in_ms(REDIAL_MS);
}

void psandbox_hear_channel(struct psandbox *s)
{
    struct err e = ERR_INIT;
    int connection = -1;
    json_auto_t *message = wire_recv(s->channel, &connection, deadline_in_ms(MESSAGE_MS), &e);

    if (message)
        heed(s, message, connection);
    else
        lose_channel(s);
}

void psandbox_say_ended(const struct psandbox *s)
{
    struct err e = ERR_INIT;
    json_auto_t *word = json_pack("{s:s}", "is", "ended");

    if (s->channel >= 0 && wire_post(s->channel, word, -1, &e) < 0)
        log_debug("the broker does not listen: %s", e.text);
}

void psandbox_close_channel(struct psandbox *s)
{
    if (s->channel < 0)
        return;
    /* From now on whoever wants to hand something over is told that we are gone. */
    shutdown(s->channel, SHUT_RD);
    while (s->channel >= 0)
        psandbox_hear_channel(s);
}

/* ---- the next main process ---- */

void psandbox_redial(struct psandbox *s)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = s};
    struct err e = ERR_INIT;

    AUTO_FD int fd = broker_address_dial(&s->home);
    json_auto_t *head = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:b}", "op",
                                  op_name(OP_ADOPT_PSANDBOX), "runId", s->start->run_id, "tenant",
                                  s->tenant, "conversationId", s->conversation, "language",
                                  s->language ? s->language : "", "session", s->keeps_variables,
                                  "network", json_get_bool(s->start->head, "network", 0));
    if (fd < 0 || wire_post(fd, head, -1, &e) < 0 ||
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        s->redial = deadline_in_ms(REDIAL_MS);
        return;
    }
    s->channel = TAKE_FD(fd);
    s->redial = s->orphan = DEADLINE_NEVER;
}
