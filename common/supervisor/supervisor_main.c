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
/* An import is one thread, and runners pace it to 0.6 of what they may use (preload.py). */
#define PRELOAD_CPU_MILLI 2000

/* ---- the loop ---- */

static void supervisor_tend(struct supervisor *s)
{
    if (s->began_ms)
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
    if (!s->started || s->claimed || !names || !*names)
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
    s->cancelled = s->stop = true;
}

static bool on_lost(void *owner)
{
    struct supervisor *s = owner;

    if (!s->claimed)
        s->stop = true;
    return s->claimed && !s->reply;
}

static json_t *adopt_head(const void *owner)
{
    const struct supervisor *s = owner;

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "op", op_name(OP_ADOPT_RUN), "runId",
                     s->base.start->run_id, "tenant", s->request.tenant, "conversationId",
                     s->request.conversation, "language", s->request.language, "state", "running",
                     "background", s->options.background);
}

static const struct channel_ops channel_ops = {
    .handlers = {{"claim", supervisor_claim, true},
                 {"hand", supervisor_add_poll, true},
                 {"preload", on_preload, false},
                 {"preload_fast", on_preload, false},
                 {"end", on_end, false}},
    .on_lost = on_lost,
    .adopt_head = adopt_head,
};

/* ---- a warm container ---- */

/* Takes in what the warm container reported; false: it cannot be used any more. */
static bool warm_look(struct supervisor *s, enum engine_tier *sent)
{
    const uint64_t limit = s->base.start->config->container.memory_bytes;
    struct err e = ERR_INIT;
    struct engine_wait now = {0};

    if (s->base.engine->ops->look(s->base.engine, &now, &e) < 0) {
        log_info("a warm container is gone: %s", e.text);
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
    return true;
}

/* Until a run is claimed, or the container is released or gone. */
static void wait_for_claim(struct supervisor *s)
{
    enum engine_tier sent = ENGINE_TIER_NONE;
    struct pollfd p[2] = {{.fd = s->base.channel.loop.fd, .events = POLLIN},
                          {.fd = s->base.engine->ops->fd(s->base.engine), .events = POLLIN}};

    bool good = warm_look(s, &sent);
    while (good && !s->claimed && !s->stop) {
        if (poll(p, 2, -1) < 0)
            good = errno == EINTR;
        else if (p[0].revents)
            supervisor_tick(s);
        else
            good = warm_look(s, &sent);
    }
    s->started = good;
    if (good && s->claimed && sent == ENGINE_TIER_NONE) /* it never sent "waiting" */
        channel_send(&s->base.channel, json_pack("{s:s}", "is", "started"));
    if (!good && !s->claimed) /* a claim that is on its way gets another container */
        supervisor_tick(s);
}

static void start_warm(struct supervisor *s)
{
    const struct supervisor_start *start = s->base.start;
    struct sandbox known = {.root = start->root};
    struct err e = ERR_INIT;

    if (start->sandbox_dir)
        memcpy(known.name, start->sandbox_dir, sizeof known.name);
    AUTO_FREE char *data_path = start->warm_dir ? warm_dir_host_path(start->root, start->warm_dir)
                                                : sandbox_host_path(&known);
    if (!(start->warm_dir
              ? warm_dir_stat(start->root, start->warm_dir, &s->dir)
              : fstatat(start->root->fd, known.name, &s->dir, AT_SYMLINK_NOFOLLOW) == 0))
        log_warn("cannot start a warm container: its directory is gone");
    else if (supervisor_start_container(s, data_path, &e) == 0)
        wait_for_claim(s);
    else if (e.kind != ERR_CANCELLED)
        log_warn("cannot start a warm container: %s", e.text);
}

/* ---- the run ---- */

static void log_run(const struct supervisor *s, bool ran, const struct engine_outcome *out,
                    const struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    const char *language = start->runner->language;

    if (ran)
        log_info("run %s language=%s status=%s exit=%d ms=%" PRId64 " queue_ms=%" PRId64
                 " prestarted=%d",
                 start->run_id, language, run_status_name(run_result_status(out)), out->exit_code,
                 (out->ended_us - out->started_us) / 1000, s->story.queue_ms, out->warm);
    else
        container_log_failure(&s->base, "run", e);
}

static void serve_run(struct supervisor *s)
{
    struct err e = ERR_INIT;
    struct engine_outcome out;
    json_t *result = supervisor_run(s, &out, &e);
    bool ran = result != NULL;

    /* Before the answer: its caller may ask for the tenant's files next, or delete them. */
    s->use_noted = false;
    supervisor_note_use(s);
    if (ran && s->usage.partial) /* the size is counted when it is needed */
        state_forget_size(s->base.start->root, s->sandbox.name);
    else if (ran)
        state_note_size(s->base.start->root, s->sandbox.name, &s->usage);
    sandbox_close(&s->sandbox);
    supervisor_conclude(s, result, &e);
    supervisor_record_end(s);
    log_run(s, ran, &out, &e);
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
    if (s->claimed)
        linger(s);
    s->base.engine->ops->finish(s->base.engine);
    s->stop = true;
    channel_close(&s->base.channel);
    waiters_drain(&s->base.waiters, supervisor_tick);
    supervisor_close_index(s);
    run_capture_clear(&s->capture);
    sandbox_close(&s->sandbox);
    wire_run_decoded_clear(&s->request);
    json_decref(s->head);
    json_decref(s->body);
    output_ring_free(s->output);
    json_decref(s->reply);
}

void supervisor_main(const struct supervisor_start *start)
{
    struct supervisor s = {.open_files = FDS_INIT(FDS_MAX), .sandbox = SANDBOX_INIT};

    if (!container_open(&s.base, start, &s, &channel_ops, supervisor_on_waiter, supervisor_tick))
        return;
    s.output = output_ring_new(OUTPUT_RING_KEEP);
    json_auto_t *claim = json_pack("{s:O?, s:I}", "head", start->head, "queueMs",
                                   (json_int_t)start->queue_ms);
    if (start->head)
        supervisor_claim(&s, claim, start->connection);
    else
        start_warm(&s);
    if (s.claimed) {
        supervisor_tend(&s);
        serve_run(&s);
    }
    supervisor_end(&s);
    container_clear(&s.base);
}
