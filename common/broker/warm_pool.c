#include "config.h"

#include "common/base/log.h"
#include "common/broker/broker.h"
#include "common/rpc/json.h"

#include <fcntl.h>
#include <unistd.h>

static void start(struct broker *b, const struct pool_action *action, const char *warm_dir,
                  const char *sandbox_dir)
{
    const struct spawn spawn = {
        .runner = action->runner, .warm_dir = warm_dir, .sandbox_dir = sandbox_dir};
    struct err e = ERR_INIT;
    if (spawn_supervisor(b, &spawn, &e))
        return;
    log_error("%s", e.text);
    pool_note_failed_start(b->pool, action->runner->language, clock_mono_ms());
    if (warm_dir)
        warm_dir_remove(&b->root, warm_dir);
}

static void start_on_warm_dir(struct broker *b, const struct pool_action *action)
{
    struct err e = ERR_INIT;
    char name[WARM_DIR_NAME_LEN + 1];
    if (warm_dir_make(&b->root, name, &e) == 0) {
        start(b, action, name, NULL);
        return;
    }
    log_error("no directory for a container that waits: %s", e.text);
    pool_note_failed_start(b->pool, action->runner->language, clock_mono_ms());
}

static void start_on_sandbox(struct broker *b, const struct pool_action *action)
{
    if (faccessat(b->root.fd, action->sandbox_dir, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        start(b, action, NULL, action->sandbox_dir);
    else
        pool_forget_sandbox(b->pool, action->sandbox_dir);
}

static void preload(struct broker *b, const struct pool_action *action)
{
    struct err e = ERR_INIT;
    (void)b;
    action->child->preload_asked = true;
    if (child_tell(action->child, "preload", &e) < 0)
        log_debug("a container that waited is gone: %s", e.text);
}

static void end(struct broker *b, const struct pool_action *action)
{
    child_io_release(b, action->child);
}

static void (*const carry_out[])(struct broker *b, const struct pool_action *action) = {
    [POOL_START_ON_WARM_DIR] = start_on_warm_dir,
    [POOL_START_ON_SANDBOX] = start_on_sandbox,
    [POOL_PRELOAD] = preload,
    [POOL_END] = end,
};

static bool is_start(enum pool_do what)
{
    return what == POOL_START_ON_WARM_DIR || what == POOL_START_ON_SANDBOX;
}

void warm_tick(struct broker *b)
{
    int64_t now_ms = clock_mono_ms(), at_ms = -1;
    const struct pool_now now = {
        .now_ms = now_ms,
        .runners = &b->housekeeper.runners,
        .engine_ok = !*b->housekeeper.trouble,
        .machine_idle = cpu_pressure_is_idle(&b->cpu_pressure, now_ms),
        .waiting_callers = run_queue_length(b),
    };
    struct pool_action action;
    while (pool_next(b->pool, b->children, &now, &action, &at_ms)) {
        carry_out[action.what](b, &action);
        if (is_start(action.what)) { /* that took a moment: callers first */
            b->pool_at = deadline_in_ms(0);
            return;
        }
    }
    b->pool_at = at_ms < 0 ? DEADLINE_NEVER : (struct deadline){.at_ms = at_ms};
}

void warm_note_upload(struct broker *b, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *conversation = json_get_string(head, "conversationId");
    struct err e = ERR_INIT;
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
    /* What is wrong with the head, the job tells its caller. */
    if (tenant && conversation &&
        sandbox_name(&b->root, tenant, conversation, sandbox_dir, &e) == 0)
        pool_note_upload(b->pool, sandbox_dir, clock_mono_ms());
}

void warm_end(struct broker *b)
{
    for (struct child *c = NULL; (c = children_next(b->children, c));)
        if (c->kind == CHILD_SUPERVISOR && !c->claimed && c->channel >= 0)
            child_io_release(b, c);
}
