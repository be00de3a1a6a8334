#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/warm_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#define LINGER_MS 100
#define NEXT_MS   1000 /* for the main process to say whether a used container is to be wiped */
#define WIPE_MS   5000 /* for the container; it gives up before */
#define HURRY_MS  100  /* for the same when its next run is there: a new container takes longer */
/* An import is one thread, and runners pace it to 0.6 of what they may use (preload.py). */
#define PRELOAD_CPU_MILLI 2000

/* ---- the loop ---- */

static void supervisor_tend(struct supervisor *s)
{
    if (s->run.awaited.began_ms)
        supervisor_note_use(s);
    struct deadline look = disk_watch_tick(&s->base.disk);
    if (s->base.disk.over.kind != ERR_NONE)
        s->stop = true;
    channel_ring_at(&s->base.channel, deadline_min(look, supervisor_tend_waiters(s)));
}

static bool supervisor_tick(void *ctx)
{
    struct supervisor *s = ctx;

    channel_dispatch(&s->base.channel);
    supervisor_tend(s);
    return !s->stop;
}

/* ---- the channel ---- */

/* While the container loads, its limit of processor time is higher, if the engine can change it. */
static void raise_cpu(struct supervisor *s)
{
    const uint64_t cpu_milli = s->base.start->config->container.cpu_milli;
    struct err e = ERR_INIT;

    if (s->cpu_raised || cpu_milli == 0 || cpu_milli >= PRELOAD_CPU_MILLI)
        return;
    s->cpu_raised = s->base.engine->ops->limit_cpu(s->base.engine, PRELOAD_CPU_MILLI, &e) == 0 ||
                    (e.kind != ERR_REFUSED && e.kind != ERR_NOT_FOUND);
    if (!s->cpu_raised)
        log_debug("libraries are loaded within the CPU limit: %s", e.text);
}

static void on_preload(void *owner, const json_t *message, int no_connection)
{
    struct supervisor *s = owner;
    const char *names = s->base.start->runner->preload;
    struct err e = ERR_INIT;

    (void)no_connection;
    if (!s->started || s->run.claimed || !names || !*names)
        return;
    if (strcmp(json_get_string(message, "do"), "preload_fast") == 0)
        raise_cpu(s);
    if (s->base.engine->ops->preload(s->base.engine, names, &e) < 0)
        log_debug("preload: %s", e.text); /* a container that is gone is noticed anyway */
}

/* The server stops and does not wait for the run. */
static void on_end(void *owner, const json_t *no_members, int no_connection)
{
    struct supervisor *s = owner;

    (void)no_members;
    (void)no_connection;
    s->run.cancelled = s->stop = true;
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
    s->wiping = used && s->base.engine->ops->next(s->base.engine, &e) == 0;
    if (used && !s->wiping) {
        log_info("a container is not used again: %s", e.text);
        s->stop = true;
    }
}

static bool on_lost(void *owner)
{
    struct supervisor *s = owner;

    if (!s->run.claimed)
        s->stop = true;
    return s->run.claimed && !s->run.awaited.reply;
}

static json_t *adopt_head(const void *owner)
{
    const struct supervisor *s = owner;

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "op", op_name(OP_ADOPT_RUN), "runId",
                     s->run.awaited.id, "tenant", s->run.request.tenant, "conversationId",
                     s->run.request.conversation, "language", s->run.request.language, "state",
                     "running", "background", s->run.awaited.options.background);
}

static const struct channel_ops channel_ops = {
    .handlers = {{"claim", supervisor_claim, true},
                 {"hand", supervisor_add_poll, true},
                 {"preload", on_preload, false},
                 {"preload_fast", on_preload, false},
                 {"end", on_end, false},
                 {"next", on_next, false}},
    .on_lost = on_lost,
    .adopt_head = adopt_head,
};

/* ---- a warm container ---- */

static void warm_lost(struct supervisor *s, const struct err *e)
{
    if (!s->wiping) {
        log_info("a warm container is gone: %s", e->text);
        return;
    }
    log_warn("a container is not used again: %s", e->text);
    channel_send(&s->base.channel, json_pack("{s:s}", "is", "doubted"));
}

/* Takes in what the warm container reported; false: it cannot be used any more. */
static bool warm_look(struct supervisor *s, enum engine_tier *sent)
{
    const uint64_t limit = s->base.start->config->container.memory_bytes;
    struct err e = ERR_INIT;
    struct engine_wait now = {0};

    if (s->base.engine->ops->look(s->base.engine, &now, &e) < 0) {
        warm_lost(s, &e);
        return false;
    }
    if (now.memory_bytes > limit) /* a reading above its limit is not of its own cgroup */
        now.memory_bytes = 0;
    if (now.tier == ENGINE_TIER_PRELOADED && !supervisor_lower_cpu(s))
        return false;
    if (now.tier != *sent)
        channel_send(&s->base.channel,
                     json_pack("{s:s, s:s, s:I}", "is", "waiting", "tier",
                               now.tier == ENGINE_TIER_PRELOADED ? "preloaded" : "started",
                               "memoryBytes", (json_int_t)now.memory_bytes));
    *sent = now.tier;
    s->wiping = s->wiping && now.tier == ENGINE_TIER_NONE;
    return true;
}

/* The time in which a container that is wiped has to be ready; false: it is over. */
static bool wipe_is_in_time(struct supervisor *s, struct deadline *by)
{
    struct err e = ERR_INIT;

    if (!s->wiping)
        *by = DEADLINE_NEVER;
    else if (by->at_ms < 0)
        *by = deadline_in_ms(WIPE_MS);
    if (s->wiping && s->run.claimed)
        *by = deadline_min(*by, deadline_in_ms(HURRY_MS));
    if (!deadline_passed(*by))
        return true;
    err_set(&e, ERR_TIMEOUT, "it takes too long to wipe it");
    warm_lost(s, &e);
    return false;
}

/* Until a run is claimed or refused, or the container is released, gone or in doubt. */
static void wait_for_claim(struct supervisor *s)
{
    enum engine_tier sent = ENGINE_TIER_NONE;
    struct deadline ready_by = DEADLINE_NEVER;
    struct pollfd p[2] = {{.fd = s->base.channel.loop.fd, .events = POLLIN},
                          {.fd = s->base.engine->ops->fd(s->base.engine), .events = POLLIN}};

    bool good = warm_look(s, &sent);
    while (good && ((!s->run.claimed && !s->run.refused) || s->wiping) && !s->stop) {
        good = wipe_is_in_time(s, &ready_by);
        if (!good)
            break;
        int n = poll(p, 2, deadline_poll_ms(ready_by));
        if (n < 0)
            good = errno == EINTR;
        else if (p[0].revents)
            supervisor_tick(s);
        else if (n > 0)
            good = warm_look(s, &sent);
    }
    s->wiping = false;
    s->started = good;
    s->run.refused = good && s->run.refused;
    if (good && s->run.claimed && sent == ENGINE_TIER_NONE) /* it never sent "waiting" */
        channel_send(&s->base.channel, json_pack("{s:s}", "is", "started"));
    if (!good && !s->run.claimed) /* a claim that is on its way gets another container */
        supervisor_tick(s);
}

static void start_warm(struct supervisor *s)
{
    const struct supervisor_start *start = s->base.start;
    struct sandbox known = {.root = start->root};
    struct stat dir;
    struct err e = ERR_INIT;

    if (start->sandbox_dir)
        memcpy(known.name, start->sandbox_dir, sizeof known.name);
    AUTO_FREE char *data_path = start->warm_dir ? warm_dir_host_path(start->root, start->warm_dir)
                                                : sandbox_host_path(&known);
    if (!(start->warm_dir ? warm_dir_stat(start->root, start->warm_dir, &dir)
                          : fstatat(start->root->fd, known.name, &dir, AT_SYMLINK_NOFOLLOW) == 0)) {
        log_warn("cannot start a warm container: its directory is gone");
        return;
    }
    s->warm_dir = start->warm_dir;
    if (supervisor_start_container(s, &dir, data_path, &e) == 0)
        wait_for_claim(s);
    else if (e.kind != ERR_CANCELLED)
        log_warn("cannot start a warm container: %s", e.text);
}

/* ---- the run ---- */

static void log_run(const struct supervisor *s, bool ran, const struct engine_outcome *out,
                    const struct err *e)
{
    const char *language = s->base.start->runner->language;

    if (ran)
        log_info("run %s language=%s status=%s exit=%d ms=%" PRId64 " queue_ms=%" PRId64
                 " prestarted=%d",
                 s->run.awaited.id, language, run_status_name(run_result_status(out)),
                 out->exit_code, (out->ended_us - out->started_us) / 1000,
                 s->run.awaited.story.queue_ms, out->warm);
    else
        container_log_failure(&s->base, "run", s->run.awaited.id, e);
}

static void serve_run(struct supervisor *s)
{
    struct err e = ERR_INIT;
    struct engine_outcome out;

    supervisor_tend(s);
    json_t *result = supervisor_run(s, &out, &e);
    bool ran = result != NULL;

    s->run.reusable = supervisor_may_reuse(s, ran, &out);
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
    log_run(s, ran, &out, &e);
}

/* After a run: until its container is to serve the next one, wiped; false: it is not. */
static bool wait_for_next(struct supervisor *s)
{
    struct deadline end = deadline_in_ms(NEXT_MS);
    struct pollfd p = {.fd = s->base.channel.loop.fd, .events = POLLIN};

    while (s->run.reusable && !s->stop && !deadline_passed(end) && s->base.channel.fd >= 0)
        if (poll(&p, 1, deadline_poll_ms(end)) > 0)
            supervisor_tick(s);
    return !s->run.claimed && !s->run.refused && !s->stop;
}

/* ---- from start to end ---- */

/* Removing the container keeps the engine busy: the caller's next call goes first. */
static void linger(struct supervisor *s)
{
    struct deadline end = deadline_in_ms(LINGER_MS);
    struct pollfd p = {.fd = s->base.channel.loop.fd, .events = POLLIN};

    while (!deadline_passed(end))
        if (poll(&p, 1, deadline_poll_ms(end)) > 0)
            supervisor_tick(s);
}

static void supervisor_end(struct supervisor *s)
{
    waiters_drain(&s->base.waiters, supervisor_tick);
    if (s->run.claimed)
        linger(s);
    s->base.engine->ops->finish(s->base.engine);
    s->stop = true;
    channel_close(&s->base.channel);
    waiters_drain(&s->base.waiters, supervisor_tick);
    supervisor_forget_run(s);
    container_use_clear(&s->use);
}

void supervisor_main(const struct supervisor_start *start)
{
    struct supervisor s = {.run = SERVED_RUN_INIT};

    if (!container_open(&s.base, start, &s, &channel_ops, supervisor_on_waiter, supervisor_tick))
        return;
    json_auto_t *claim = json_pack("{s:O?, s:I, s:s, s:s}", "head", start->head, "queueMs",
                                   (json_int_t)start->queue_ms, "runId", start->container_id,
                                   "imageId", start->runner->image_id);
    if (start->head)
        supervisor_claim(&s, claim, start->connection);
    else
        start_warm(&s);
    while (s.run.claimed || s.run.refused) {
        if (s.run.claimed)
            serve_run(&s);
        else
            supervisor_tell_end(&s);
        if (!wait_for_next(&s))
            break;
        wait_for_claim(&s);
    }
    supervisor_end(&s);
    container_clear(&s.base);
}
