#include "config.h"

#include "common/broker/reattach.h"

#include "common/base/log.h"
#include "common/records/psandbox_record.h"
#include "common/records/run_lock.h"
#include "common/rpc/json.h"

#include <string.h>

#define CHECK_MS 1000
#define YOUNG_MS 10000

static struct child *find_reattaching(const struct reattach *r, const char *run_id)
{
    struct child *c = NULL;

    while ((c = children_next(r->spawner->children, c)) &&
           !(c->reattaching && (!run_id || strcmp(c->run_id, run_id) == 0)))
        ;
    return c;
}

/* Unless it has ended, is among the children already, or its record makes no sense. */
static void expect(void *ctx, const char *run_id, const json_t *record)
{
    struct reattach *r = ctx;

    for (const struct child *c = NULL; (c = children_next(r->spawner->children, c));)
        if (strcmp(c->run_id, run_id) == 0)
            return;
    if (json_get_integer(record, "endedAt", 0) > 0 || !run_lock_reap(r->spawner->root->fd, run_id))
        return;
    struct child *child = spawn_adopt_row(r->spawner, CHILD_PSANDBOX, run_id, record);
    if (!child)
        return;
    child->reattaching = true;
    r->check = deadline_min(r->check, deadline_in_ms(CHECK_MS));
}

void reattach_look(struct reattach *r)
{
    struct err e = ERR_INIT;

    if (!deadline_passed(r->young) && psandbox_record_each(r->spawner->root, expect, r, &e) < 0)
        log_warn("cannot list the persistent sandboxes of the broker before: %s", e.text);
}

void reattach_settle(struct reattach *r, const struct child *child)
{
    char run_id[RUN_ID_LEN + 1];

    memcpy(run_id, child->run_id, sizeof run_id);
    for (struct child *c; (c = find_reattaching(r, run_id));)
        children_remove(r->spawner->children, c);
    *r->settled = true;
}

/* ---- time ---- */

void reattach_init(struct reattach *r, const struct spawner *spawner, bool *settled)
{
    *r = (struct reattach){.spawner = spawner,
                           .settled = settled,
                           .check = DEADLINE_NEVER,
                           .young = deadline_in_ms(YOUNG_MS)};
    reattach_look(r);
}

void reattach_tick(struct reattach *r)
{
    /* Those that have ended instead of coming back: their records tell their callers. */
    for (struct child *c = NULL;
         deadline_passed(r->check) && (c = children_next(r->spawner->children, c));)
        if (c->reattaching && !run_lock_reap(r->spawner->root->fd, c->run_id)) {
            reattach_settle(r, c);
            c = NULL; /* rows have gone */
        }
    if (deadline_passed(r->check))
        r->check = find_reattaching(r, NULL) ? deadline_in_ms(CHECK_MS) : DEADLINE_NEVER;
}
