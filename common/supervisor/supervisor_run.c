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

#define BODY_MS        30000 /* for the body, which was sent behind the head */
#define KEEP_BYTES_MAX (8u * 1024 * 1024)

/* ---- the claim ---- */

static int check_request(const struct supervisor_start *start, struct run_request *r,
                         const struct run_body *body, struct err *e)
{
    const struct broker_limits *limits = &start->config->limits;

    if (strcmp(r->language, start->runner->language) != 0)
        return err_set(e, ERR_INTERNAL, "the run is in %s, the supervisor's runner in %s",
                       r->language, start->runner->language);
    if (!body->has_code || body->cwd)
        return err_set(e, ERR_INVALID, "a run has code, and no directory of its own");
    if (request_check(start, r, body, e) < 0)
        return -1;
    if (r->network > limits->network)
        return err_set(e, ERR_DENIED, "network: this server does not allow it (SANDBOX_NETWORK)");
    if (start->runner->protocol == 0 && (body->input_len > 0 || body->n_args > 0))
        return err_set(e, ERR_INVALID,
                       "stdin and args: the runner image for %s takes only code (it has no "
                       "sandbox.protocol label)",
                       start->runner->language);
    if (r->keep_bytes == 0 || r->keep_bytes > KEEP_BYTES_MAX)
        r->keep_bytes = limits->output_keep;
    return 0;
}

static int receive_request(struct supervisor *s, json_t *head, int connection, struct err *e)
{
    const struct sandbox_root *root = s->base.start->root;
    struct awaited_run *run = &s->run.awaited;

    run->head = json_incref(head); /* it is not changed */
    if (wire_run_head_decode(run->head, &run->request, &run->options, e) < 0 ||
        run_body_recv(connection, &run->body, deadline_in_ms(BODY_MS), e) < 0 ||
        check_request(s->base.start, &run->request, &run->body, e) < 0 ||
        supervisor_check_index(s, e) < 0 ||
        quota_check_disk(root->fd, &root->bounds, 0, e) < 0) /* before it may be kept */
        return -1;
    return 0;
}

static int take_names(struct supervisor *s, const json_t *message, struct err *e)
{
    const char *run_id = json_get_string(message, "runId");
    const char *image_id = json_get_string(message, "imageId");
    const char *sandbox_dir = json_get_string(message, "sandboxDir");

    if (!run_id || !run_id_ok(run_id) || !image_id || !sandbox_dir || !state_name_ok(sandbox_dir))
        return err_set(e, ERR_INTERNAL, "a run came without its id, its image or its directory");
    memcpy(s->run.awaited.id, run_id, sizeof s->run.awaited.id);
    /* Its name is known before its directory is there. */
    s->run.sandbox.root = s->base.start->root;
    memcpy(s->run.sandbox.name, sandbox_dir, sizeof s->run.sandbox.name);
    s->run.image_id = mem_strdup(image_id);
    return 0;
}

static void begin(struct supervisor *s, int64_t queue_ms)
{
    const struct run_request *r = &s->run.awaited.request;
    const struct awaited_run_plan plan = {
        .tenant = r->tenant,
        .conversation = r->conversation,
        .language = r->language,
        .sandbox = &s->run.sandbox,
        .most_ms = r->timeout_ms + SUPERVISOR_STARTS * CONTAINER_START_MS,
        .keep_bytes = r->keep_bytes,
        .queue_ms = queue_ms,
    };

    s->run.claimed = true;
    s->base.channel.run_id = s->run.awaited.id;
    s->base.channel.head = s->run.awaited.head;
    awaited_run_begin(&s->run.awaited, &s->base, &plan);
}

static void add_caller(struct supervisor *s, int connection)
{
    struct waiter *r = waiters_add(&s->base.waiters, connection, WAITER_CALLER);

    if (r)
        awaited_run_add_caller(&s->run.awaited, r, s->run.awaited.story.queue_ms);
    else
        close(connection);
}

/* Not of one that was replaced: another container of this process would be of it, too. */
static bool is_of_image(const struct supervisor *s, const char *image_id)
{
    return image_id && strcmp(image_id, s->base.start->runner->image_id) == 0;
}

void supervisor_claim(void *owner, const json_t *message, int take_connection)
{
    struct supervisor *s = owner;
    struct err e = ERR_INIT;

    if (s->run.claimed || s->run.refused || s->base.stop) {
        close(take_connection); /* without a word: the main process gives the run to another */
        return;
    }
    if (!is_of_image(s, json_get_string(message, "imageId"))) {
        close(take_connection);
        s->base.stop = true;
        return;
    }
    if (receive_request(s, json_object_get(message, "head"), take_connection, &e) < 0 ||
        take_names(s, message, &e) < 0) {
        waiter_refuse(take_connection, &e);
        s->run.refused = s->run.reusable = supervisor_may_reuse(s, false);
        s->base.stop = !s->run.refused;
        return;
    }
    trace_conversation(s->run.awaited.request.tenant, s->run.awaited.request.conversation);
    log_note(LOG_RUN, s->run.awaited.id);
    log_note(LOG_TRACE, json_get_string(s->run.awaited.head, "trace"));
    begin(s, json_get_integer(message, "queueMs", 0));
    add_caller(s, take_connection);
    channel_send(&s->base.channel, json_pack("{s:s}", "is", "running"));
}

/* ---- its files ---- */

/* Opens s->run.sandbox; started becomes false when the warm container cannot serve it. */
static int open_sandbox(struct supervisor *s, struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    const struct run_request *r = &s->run.awaited.request;
    struct err why = ERR_INIT;

    if (run_needs_new(r) || (r->single_use && s->use.tenant))
        s->base.started = false;
    if (s->base.started && s->warm_dir) {
        s->run.fresh = warm_dir_adopt(start->root, s->warm_dir, s->run.sandbox.name, r->tenant,
                                      &s->run.sandbox, &why) == 0;
        s->warm_dir = NULL;
        if (s->run.fresh) {
            supervisor_use_container(s);
            return 0;
        }
        if (why.kind != ERR_EXISTS) /* else the conversation got its sandbox meanwhile */
            log_warn("cannot use a warm container: %s", why.text);
        s->base.started = false;
    }
    if (sandbox_open_named(start->root, s->run.sandbox.name, r->tenant, &s->run.sandbox, e) < 0)
        return -1;
    supervisor_use_container(s);
    return 0;
}

/* Opens the first changed files for a caller that wants them so: it needs no call for each. */
static void open_files(struct supervisor *s, const json_t *result)
{
    size_t i;
    json_t *file;

    if (!s->run.awaited.options.open_files)
        return;
    json_array_foreach(json_object_get(result, "files"), i, file)
    {
        struct err e = ERR_INIT;
        struct stat st;

        if (!json_get_string(file, "url"))
            continue;
        /* Only their order tells them apart: after one that is gone, none is opened. */
        int fd = files_open(&s->run.sandbox, json_get_string(file, "name"), &st, &e);
        if (fd < 0 || !fds_add(&s->run.awaited.open_files, fd))
            return;
    }
}

void supervisor_note_use(struct supervisor *s)
{
    struct err e = ERR_INIT;

    if (s->run.use_noted || s->run.sandbox.fd < 0)
        return;
    s->run.use_noted = true;
    if (state_note_use(&s->run.sandbox, s->run.awaited.request.tenant,
                       s->run.awaited.request.conversation, &e) < 0)
        log_warn("cannot write a sandbox's record: %s", e.text);
}

/* ---- its program ---- */

static int run_program(struct supervisor *s, struct err *e)
{
    const struct run_body *body = &s->run.awaited.body;
    AUTO_REQUEST_ENV struct request_env env = request_env_new(body, &s->run.sandbox,
                                                              supervisor_index_url(s));
    AUTO_BUF struct buf load = BUF_INIT(ENGINE_PRELOAD_MAX + 1);

    /* In a container for this run alone it imports them itself. */
    if (s->base.start->runner->load && supervisor_may_serve_more(s))
        pool_needs(s->base.start->runner, s->run.awaited.options.imports, &load);
    const struct engine_command program = {
        .run = true,
        .streams = body->message.data,
        .streams_len = body->streams_len,
        .argv = body->args,
        .n_argv = body->n_args,
        .env = env.items,
        .n_env = env.n,
        .timeout_ms = s->run.awaited.request.timeout_ms,
        .load = buf_ok(&load) ? buf_str(&load) : NULL,
    };
    return supervisor_run_program(s, &program, e);
}

void supervisor_forget_run(struct supervisor *s)
{
    struct served_run *run = &s->run;

    supervisor_close_index(s);
    awaited_run_clear(&run->awaited);
    sandbox_close(&run->sandbox);
    free(run->image_id);
    log_forget();
    *run = SERVED_RUN_INIT;
}

json_t *supervisor_run(struct supervisor *s, struct err *e)
{
    struct awaited_run *run = &s->run.awaited;
    AUTO_SNAPSHOT struct snapshot after = {0};

    if (open_sandbox(s, e) < 0)
        return NULL;
    s->run.usage.partial = true; /* as long as the files are not listed */
    snapshot_take_empty(&s->run.sandbox, &run->before);
    if ((s->run.fresh ? quota_check_usage(&s->run.sandbox, &run->before.usage, 0, e)
                      : retention_notice_before(&s->run.sandbox, &run->before, e)) < 0 ||
        supervisor_open_index(s, e) < 0)
        return NULL;
    if (run->killed == KILLED_BY_CANCEL || run_program(s, e) < 0) {
        if (run->killed != KILLED_BY_CANCEL && run->over.kind == ERR_NONE)
            return NULL;
        awaited_run_set_nothing_ran(run);
    }
    supervisor_close_index(s);
    if (trim_after(&s->run.sandbox, &run->before, s->run.source != NULL, &after, &run->over, e) < 0)
        return NULL;
    json_t *result = awaited_run_result(run, &after);
    open_files(s, result);
    s->run.usage = after.usage;
    if (s->run.sandbox.made)
        retention_notice_expired(&s->run.sandbox, result);
    supervisor_add_installed(s, result);
    return result;
}
