#include "config.h"

#include "common/base/log.h"
#include "common/broker/broker.h"
#include "common/rpc/json.h"

#include <fcntl.h>
#include <unistd.h>

static void start(struct broker *b, const struct pool_wish *wish, const char *spare,
                  const char *box)
{
    const struct birth birth = {.runner = wish->runner, .spare = spare, .box = box};
    struct err e = ERR_INIT;
    if (birth_supervisor(b, &birth, &e))
        return;
    log_error("%s", e.text);
    pool_note_failed_start(b->pool, wish->runner->language, clock_mono_ms());
    if (spare)
        spare_remove(&b->root, spare);
}

static void start_spare(struct broker *b, const struct pool_wish *wish)
{
    struct err e = ERR_INIT;
    char name[SPARE_NAME_LEN + 1];
    if (spare_make(&b->root, name, &e) == 0) {
        start(b, wish, name, NULL);
        return;
    }
    log_error("no directory for a container that waits: %s", e.text);
    pool_note_failed_start(b->pool, wish->runner->language, clock_mono_ms());
}

static void start_box(struct broker *b, const struct pool_wish *wish)
{
    if (faccessat(b->root.fd, wish->box, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        start(b, wish, NULL, wish->box);
    else
        pool_forget_box(b->pool, wish->box);
}

static void preload(struct broker *b, const struct pool_wish *wish)
{
    struct err e = ERR_INIT;
    (void)b;
    wish->child->preload_asked = true;
    if (child_tell(wish->child, "preload", &e) < 0)
        log_debug("a container that waited is gone: %s", e.text);
}

static void end(struct broker *b, const struct pool_wish *wish)
{
    supervisors_dismiss(b, wish->child);
}

static void (*const carry_out[])(struct broker *b, const struct pool_wish *wish) = {
    [POOL_START_SPARE] = start_spare,
    [POOL_START_BOX] = start_box,
    [POOL_PRELOAD] = preload,
    [POOL_END] = end,
};

static bool is_start(enum pool_do what)
{
    return what == POOL_START_SPARE || what == POOL_START_BOX;
}

void warm_turn(struct broker *b)
{
    int64_t now_ms = clock_mono_ms(), at_ms = -1;
    const struct pool_now now = {
        .now_ms = now_ms,
        .runners = &b->keeper.runners,
        .engine_ok = !*b->keeper.trouble,
        .machine_idle = idle_is(&b->idle, now_ms),
        .waiting_callers = claims_waiting(b),
    };
    struct pool_wish wish;
    while (pool_next(b->pool, b->children, &now, &wish, &at_ms)) {
        carry_out[wish.what](b, &wish);
        if (is_start(wish.what)) { /* that took a moment: callers first */
            b->pool_at = deadline_in_ms(0);
            return;
        }
    }
    b->pool_at = at_ms < 0 ? DEADLINE_NEVER : (struct deadline){.at_ms = at_ms};
}

void warm_note_upload(struct broker *b, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *conversation = json_get_string(head, "conversation");
    struct err e = ERR_INIT;
    char box[SANDBOX_NAME_LEN + 1];
    /* What is wrong with the head, the job tells its asker. */
    if (tenant && conversation && sandbox_name(&b->root, tenant, conversation, box, &e) == 0)
        pool_note_upload(b->pool, box, clock_mono_ms());
}

void warm_end(struct broker *b)
{
    for (struct child *c = NULL; (c = children_next(b->children, c));)
        if (c->kind == CHILD_SUPERVISOR && !c->claimed && c->channel >= 0)
            supervisors_dismiss(b, c);
}
