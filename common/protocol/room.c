#include "config.h"

#include "common/protocol/room.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/protocol/wire.h"

#define ANSWER_MS 30000 /* of the main process, which may be busy */

int room_ask(int fd, json_t *take_message, struct err *e)
{
    json_auto_t *message = take_message;

    if (wire_send(fd, message, -1, e) < 0)
        return -1;
    json_auto_t *answer = wire_recv(fd, NULL, deadline_in_ms(ANSWER_MS), e);
    const json_t *error = json_object_get(answer, "error");
    if (!answer)
        return -1;
    return error ? wire_error_take(error, e) : 0;
}

int room_keep(int fd, uint64_t bytes, uint64_t there, struct err *e)
{
    return room_ask(
        fd, json_pack("{s:I, s:I}", "bytes", (json_int_t)bytes, "there", (json_int_t)there), e);
}

void room_land(int fd, uint64_t bytes)
{
    struct err e = ERR_INIT;

    if (room_ask(fd, json_pack("{s:I}", "landed", (json_int_t)bytes), &e) < 0)
        log_debug("%s", e.text);
}
