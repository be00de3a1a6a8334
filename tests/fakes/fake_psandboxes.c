/*
 * Persistent sandboxes without an engine: the place of common/supervisor/psandbox_main.c in tests
 * of the broker's main process. Each answers its creator with its id, everything that is handed
 * over with
 * {"by": its id, "op": …, "pid"}, and ends with close_psandbox or when it is told to; in the
 * conversation "lingers" not without a main process.
 */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/sock.h"
#include "common/protocol/run_id.h"
#include "common/protocol/wire.h"
#include "common/records/psandbox_record.h"
#include "common/rpc/json.h"
#include "common/supervisor/supervisor.h"

#include <string.h>
#include <sys/socket.h>

bool psandbox_session_known(const char *language)
{
    return strcmp(language, "python") == 0;
}

static void answer(const struct supervisor_start *start, int take_fd, const char *op)
{
    struct err e = ERR_INIT;
    char id[PSANDBOX_ID_LEN + 1];

    psandbox_id_write(start->container_id, id);
    json_auto_t *reply = wire_result_new(json_pack(
        "{s:s, s:s, s:i, s:s, s:s}", "by", id, "op", op, "pid", (int)getpid(), "sandboxId", id,
        "image", start->runner ? start->runner->image : json_get_string(start->head, "image")));
    wire_send(take_fd, reply, -1, &e);
    shutdown(take_fd, SHUT_RDWR);
    auto_close_fd(&take_fd);
}

/* false: it ends. */
static bool heed(const struct supervisor_start *start, int *last_fd, const char **last_op)
{
    struct err e = ERR_INIT;
    int connection = -1;
    json_auto_t *message = wire_recv(start->channel, &connection, DEADLINE_NEVER, &e);
    const json_t *head = json_object_get(message, "head");
    const char *op = json_get_string(head, "op");

    if (!message && strcmp(json_get_string(start->head, "conversationId"), "lingers") == 0)
        pause();
    if (!op)
        return false;
    if (strcmp(op, "close_psandbox") == 0) {
        *last_fd = connection;
        *last_op = "close_psandbox";
        return false;
    }
    answer(start, connection, op);
    return true;
}

void psandbox_main(const struct supervisor_start *start)
{
    json_auto_t *ended = json_pack("{s:s}", "is", "ended");
    const char *last_op = NULL;
    struct err e = ERR_INIT;
    int last_fd = -1;

    answer(start, start->connection, json_get_string(start->head, "op"));
    while (heed(start, &last_fd, &last_op))
        ;
    wire_send(start->channel, ended, -1, &e);
    if (last_fd >= 0)
        answer(start, last_fd, last_op);
    close(start->channel);
}
