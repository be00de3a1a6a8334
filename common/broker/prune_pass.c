#include "config.h"

#include "common/broker/prune_pass.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/protocol/wire.h"
#include "common/sandbox/state/retention.h"
#include "common/sandbox/state/state.h"

#include <unistd.h>

#define BATCH 20 /* the main process has other things to do between two of them */

static int say(int fd, json_t *take_message, struct err *e)
{
    int result = wire_send(fd, take_message, -1, e);

    json_decref(take_message);
    return result;
}

static int propose(int fd, const struct retention_item *items, size_t n, struct err *e)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:I}", "name", items[i].name, "lastUsed",
                                              (json_int_t)items[i].last_used));
    return say(fd, json_pack("{s:o}", "purge", list), e);
}

static int look(const struct sandbox_root *root, int fd, int64_t now, struct err *e)
{
    const int64_t slack = state_fresh_s(root);
    AUTO_RETENTION struct retention all = RETENTION_INIT;

    if (retention_gather(root, &all, e) < 0)
        return -1;
    size_t gone = retention_plan(&all, &root->bounds, slack, now);
    for (size_t i = 0; i < gone; i += BATCH)
        if (propose(fd, all.items + i, gone - i < BATCH ? gone - i : BATCH, e) < 0)
            return -1;
    int64_t next = retention_next_s(&all, gone, &root->bounds, slack, now);
    return say(fd, json_pack("{s:I}", "next", (json_int_t)next), e);
}

void retention_pass(const struct sandbox_root *root, int fd)
{
    struct err e = ERR_INIT;
    int64_t now = clock_unix_s();

    (void)!nice(10);
    if (look(root, fd, now, &e) < 0)
        log_warn("what is kept could not be looked through: %s", e.text);
    json_auto_t *end = wire_recv(fd, NULL, DEADLINE_NEVER, &e);
    state_tidy(root, now);
}
