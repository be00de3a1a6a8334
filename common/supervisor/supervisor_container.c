#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/records/run_lock.h"
#include "common/sandbox/warm_dir.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define WAIT_MAX_S 7200 /* the pool replaces a warm container long before that */
#define WIPE_MS    5000 /* for the container; it gives up before */
#define LAST_READS 16   /* of what came before a program is killed */
#define HURRY_MS   100  /* for the same when its next run is there: a new container takes longer */
/* An import is one thread, and runners pace it to 0.6 of what they may use (preload.py). */
#define PRELOAD_CPU_MILLI 2000

/* ---- whom it serves ---- */

/* Strings are borrowed; false: the directory cannot be looked at. */
static bool use_of_run(const struct supervisor *s, struct container_use *out)
{
    *out = (struct container_use){
        .tenant = (char *)(uintptr_t)s->run.awaited.request.tenant,
        .conversation = (char *)(uintptr_t)s->run.awaited.request.conversation,
        .language = s->run.awaited.request.language,
        .image_id = s->run.image_id};
    return fstat(s->run.sandbox.fd, &out->dir) == 0;
}

static void use_begin(struct container_use *use, const struct supervisor *s)
{
    use->tenant = mem_strdup(s->run.awaited.request.tenant);
    use->conversation = mem_strdup(s->run.awaited.request.conversation);
}

void supervisor_use_container(struct supervisor *s)
{
    struct container_use wanted;

    s->base.started = s->base.started && use_of_run(s, &wanted) &&
                      container_may_serve(&s->use, &wanted);
    if (s->base.started && !s->use.tenant)
        use_begin(&s->use, s);
}

bool supervisor_may_serve_more(const struct supervisor *s)
{
    const struct supervisor_start *start = s->base.start;

    return pool_settings_may_reuse(&start->config->pool, start->runner->language) &&
           !run_needs_new(&s->run.awaited.request) && !s->run.awaited.request.single_use;
}

bool supervisor_may_reuse(const struct supervisor *s, bool ran)
{
    const struct engine_outcome *out = &s->run.awaited.outcome;

    if (!supervisor_may_serve_more(s) || s->base.start->runner->protocol == 0 ||
        s->run.awaited.killed != NOT_KILLED)
        return false;
    if (s->run.awaited.began_ms == 0) /* it was refused, and its container still waits */
        return s->base.started && !s->warm_dir;
    return ran && out->end == ENGINE_EXITED && !out->out_of_memory && !s->cpu_raised &&
           s->run.awaited.over.kind == ERR_NONE;
}

/* ---- its start, and its limit ---- */

/* On the directory of that kind and path. */
static int start_container(struct supervisor *s, const struct stat *dir, const char *data_path,
                           struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    bool waits = !s->run.claimed || supervisor_may_serve_more(s);
    uint64_t run_ms = waits ? start->config->limits.timeout_max_ms
                            : s->run.awaited.request.timeout_ms;
    AUTO_REQUEST_ENV struct request_env env = {0};
    AUTO_FREE char *index_path = s->run.source
                                     ? index_dir_host_path(start->root, start->container_id)
                                     : NULL;
    struct engine_spec spec = {
        .protocol = start->runner->protocol,
        .data_path = data_path,
        .deadline_unix = clock_unix_s() + (waits ? WAIT_MAX_S : 0) +
                         (int64_t)(run_ms + CONTAINER_START_MS) / 1000 + 1,
        .network = s->run.awaited.request.network,
        .index_path = index_path,
    };

    if (start->runner->protocol == 0 && s->run.claimed) {
        env = request_env_new(&s->run.awaited.body, &s->run.sandbox, supervisor_index_url(s));
        spec.env = env.items;
        spec.n_env = env.n;
    }
    container_use_clear(&s->use);
    s->use = (struct container_use){
        .dir = *dir, .language = start->runner->language, .image_id = start->runner->image_id};
    if (s->run.claimed)
        use_begin(&s->use, s);
    s->cpu_raised = false;
    s->wait = (struct engine_wait){0};
    if (container_start(&s->base, (struct sandbox_owner){dir->st_uid, dir->st_gid}, &spec, e) < 0)
        return -1;
    if (s->run.claimed)
        channel_send(&s->base.channel, json_pack("{s:s}", "is", "started"));
    return 0;
}

void supervisor_raise_cpu(struct supervisor *s)
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

/* The kernel begins a new account with a new limit: what was used under the raised one throttles no
 * program. false: the container must not be used. */
static bool lower_cpu(struct supervisor *s)
{
    struct err e = ERR_INIT;

    if (s->cpu_raised && s->base.engine->ops->limit_cpu(
                             s->base.engine, s->base.start->config->container.cpu_milli, &e) < 0) {
        log_warn("cannot use a warm container: its CPU limit: %s", e.text);
        return false;
    }
    s->cpu_raised = false;
    return true;
}

/* ---- its program ---- */

/* The libraries that the program needs are there: it begins, within its limit. false: not in this
 * container. */
static bool let_go(struct supervisor *s, uint32_t id)
{
    struct err e = ERR_INIT;

    s->base.started = lower_cpu(s) && s->base.engine->ops->go(s->base.engine, id, &e) == 0;
    if (!s->base.started)
        err_set(&s->run.lost, ERR_LOST, "the run did not begin in its container");
    return s->base.started;
}

/* What the container sends while its program runs; false: no more is wanted. */
static bool on_program(struct supervisor *s, const struct engine_event *ev)
{
    struct awaited_run *run = &s->run.awaited;
    const enum engine_stream stream = ev->kind == ENGINE_EVENT_OUT ? ENGINE_STDOUT : ENGINE_STDERR;
    struct engine_outcome out = ev->outcome;

    if (ev->kind == ENGINE_EVENT_LOADING)
        supervisor_raise_cpu(s);
    if (ev->kind == ENGINE_EVENT_LOADED)
        return let_go(s, ev->id);
    if (ev->kind == ENGINE_EVENT_BEGUN)
        run->outcome.warm = ev->warm;
    if ((ev->kind == ENGINE_EVENT_OUT || ev->kind == ENGINE_EVENT_ERR) &&
        !awaited_run_output(run, stream, ev->data, ev->len) && run->killed == NOT_KILLED)
        run->killed = KILLED_BY_OUTPUT;
    if (ev->kind == ENGINE_EVENT_ENDED) {
        s->run.ended = true;
        container_use_for(&s->base, PURPOSE_WIPE);
        out.warm = run->outcome.warm;
        out.started_us = run->outcome.started_us;
        out.ended_us = clock_mono_us();
        run->outcome = out;
    }
    return !s->run.ended && run->killed != KILLED_BY_OUTPUT;
}

static bool is_under_way(const struct supervisor *s)
{
    return s->base.started && !s->run.ended && s->run.awaited.killed != KILLED_BY_OUTPUT;
}

/* What has come by now still counts, even the report. Else the container is removed before the
 * files are read. */
static void program_kill(struct supervisor *s)
{
    struct awaited_run *run = &s->run.awaited;
    struct engine_outcome out = run->outcome;

    for (int i = 0; is_under_way(s) && i < LAST_READS && (i == 0 || s->base.unread); i++)
        container_read(&s->base);
    if (s->run.ended || !s->base.started)
        return;
    s->run.ended = true;
    if (run->killed == NOT_KILLED)
        run->killed = s->base.stop ? KILLED_BY_CANCEL : KILLED_BY_TIME;
    out.exit_code = -1;
    out.signal = SIGKILL;
    out.ended_us = clock_mono_us();
    awaited_run_set_outcome(run, &out);
    container_finish(&s->base);
}

/* Hands the program over, and serves until it has ended. */
static int run_to_end(struct supervisor *s, const struct engine_command *program, struct err *e)
{
    struct engine *engine = s->base.engine;
    uint32_t id;

    s->run.lost = (struct err)ERR_INIT;
    container_read(&s->base); /* if it has ended by now, another may still take its place */
    container_use_for(&s->base, PURPOSE_RUN);
    s->run.awaited.outcome = (struct engine_outcome){.started_us = clock_mono_us()};
    if (s->base.started && engine->ops->exec(engine, program, &id, e) < 0) {
        container_finish(&s->base);
        return -1;
    }
    /* Its time begins here: a slow start of the container is not its fault. */
    struct deadline end = deadline_in_ms((int64_t)program->timeout_ms);
    container_tick(&s->base); /* does what need not be done before it */
    while (is_under_way(s) && !s->base.stop && !deadline_passed(end))
        container_turn(&s->base, end);
    program_kill(s);
    if (s->run.ended)
        return 0;
    container_finish(&s->base);
    *e = s->run.lost;
    return -1;
}

int supervisor_run_program(struct supervisor *s, const struct engine_command *program,
                           struct err *e)
{
    AUTO_FREE char *data_path = sandbox_host_path(&s->run.sandbox);
    struct stat dir;

    if (fstat(s->run.sandbox.fd, &dir) < 0)
        return err_errno(e, "the sandbox directory");
    s->base.started = s->base.started && lower_cpu(s);
    for (int tries = 1;; tries++) {
        if (!s->base.started && start_container(s, &dir, data_path, e) < 0)
            return -1;
        s->run.awaited.began_ms = clock_mono_ms();
        disk_watch_begin(&s->base.disk, &s->base.channel.loop, &s->run.sandbox,
                         &s->run.awaited.before);
        int result = run_to_end(s, program, e);
        s->run.awaited.over = s->base.disk.over;
        disk_watch_end(&s->base.disk);
        if (result == 0)
            return 0;
        if (e->kind != ERR_LOST || tries == SUPERVISOR_STARTS || s->base.stop)
            return -1;
        log_debug("run %s: %s; starting another container", s->run.awaited.id, e->text);
    }
}

/* ---- while it waits ---- */

static void tell_waiting(struct supervisor *s)
{
    channel_send(&s->base.channel,
                 json_pack("{s:s, s:s, s:I}", "is", "waiting", "tier",
                           s->wait.tier == ENGINE_TIER_PRELOADED ? "preloaded" : "started",
                           "memoryBytes", (json_int_t)s->wait.memory_bytes));
    s->told = s->wait.tier;
}

static void on_tier(struct supervisor *s, const struct engine_wait *wait)
{
    s->wait = *wait;
    container_use_for(&s->base, s->base.purpose == PURPOSE_START ? PURPOSE_LOAD : s->base.purpose);
    /* A reading above its limit is not of its own cgroup. */
    if (s->wait.memory_bytes > s->base.start->config->container.memory_bytes)
        s->wait.memory_bytes = 0;
    if (s->wait.tier == ENGINE_TIER_PRELOADED && !lower_cpu(s))
        s->base.started = false;
    else if (!s->run.claimed || s->wiping)
        tell_waiting(s);
    s->wiping = false;
}

bool supervisor_on_event(void *owner, const struct engine_event *ev)
{
    struct supervisor *s = owner;

    if (s->run.awaited.began_ms)
        return on_program(s, ev);
    if (ev->kind == ENGINE_EVENT_TIER)
        on_tier(s, &ev->wait);
    return s->base.started;
}

void supervisor_on_gone(void *owner, const struct err *e)
{
    struct supervisor *s = owner;

    if (s->run.awaited.began_ms) {
        s->run.lost = *e;
    } else if (!s->wiping) {
        log_info("a warm container is gone: %s", e->text);
    } else {
        log_warn("a container is not used again: %s", e->text);
        channel_send(&s->base.channel, json_pack("{s:s}", "is", "doubted"));
    }
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
    s->base.started = false;
    supervisor_on_gone(s, &e);
    return false;
}

void supervisor_wait_for_claim(struct supervisor *s)
{
    struct deadline ready_by = DEADLINE_NEVER;

    s->told = ENGINE_TIER_NONE;
    if (s->wait.tier != ENGINE_TIER_NONE) /* a run was refused: it still waits */
        tell_waiting(s);
    container_read(&s->base);
    while (s->base.started && ((!s->run.claimed && !s->run.refused) || s->wiping) &&
           !s->base.stop && wipe_is_in_time(s, &ready_by))
        container_turn(&s->base, ready_by);
    s->wiping = false;
    s->run.refused = s->base.started && s->run.refused;
    if (s->base.started && s->run.claimed && s->told == ENGINE_TIER_NONE)
        channel_send(&s->base.channel, json_pack("{s:s}", "is", "started"));
    if (!s->base.started && !s->run.claimed) /* a claim that is on its way gets another container */
        container_tick(&s->base);
}

void supervisor_start_warm(struct supervisor *s)
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
    if (start_container(s, &dir, data_path, &e) == 0)
        supervisor_wait_for_claim(s);
    else if (e.kind != ERR_CANCELLED)
        log_warn("cannot start a warm container: %s", e.text);
}
