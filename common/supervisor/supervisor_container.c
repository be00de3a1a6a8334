#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/records/run_lock.h"
#include "common/rpc/json.h"
#include "common/sandbox/warm_dir.h"
#include "common/scheduler/runners.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define WAIT_MAX_S 7200 /* the pool replaces a warm container long before that */
#define LAST_READS 16   /* of what came before a program is killed */
#define REPORT_MS  200  /* for the report of a program that is killed, with what it has used */
#define HURRY_MS   100  /* for the same when its next run is there: a new container takes longer */
/* An import is one thread, and runners pace it to 0.6 of what they may use (preload.py). */
#define PRELOAD_CPU_MILLI 2000

/* ---- whom it serves ---- */

/* Strings are borrowed; false: the directory cannot be looked at. */
static bool use_of_run(const struct supervisor *s, const struct call *run,
                       struct container_use *out)
{
    *out = (struct container_use){.tenant = (char *)(uintptr_t)run->run.request.tenant,
                                  .conversation = (char *)(uintptr_t)run->run.request.conversation,
                                  .image_id = s->base.start->runner->image_id};
    return fstat(s->sandbox.fd, &out->dir) == 0;
}

static void use_begin(struct container_use *use, const struct call *run)
{
    use->tenant = mem_strdup(run->run.request.tenant);
    use->conversation = mem_strdup(run->run.request.conversation);
}

void run_use_container(struct supervisor *s, const struct call *run)
{
    struct container_use wanted;

    s->base.started = s->base.started && use_of_run(s, run, &wanted) &&
                      container_may_serve(&s->use, &wanted);
    if (s->base.started && !s->use.tenant)
        use_begin(&s->use, run);
}

bool run_may_share(const struct supervisor *s, const struct call *run)
{
    const struct supervisor_start *start = s->base.start;

    return start->reuse && !run_needs_new(&run->run.request) && !run->run.request.single_use;
}

bool pool_container_stays(const struct supervisor *s)
{
    const struct supervisor_start *start = s->base.start;

    return start->reuse && start->runner->protocol != 0 && s->base.started && !s->warm_dir;
}

bool run_leaves_container(const struct supervisor *s, const struct call *run, bool ran)
{
    const struct awaited_run *awaited = &run->run;
    const struct engine_outcome *out = &awaited->outcome;

    if (!run_may_share(s, run) || s->base.start->runner->protocol == 0 ||
        awaited->killed != NOT_KILLED)
        return false;
    if (awaited->began_ms == 0)
        return pool_container_stays(s);
    return ran && out->end == ENGINE_EXITED && !out->out_of_memory && !s->cpu_raised &&
           awaited->over.kind == ERR_NONE;
}

/* ---- its start, and its limit ---- */

/* On the directory of that kind and path, for the run; NULL: for one that is to come. */
static int start_container(struct supervisor *s, const struct call *run, const struct stat *dir,
                           const char *data_path, struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    bool waits = !run || run_may_share(s, run);
    uint64_t run_ms = waits ? start->config->limits.timeout_max_ms : run->run.request.timeout_ms;
    AUTO_REQUEST_ENV struct request_env env = {0};
    AUTO_FREE char *index_path = run && run->source
                                     ? index_dir_host_path(start->root, start->container_id)
                                     : NULL;
    struct engine_spec spec = {
        .protocol = start->runner->protocol,
        .data_path = data_path,
        .deadline_unix = clock_unix_s() + (waits ? WAIT_MAX_S : 0) +
                         (int64_t)(run_ms + CONTAINER_START_MS) / 1000 + 1,
        .network = run ? run->run.request.network : NETWORK_NONE,
        .index_path = index_path,
        .language = engine_runner_language(start->runner),
    };

    if (start->runner->protocol == 0 && run) {
        env = request_env_new(&run->run.body, &s->sandbox, run_index_url(run));
        spec.env = env.items;
        spec.n_env = env.n;
    }
    container_use_clear(&s->use);
    s->use = (struct container_use){.dir = *dir, .image_id = start->runner->image_id};
    if (run)
        use_begin(&s->use, run);
    s->cpu_raised = false;
    s->wait = (struct engine_wait){0};
    if (container_start(&s->base, (struct sandbox_owner){dir->st_uid, dir->st_gid}, &spec, e) < 0)
        return -1;
    if (s->n_calls > 0) /* it may have come meanwhile */
        channel_send(&s->base.channel, json_pack("{s:s}", "is", "started"));
    return 0;
}

void pool_container_raise_cpu(struct supervisor *s)
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

void warm_on_preload(void *owner, const json_t *message, int no_connection)
{
    struct supervisor *s = owner;
    const struct supervisor_start *start = s->base.start;
    const char *names = runners_of_image(start->runners, start->runner->image_id, NULL)->preload;
    struct err e = ERR_INIT;

    (void)no_connection;
    if (!s->base.started || s->n_calls > 0 || !*names)
        return;
    if (strcmp(json_get_string(message, "do"), "preload_fast") == 0)
        pool_container_raise_cpu(s);
    if (s->base.engine->ops->preload(s->base.engine, names, &e) < 0)
        log_debug("preload: %s", e.text); /* a container that is gone is noticed anyway */
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

bool run_let_go(struct supervisor *s, struct call *run, uint32_t id)
{
    struct err e = ERR_INIT;

    s->base.started = lower_cpu(s) && s->base.engine->ops->go(s->base.engine, id, &e) == 0;
    if (!s->base.started)
        err_set(&run->lost, ERR_LOST, "the run did not begin in its container");
    return s->base.started;
}

static bool is_under_way(const struct supervisor *s, const struct call *run)
{
    return s->base.started && run->phase == CALL_RUNNING && run->run.killed != KILLED_BY_OUTPUT;
}

/* What it has used by now, as its report or its container's cgroup says; unknown stays 0. */
static void take_figures(struct supervisor *s, struct call *run, struct engine_outcome *out)
{
    const struct deadline end = deadline_in_ms(REPORT_MS);
    struct engine *engine = s->base.engine;
    struct err none = ERR_INIT;
    const uint64_t cpu_us = run->run.prestarted ? 0 : engine->ops->cpu_us(engine);

    if (s->base.start->runner->protocol != 0 && engine->ops->kill(engine, s->program, &none) == 0)
        s->awaits_report = true;
    while (s->awaits_report && run->phase == CALL_RUNNING && s->base.started &&
           !deadline_passed(end))
        container_turn(&s->base, end);
    s->awaits_report = false;
    const bool reported = run->phase == CALL_AFTER;
    out->cpu_us = reported && run->run.outcome.cpu_us > 0 ? run->run.outcome.cpu_us : cpu_us;
    out->peak_memory_bytes = reported ? run->run.outcome.peak_memory_bytes : 0;
}

/* What has come by now still counts, even the report. Else the container is removed before the
 * files are read. */
static void program_kill(struct supervisor *s, struct call *run)
{
    struct awaited_run *awaited = &run->run;
    struct engine_outcome out = awaited->outcome;

    for (int i = 0; is_under_way(s, run) && i < LAST_READS && (i == 0 || s->base.unread); i++)
        container_read(&s->base);
    if (run->phase != CALL_RUNNING || !s->base.started)
        return;
    if (awaited->killed == NOT_KILLED)
        awaited->killed = s->base.stop ? KILLED_BY_CANCEL : KILLED_BY_TIME;
    out.ended_us = clock_mono_us();
    take_figures(s, run, &out);
    run->phase = CALL_AFTER;
    out.exit_code = -1;
    out.signal = SIGKILL;
    awaited_run_set_outcome(awaited, &out);
    container_finish(&s->base);
}

/* Hands the program over, and serves until it has ended. */
static int run_to_end(struct supervisor *s, struct call *run, const struct engine_command *program,
                      struct err *e)
{
    struct engine *engine = s->base.engine;
    uint32_t id = 0;

    run->lost = (struct err)ERR_INIT;
    run->phase = CALL_RUNNING;
    container_read(&s->base); /* if it has ended by now, another may still take its place */
    container_use_for(&s->base, PURPOSE_RUN);
    run->run.outcome = (struct engine_outcome){.started_us = clock_mono_us()};
    if (s->base.started && engine->ops->exec(engine, program, &id, e) < 0) {
        container_finish(&s->base);
        return -1;
    }
    s->program = id;
    /* Its time begins here: a slow start of the container is not its fault. */
    struct deadline end = deadline_in_ms((int64_t)program->timeout_ms);
    call_note_use(s, run); /* this need not be done before it, */
    container_tick(&s->base);
    while (is_under_way(s, run) && !s->base.stop && !deadline_passed(end))
        container_turn(&s->base, end);
    program_kill(s, run);
    if (run->phase != CALL_RUNNING)
        return 0;
    container_finish(&s->base);
    *e = run->lost;
    return -1;
}

int run_program(struct supervisor *s, struct call *run, const struct engine_command *program,
                struct err *e)
{
    AUTO_FREE char *data_path = sandbox_host_path(&s->sandbox);
    struct stat dir;

    if (fstat(s->sandbox.fd, &dir) < 0)
        return err_errno(e, "the sandbox directory");
    s->base.started = s->base.started && lower_cpu(s);
    for (int tries = 1;; tries++) {
        run->run.prestarted = s->base.started;
        if (!s->base.started && start_container(s, run, &dir, data_path, e) < 0)
            return -1;
        run->run.began_ms = clock_mono_ms();
        disk_watch_begin(&s->base.disk, &s->base.channel.loop, &s->sandbox, &run->run.before);
        int result = run_to_end(s, run, program, e);
        disk_watch_end(&s->base.disk);
        if (result == 0)
            return 0;
        if (e->kind != ERR_LOST || tries == SUPERVISOR_STARTS || s->base.stop)
            return -1;
        log_debug("run %s: %s; starting another container", run->run.id, e->text);
    }
}

/* ---- while it waits ---- */

void pool_container_tell_waiting(struct supervisor *s)
{
    channel_send(&s->base.channel,
                 json_pack("{s:s, s:s, s:I}", "is", "waiting", "tier",
                           s->wait.tier == ENGINE_TIER_PRELOADED ? "preloaded" : "started",
                           "memoryBytes", (json_int_t)s->wait.memory_bytes));
    s->told = s->wait.tier;
}

void warm_on_tier(struct supervisor *s, const struct engine_wait *wait)
{
    s->wait = *wait;
    container_use_for(&s->base, s->base.purpose == PURPOSE_START ? PURPOSE_LOAD : s->base.purpose);
    /* A reading above its limit is not of its own cgroup. */
    if (s->wait.memory_bytes > s->base.start->config->container.memory_bytes)
        s->wait.memory_bytes = 0;
    if (s->wait.tier == ENGINE_TIER_PRELOADED && !lower_cpu(s))
        s->base.started = false;
    else if (s->n_calls == 0 || s->wiping)
        pool_container_tell_waiting(s);
    s->wiping = false;
}

void pool_container_on_gone(struct supervisor *s, const struct err *e)
{
    struct call *run = s->calls[0];

    if (run && run->run.began_ms) {
        run->lost = *e;
    } else if (!s->wiping) {
        log_info("a warm container is gone: %s", e->text);
    } else {
        log_warn("a container is not used again: %s", e->text);
        channel_send(&s->base.channel, json_pack("{s:s}", "is", "doubted"));
    }
    s->wiping = false;
}

void pool_container_look(struct supervisor *s)
{
    struct err e = ERR_INIT;

    if (s->wiping && s->n_calls > 0)
        s->ready_by = deadline_min(s->ready_by, deadline_in_ms(HURRY_MS));
    if (!s->wiping || !deadline_passed(s->ready_by))
        return;
    err_set(&e, ERR_TIMEOUT, "it takes too long to wipe it");
    s->base.started = false;
    pool_container_on_gone(s, &e);
}

void warm_begin(struct supervisor *s)
{
    const struct supervisor_start *start = s->base.start;
    struct sandbox known = {.root = start->root};
    struct stat dir;
    struct err e = ERR_INIT;

    if (start->call.sandbox_dir)
        memcpy(known.name, start->call.sandbox_dir, sizeof known.name);
    AUTO_FREE char *data_path = start->warm_dir ? warm_dir_host_path(start->root, start->warm_dir)
                                                : sandbox_host_path(&known);
    if (!(start->warm_dir ? warm_dir_stat(start->root, start->warm_dir, &dir)
                          : fstatat(start->root->fd, known.name, &dir, AT_SYMLINK_NOFOLLOW) == 0)) {
        log_warn("cannot start a warm container: its directory is gone");
        return;
    }
    s->warm_dir = start->warm_dir;
    if (start_container(s, NULL, &dir, data_path, &e) == 0)
        s->base.unread = true;
    else if (e.kind != ERR_CANCELLED)
        log_warn("cannot start a warm container: %s", e.text);
}
