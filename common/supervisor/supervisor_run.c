#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/trace.h"
#include "common/protocol/run_id.h"
#include "common/protocol/wire.h"
#include "common/records/run_result.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/state/trim.h"
#include "common/sandbox/warm_dir.h"
#include "common/scheduler/pool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NEXT_MS        1000 /* for the main process to say whether a used container is to be wiped */
#define LINGER_MS      100
#define WIPE_MS        5000 /* for the container; it gives up before */
#define KEEP_BYTES_MAX (8u * 1024 * 1024)

/* ---- what it wants ---- */

int run_take_names(struct supervisor *s, struct call *call, const json_t *message, struct err *e)
{
    const char *run_id = json_get_string(message, "runId");
    const char *sandbox_dir = json_get_string(message, "sandboxDir");

    if (!run_id || !run_id_ok(run_id) || !sandbox_dir || !state_name_ok(sandbox_dir))
        return err_set(e, ERR_INTERNAL, "a run came without its id or its directory");
    memcpy(call->run.id, run_id, sizeof call->run.id);
    /* Its name is known before its directory is there. */
    s->sandbox.root = s->base.start->root;
    memcpy(s->sandbox.name, sandbox_dir, sizeof s->sandbox.name);
    return 0;
}

int run_check(struct supervisor *s, struct call *call, struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    const struct broker_limits *limits = &start->config->limits;
    const struct run_body *body = &call->run.body;
    struct run_request *r = &call->run.request;

    if (!body->has_code || body->cwd)
        return err_set(e, ERR_INVALID, "a run has code, and no directory of its own");
    if (r->network > limits->network)
        return err_set(e, ERR_DENIED, "network: this server does not allow it (SANDBOX_NETWORK)");
    if (start->runner->protocol == 0 && (body->input_len > 0 || body->n_args > 0))
        return err_set(e, ERR_INVALID,
                       "stdin and args: the runner image for %s takes only code (it has no "
                       "sandbox.protocol label)",
                       r->language);
    if (r->keep_bytes == 0 || r->keep_bytes > KEEP_BYTES_MAX)
        r->keep_bytes = limits->output_keep;
    if (run_check_index(s, call, e) < 0)
        return -1;
    return quota_check_disk(start->root->fd, &start->root->bounds, 0, e); /* it may be kept */
}

void run_begin(struct supervisor *s, struct call *call)
{
    const struct run_request *r = &call->run.request;
    const struct awaited_run_plan plan = {
        .tenant = r->tenant,
        .conversation = r->conversation,
        .language = r->language,
        .sandbox = &s->sandbox,
        .most_ms = r->timeout_ms + SUPERVISOR_STARTS * CONTAINER_START_MS,
        .keep_bytes = r->keep_bytes,
        .queue_ms = call->queue_ms,
    };

    trace_conversation(r->tenant, r->conversation);
    log_note(LOG_RUN, call->run.id);
    log_note(LOG_TRACE, json_get_string(call->run.head, "trace"));
    s->base.channel.run_id = call->run.id;
    s->base.channel.head = call->run.head;
    call->phase = CALL_BEFORE;
    call_begin_run(s, call, &plan);
    channel_send(&s->base.channel, json_pack("{s:s}", "is", "running"));
}

/* ---- its files ---- */

/* Opens s->sandbox; started becomes false when the warm container cannot serve it. */
static int open_sandbox(struct supervisor *s, struct call *run, struct err *e)
{
    const struct sandbox_root *root = s->base.start->root;
    const struct run_request *r = &run->run.request;
    struct err why = ERR_INIT;

    if (run_needs_new(r) || (r->single_use && s->use.tenant))
        s->base.started = false;
    if (s->base.started && s->warm_dir) {
        run->fresh = warm_dir_adopt(root, s->warm_dir, s->sandbox.name, r->tenant, &s->sandbox,
                                    &why) == 0;
        s->warm_dir = NULL;
        if (run->fresh) {
            run_use_container(s, run);
            return 0;
        }
        if (why.kind != ERR_EXISTS) /* else the conversation got its sandbox meanwhile */
            log_warn("cannot use a warm container: %s", why.text);
        s->base.started = false;
    }
    if (sandbox_open_named(root, s->sandbox.name, r->tenant, &s->sandbox, e) < 0)
        return -1;
    run_use_container(s, run);
    return 0;
}

/* Opens the first changed files for a caller that wants them so: it needs no call for each. */
static void open_files(const struct supervisor *s, struct call *run, const json_t *result)
{
    size_t i;
    json_t *file;

    if (!run->run.options.open_files)
        return;
    json_array_foreach(json_object_get(result, "files"), i, file)
    {
        struct err e = ERR_INIT;
        struct stat st;

        if (!json_get_string(file, "url"))
            continue;
        /* Only their order tells them apart: after one that is gone, none is opened. */
        int fd = files_open(&s->sandbox, json_get_string(file, "name"), &st, &e);
        if (fd < 0 || !fds_add(&run->run.open_files, fd))
            return;
    }
}

/* ---- its program ---- */

static int start_program(struct supervisor *s, struct call *run, struct err *e)
{
    const struct run_body *body = &run->run.body;
    AUTO_REQUEST_ENV struct request_env env = request_env_new(body, &s->sandbox,
                                                              run_index_url(run));
    AUTO_BUF struct buf load = BUF_INIT(ENGINE_PRELOAD_MAX + 1);

    /* In a container for this run alone it imports them itself. */
    if (run->runner->load && run_may_share(s, run))
        pool_needs(run->runner, run->run.options.imports, &load);
    const struct engine_command program = {
        .run = true,
        /* An installer's container has no languages. */
        .language = run->source ? NULL : engine_runner_language(run->runner),
        .streams = body->message.data,
        .streams_len = body->streams_len,
        .argv = body->args,
        .n_argv = body->n_args,
        .env = env.items,
        .n_env = env.n,
        .timeout_ms = run->run.request.timeout_ms,
        .load = buf_ok(&load) ? buf_str(&load) : NULL,
    };
    return run_program(s, run, &program, e);
}

static json_t *run_result(struct supervisor *s, struct call *run, struct err *e)
{
    struct awaited_run *awaited = &run->run;
    AUTO_SNAPSHOT struct snapshot after = {0};

    if (open_sandbox(s, run, e) < 0)
        return NULL;
    run->usage.partial = true; /* as long as the files are not listed */
    snapshot_take_empty(&s->sandbox, &awaited->before);
    if ((run->fresh ? quota_check_usage(&s->sandbox, &awaited->before.usage, 0, e)
                    : retention_notice_before(&s->sandbox, &awaited->before, e)) < 0 ||
        run_open_index(s, run, e) < 0)
        return NULL;
    if (awaited->killed == KILLED_BY_CANCEL || start_program(s, run, e) < 0) {
        if (awaited->killed != KILLED_BY_CANCEL && awaited->over.kind == ERR_NONE)
            return NULL;
        awaited_run_set_nothing_ran(awaited);
    }
    run->phase = CALL_AFTER;
    run_close_index(s, run);
    if (trim_after(&s->sandbox, &awaited->before, run->source != NULL, &after, &awaited->over, e) <
        0)
        return NULL;
    json_t *result = awaited_run_result(awaited, &after);
    open_files(s, run, result);
    run->usage = after.usage;
    if (s->sandbox.made)
        retention_notice_expired(&s->sandbox, result);
    run_add_installed(run, result);
    return result;
}

/* ---- from its body to the next run ---- */

struct call *run_ready(const struct supervisor *s)
{
    struct call *run = s->calls[0];

    return run && run->row->op == OP_RUN && run->phase == CALL_BEFORE && !s->wiping ? run : NULL;
}

/* A run is over (NULL: it was refused): tells the main process, which says "next" to a container
 * that may be used again. */
static void tell_end(struct supervisor *s, const struct call *run, bool reusable)
{
    const struct engine_outcome *o = run ? &run->run.outcome : NULL;
    const int64_t ran_us = o && o->started_us > 0 ? o->ended_us - o->started_us : 0;

    s->told = ENGINE_TIER_NONE;
    channel_send(&s->base.channel, json_pack("{s:s, s:b, s:I}", "is", "ended", "reusable", reusable,
                                             "ranMs", (json_int_t)(ran_us + 999) / 1000));
    if (reusable)
        s->next_by = deadline_in_ms(NEXT_MS);
    else
        s->base.stop = true;
}

void run_serve(struct supervisor *s, struct call *run)
{
    struct err e = ERR_INIT;

    if (s->base.started && s->told == ENGINE_TIER_NONE)
        channel_send(&s->base.channel, json_pack("{s:s}", "is", "started"));
    container_tick(&s->base);
    json_t *result = run_result(s, run, &e);
    const bool ran = result != NULL;

    run->phase = CALL_AFTER;
    const bool reusable = run_leaves_container(s, run, ran);
    /* Before the answer: its caller may ask for the tenant's files next, or delete them. */
    if (s->sandbox.fd >= 0)
        call_note_use(s, run);
    if (ran && run->usage.partial) /* the size is counted when it is needed */
        state_forget_size(s->base.start->root, s->sandbox.name);
    else if (ran)
        state_note_size(s->base.start->root, s->sandbox.name, &run->usage);
    sandbox_close(&s->sandbox);
    s->base.waiters.output_at = s->base.channel.redial = DEADLINE_NEVER;
    if (!ran)
        container_log_failure(&s->base, "run", run->run.id, &e);
    tell_end(s, run, reusable);
    call_answer(s, run, ran ? wire_result_new(result) : wire_error_new(&e));
}

/* Drops everything of the run, which is over; run NULL: it was refused. */
static void run_forget(struct supervisor *s, struct call *run)
{
    s->next_by = DEADLINE_NEVER;
    s->base.channel.run_id = s->base.start->container_id;
    s->base.channel.head = NULL;
    log_forget();
    if (!run)
        return;
    run_close_index(s, run);
    call_remove(s, run);
}

void pool_container_on_next(void *owner, const json_t *message, int no_connection)
{
    struct supervisor *s = owner;
    struct call *run = s->calls[0];
    const bool used = run && run->run.began_ms != 0;
    struct err e = ERR_INIT;

    (void)message;
    (void)no_connection;
    if (s->next_by.at_ms < 0)
        return;
    run_forget(s, run);
    s->base.unread = s->base.started; /* what has come meanwhile */
    if (!used && s->wait.tier != ENGINE_TIER_NONE && s->told == ENGINE_TIER_NONE) {
        pool_container_tell_waiting(s); /* it still does */
    } else if (used) {
        s->wait = (struct engine_wait){0};
        s->wiping = s->base.engine->ops->next(s->base.engine, &e) == 0;
        s->ready_by = deadline_in_ms(WIPE_MS);
    }
    if (used && !s->wiping) {
        log_info("a container is not used again: %s", e.text);
        s->base.stop = true;
    }
}

bool pool_container_goes_on(struct supervisor *s)
{
    pool_container_look(s);
    if (s->refused)
        tell_end(s, NULL, pool_container_stays(s));
    s->refused = false;
    if (run_ready(s))
        return true;
    if (s->next_by.at_ms >= 0) /* the main process has to say how it goes on */
        return s->base.started && !s->base.stop && s->base.channel.fd >= 0 &&
               !deadline_passed(s->next_by);
    if (!s->base.started && s->n_calls == 0) /* a run that is on its way gets another container */
        container_tick(&s->base);
    return (s->base.started || s->n_calls > 0) && !s->base.stop;
}

/* ---- its end ---- */

/* Removing the container keeps the engine busy: the caller's next call goes first. */
static void linger(struct supervisor *s)
{
    struct deadline end = deadline_in_ms(LINGER_MS);

    while (!deadline_passed(end))
        container_turn(&s->base, end);
}

void pool_container_end(struct supervisor *s)
{
    struct err e = ERR_INIT;

    err_set(&e, ERR_BUSY, "the server is stopping; the program has not begun");
    if (s->calls[0] && s->calls[0]->phase == CALL_QUEUED)
        call_refuse(s, s->calls[0], &e);
    container_drain(&s->base);
    if (s->calls[0])
        linger(s);
    container_finish(&s->base);
    s->base.stop = true;
    channel_close(&s->base.channel);
    container_drain(&s->base);
    run_forget(s, s->calls[0]);
}
