#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/state.h"

#include <inttypes.h>
#include <string.h>

#define LINGER_MS 100
#define NEXT_MS   1000 /* for the main process to say whether a used container is to be wiped */

/* ---- the loop ---- */

static struct deadline supervisor_tend(void *owner)
{
    struct supervisor *s = owner;

    if (s->run.awaited.began_ms)
        supervisor_note_use(s);
    struct deadline look = disk_watch_tick(&s->base.disk);
    if (s->base.disk.over.kind != ERR_NONE)
        supervisor_kill(s, KILLED_BY_DISK);
    return deadline_min(look, supervisor_tend_waiters(s));
}

/* ---- the channel ---- */

static void on_preload(void *owner, const json_t *message, int no_connection)
{
    struct supervisor *s = owner;
    const char *names = s->base.start->runner->preload;
    struct err e = ERR_INIT;

    (void)no_connection;
    if (!s->base.started || s->run.claimed || !names || !*names)
        return;
    if (strcmp(json_get_string(message, "do"), "preload_fast") == 0)
        supervisor_raise_cpu(s);
    if (s->base.engine->ops->preload(s->base.engine, names, &e) < 0)
        log_debug("preload: %s", e.text); /* a container that is gone is noticed anyway */
}

/* The server stops and does not wait for the run. */
static void on_end(void *owner, const json_t *no_members, int no_connection)
{
    struct supervisor *s = owner;

    (void)no_members;
    (void)no_connection;
    supervisor_kill(s, KILLED_BY_CANCEL);
}

/* The main process hands nothing of the run over any more. */
static void on_next(void *owner, const json_t *message, int no_connection)
{
    struct supervisor *s = owner;
    struct err e = ERR_INIT;

    (void)message;
    (void)no_connection;
    if (!s->run.reusable)
        return;
    bool used = s->run.awaited.began_ms != 0;
    supervisor_forget_run(s);
    if (used)
        s->wait = (struct engine_wait){0};
    s->wiping = used && s->base.engine->ops->next(s->base.engine, &e) == 0;
    if (used && !s->wiping) {
        log_info("a container is not used again: %s", e.text);
        s->base.stop = true;
    }
}

static bool on_lost(void *owner)
{
    struct supervisor *s = owner;

    if (!s->run.claimed)
        s->base.stop = true;
    return s->run.claimed && !s->run.awaited.reply;
}

/* ---- the run ---- */

static void serve_run(struct supervisor *s)
{
    struct err e = ERR_INIT;

    container_tick(&s->base);
    json_t *result = supervisor_run(s, &e);
    bool ran = result != NULL;

    s->run.reusable = supervisor_may_reuse(s, ran);
    /* Before the answer: its caller may ask for the tenant's files next, or delete them. */
    s->run.use_noted = false;
    supervisor_note_use(s);
    if (ran && s->run.usage.partial) /* the size is counted when it is needed */
        state_forget_size(s->base.start->root, s->run.sandbox.name);
    else if (ran)
        state_note_size(s->base.start->root, s->run.sandbox.name, &s->run.usage);
    sandbox_close(&s->run.sandbox);
    supervisor_conclude(s, result, &e);
    awaited_run_record_end(&s->run.awaited);
    if (!ran)
        container_log_failure(&s->base, "run", s->run.awaited.id, &e);
    awaited_run_log(&s->run.awaited);
}

/* After a run: until its container is to serve the next one, wiped; false: it is not. */
static bool wait_for_next(struct supervisor *s)
{
    struct deadline end = deadline_in_ms(NEXT_MS);

    while (s->run.reusable && s->base.started && !s->base.stop && !deadline_passed(end) &&
           s->base.channel.fd >= 0)
        container_turn(&s->base, end);
    return !s->run.claimed && !s->run.refused && !s->base.stop;
}

/* ---- from start to end ---- */

/* Removing the container keeps the engine busy: the caller's next call goes first. */
static void linger(struct supervisor *s)
{
    struct deadline end = deadline_in_ms(LINGER_MS);

    while (!deadline_passed(end))
        container_turn(&s->base, end);
}

static void supervisor_end(struct supervisor *s)
{
    container_drain(&s->base);
    if (s->run.claimed)
        linger(s);
    container_finish(&s->base);
    s->base.stop = true;
    channel_close(&s->base.channel);
    container_drain(&s->base);
    supervisor_forget_run(s);
    container_use_clear(&s->use);
}

static const struct container_ops supervisor_ops = {
    .channel = {.handlers = {{"claim", supervisor_claim, true},
                             {"hand", supervisor_add_poll, true},
                             {"preload", on_preload, false},
                             {"preload_fast", on_preload, false},
                             {"end", on_end, false},
                             {"next", on_next, false}},
                .on_lost = on_lost},
    .on_waiter = supervisor_on_waiter,
    .tend = supervisor_tend,
    .on_event = supervisor_on_event,
    .on_gone = supervisor_on_gone,
};

void supervisor_main(const struct supervisor_start *start)
{
    struct supervisor s = {.run = SERVED_RUN_INIT};

    if (!container_open(&s.base, start, &supervisor_ops))
        return;
    json_auto_t *claim = json_pack("{s:O?, s:I, s:s, s:s, s:s*}", "head", start->head, "queueMs",
                                   (json_int_t)start->queue_ms, "runId", start->container_id,
                                   "imageId", start->runner->image_id, "sandboxDir",
                                   start->sandbox_dir);
    if (start->head)
        supervisor_claim(&s, claim, start->connection);
    else
        supervisor_start_warm(&s);
    while (s.run.claimed || s.run.refused) {
        if (s.run.claimed)
            serve_run(&s);
        else
            supervisor_tell_end(&s);
        if (!wait_for_next(&s))
            break;
        supervisor_wait_for_claim(&s);
    }
    supervisor_end(&s);
    container_clear(&s.base);
}
