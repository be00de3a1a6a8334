#include "config.h"

#include "common/broker/reattach.h"

#include "common/base/log.h"
#include "common/records/psandbox_record.h"
#include "common/records/run_lock.h"
#include "common/rpc/json.h"

#define CHECK_MS 1000
#define YOUNG_MS 10000

void reattach_await(struct reattach *r)
{
    r->check = deadline_min(r->check, deadline_in_ms(CHECK_MS));
}

/* Unless it has ended, is among the children already, or its record makes no sense. */
static void expect(void *ctx, const char *run_id, const json_t *record)
{
    struct reattach *r = ctx;

    if (children_find_id(r->spawner->children, run_id))
        return;
    if (json_get_integer(record, "endedAt", 0) > 0 || !run_lock_reap(r->spawner->root->fd, run_id))
        return;
    struct child *child = spawn_adopt_row(r->spawner, CHILD_PSANDBOX, run_id, record);
    if (!child)
        return;
    child->reattaching = true;
    reattach_await(r);
}

void reattach_look(struct reattach *r)
{
    struct err e = ERR_INIT;

    if (!deadline_passed(r->young) && psandbox_record_each(r->spawner->root, expect, r, &e) < 0)
        log_warn("cannot list the persistent sandboxes of the broker before: %s", e.text);
}

void reattach_settle(struct reattach *r, struct child *child)
{
    child->reattaching = false;
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
    bool missing = false;

    if (!deadline_passed(r->check))
        return;
    r->check = DEADLINE_NEVER;
    for (struct child *c = NULL, *next = children_next(r->spawner->children, NULL); (c = next);) {
        next = children_next(r->spawner->children, c);
        if (!c->reattaching)
            continue;
        /* One that has ended instead: its record tells its callers. SIGCHLD tells of our own. */
        if (c->pid > 0 || run_lock_reap(r->spawner->root->fd, c->run_id)) {
            missing = true;
            continue;
        }
        reattach_settle(r, c);
        children_remove(r->spawner->children, c);
    }
    if (missing)
        reattach_await(r);
}
