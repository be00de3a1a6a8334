#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/wire.h"
#include "common/records/run_lock.h"
#include "common/records/run_result.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/state/trim.h"
#include "common/sandbox/warm_dir.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BODY_MS        30000 /* for the body, which was sent behind the head */
#define KEEP_BYTES_MAX (8u * 1024 * 1024)
#define WAIT_MAX_S     7200 /* the pool replaces a warm container long before that */

/* ---- the claim ---- */

static int check_request(const struct supervisor_start *start, struct run_request *r, struct err *e)
{
    const struct broker_limits *limits = &start->config->limits;

    if (strcmp(r->language, start->runner->language) != 0)
        return err_set(e, ERR_INTERNAL, "the run is in %s, the supervisor's runner in %s",
                       r->language, start->runner->language);
    if (container_check_request(start, r, e) < 0)
        return -1;
    if (r->network > limits->network)
        return err_set(e, ERR_DENIED, "network: this server does not allow it (SANDBOX_NETWORK)");
    if (start->runner->protocol == 0 && (r->input.data || r->n_args > 0))
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

    s->run.head = json_incref(head); /* it is not changed */
    if (wire_run_head_decode(s->run.head, &s->run.request, &s->run.awaited.options, e) < 0 ||
        !(s->run.body = wire_recv(connection, NULL, deadline_in_ms(BODY_MS), e)) ||
        wire_run_body_decode(s->run.body, &s->run.request, e) < 0 ||
        check_request(s->base.start, &s->run.request, e) < 0 || supervisor_check_index(s, e) < 0 ||
        quota_check_disk(root->fd, &root->bounds, 0, e) < 0) /* before it may be kept */
        return -1;
    /* Its name is known before its directory is there. */
    s->run.sandbox.root = root;
    return sandbox_name(root, s->run.request.tenant, s->run.request.conversation,
                        s->run.sandbox.name, e);
}

/* The id of a container's first run is the container's, whose lock is held already. */
static int take_id(struct supervisor *s, const json_t *message, struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    const char *run_id = json_get_string(message, "runId");
    const char *image_id = json_get_string(message, "imageId");

    if (!run_id || !run_id_ok(run_id) || !image_id)
        return err_set(e, ERR_INTERNAL, "a run came without its id or its image");
    memcpy(s->run.awaited.id, run_id, sizeof s->run.awaited.id);
    s->run.image_id = mem_strdup(image_id);
    if (strcmp(run_id, start->container_id) == 0)
        return 0;
    s->run.lock_fd = run_lock_take(start->root->fd, run_id, e);
    return s->run.lock_fd < 0 ? -1 : 0;
}

static void record_init(struct supervisor *s)
{
    const struct run_request *r = &s->run.request;
    int64_t now = clock_unix_s();

    s->run.awaited.record = (struct run_record){
        .tenant = (char *)(uintptr_t)r->tenant,
        .conversation = (char *)(uintptr_t)r->conversation,
        .language = (char *)(uintptr_t)r->language,
        .created = now,
        .deadline = now + (int64_t)(r->timeout_ms + SUPERVISOR_STARTS * CONTAINER_START_MS) / 1000 +
                    1,
        .ttl_s = (int64_t)s->base.start->config->limits.result_ttl_ms / 1000,
    };
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

    if (s->run.claimed || s->run.refused || s->stop) {
        close(take_connection); /* without a word: the main process gives the run to another */
        return;
    }
    if (!is_of_image(s, json_get_string(message, "imageId"))) {
        close(take_connection);
        s->stop = true;
        return;
    }
    if (receive_request(s, json_object_get(message, "head"), take_connection, &e) < 0 ||
        take_id(s, message, &e) < 0) {
        waiter_refuse(take_connection, &e);
        s->run.refused = s->run.reusable = supervisor_may_reuse(s, false, NULL);
        s->stop = !s->run.refused;
        return;
    }
    s->run.claimed = true;
    s->run.awaited.story = (struct run_story){.sandbox = &s->run.sandbox,
                                              .queue_ms = json_get_integer(message, "queueMs", 0)};
    record_init(s);
    awaited_run_begin(&s->run.awaited, s->base.start, &s->base.waiters, s->run.request.keep_bytes);
    add_caller(s, take_connection);
    channel_send(&s->base.channel, json_pack("{s:s}", "is", "running"));
}

/* ---- its files ---- */

/* Strings are borrowed; false: the directory cannot be looked at. */
static bool use_of_run(const struct supervisor *s, struct container_use *out)
{
    struct stat st;

    if (fstat(s->run.sandbox.fd, &st) < 0)
        return false;
    *out = (struct container_use){.tenant = (char *)(uintptr_t)s->run.request.tenant,
                                  .conversation = (char *)(uintptr_t)s->run.request.conversation,
                                  .dev = st.st_dev,
                                  .ino = st.st_ino,
                                  .uid = st.st_uid,
                                  .gid = st.st_gid,
                                  .language = s->run.request.language,
                                  .image_id = s->run.image_id};
    return true;
}

static void use_begin(struct container_use *use, const struct supervisor *s)
{
    use->tenant = mem_strdup(s->run.request.tenant);
    use->conversation = mem_strdup(s->run.request.conversation);
}

/* Lets the run have the container that waits, or none. */
static void use_container(struct supervisor *s)
{
    struct container_use wanted;

    s->started = s->started && use_of_run(s, &wanted) && container_may_serve(&s->use, &wanted);
    if (s->started && !s->use.tenant)
        use_begin(&s->use, s);
}

/* Opens s->run.sandbox; started becomes false when the warm container cannot serve it. */
static int open_sandbox(struct supervisor *s, struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    const struct run_request *r = &s->run.request;
    struct err why = ERR_INIT;

    if (run_needs_new(r) || (r->single_use && s->use.tenant))
        s->started = false;
    if (s->started && s->warm_dir) {
        s->run.fresh = warm_dir_adopt(start->root, s->warm_dir, r->tenant, r->conversation,
                                      &s->run.sandbox, &why) == 0;
        s->warm_dir = NULL;
        if (s->run.fresh) {
            use_container(s);
            return 0;
        }
        if (why.kind != ERR_EXISTS) /* else the conversation got its sandbox meanwhile */
            log_warn("cannot use a warm container: %s", why.text);
        s->started = false;
    }
    if (sandbox_open(start->root, r->tenant, r->conversation, &s->run.sandbox, e) < 0)
        return -1;
    use_container(s);
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
    if (state_note_use(&s->run.sandbox, s->run.request.tenant, s->run.request.conversation, &e) < 0)
        log_warn("cannot write a sandbox's record: %s", e.text);
}

/* ---- its container ---- */

static const char *index_url(const struct supervisor *s)
{
    return s->run.source ? s->run.source->url : NULL;
}

/* Whether the run's container may be one for further runs, too. */
static bool may_serve_more(const struct supervisor *s)
{
    const struct supervisor_start *start = s->base.start;

    return pool_settings_may_reuse(&start->config->pool, start->runner->language) &&
           !run_needs_new(&s->run.request) && !s->run.request.single_use;
}

bool supervisor_may_reuse(const struct supervisor *s, bool ran, const struct engine_outcome *out)
{
    if (!may_serve_more(s) || s->base.start->runner->protocol == 0 || s->run.cancelled)
        return false;
    if (s->run.awaited.began_ms == 0) /* it was refused, and its container still waits */
        return s->started && !s->warm_dir;
    return ran && out->end == ENGINE_EXITED && !out->out_of_memory && s->run.over.kind == ERR_NONE;
}

int supervisor_start_container(struct supervisor *s, const struct stat *dir, const char *data_path,
                               struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    bool waits = !s->run.claimed || may_serve_more(s);
    uint64_t run_ms = waits ? start->config->limits.timeout_max_ms : s->run.request.timeout_ms;
    AUTO_CONTAINER_ENV struct container_env env = {0};
    AUTO_FREE char *index_path = s->run.source
                                     ? index_dir_host_path(start->root, start->container_id)
                                     : NULL;
    struct engine_spec spec = {
        .protocol = start->runner->protocol,
        .data_path = data_path,
        .deadline_unix = clock_unix_s() + (waits ? WAIT_MAX_S : 0) +
                         (int64_t)(run_ms + CONTAINER_START_MS) / 1000 + 1,
        .network = s->run.request.network,
        .index_path = index_path,
    };

    if (start->runner->protocol == 0 && s->run.claimed) {
        env = container_env_new(&s->run.request, &s->run.sandbox, index_url(s));
        spec.env = env.items;
        spec.n_env = env.n;
    }
    container_use_clear(&s->use);
    s->use = (struct container_use){.dev = dir->st_dev,
                                    .ino = dir->st_ino,
                                    .uid = dir->st_uid,
                                    .gid = dir->st_gid,
                                    .language = start->runner->language,
                                    .image_id = start->runner->image_id};
    if (s->run.claimed)
        use_begin(&s->use, s);
    s->cpu_raised = false;
    s->started = container_start(&s->base, (struct sandbox_owner){dir->st_uid, dir->st_gid}, &spec,
                                 e) == 0;
    if (s->started && s->run.claimed)
        channel_send(&s->base.channel, json_pack("{s:s}", "is", "started"));
    return s->started ? 0 : -1;
}

/* The kernel begins a new account with a new limit: what was used under the raised one throttles no
 * program. */
bool supervisor_lower_cpu(struct supervisor *s)
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

/* In the warm container or a new one; in another if that was lost before it got the program. */
static int run_somewhere(struct supervisor *s, const struct engine_command *program,
                         const struct snapshot *before, struct engine_outcome *out, struct err *e)
{
    AUTO_FREE char *data_path = sandbox_host_path(&s->run.sandbox);
    struct stat dir;
    struct engine *engine = s->base.engine;
    struct engine_sink sink = {.output = supervisor_take_output, .ctx = s};

    if (fstat(s->run.sandbox.fd, &dir) < 0)
        return err_errno(e, "the sandbox directory");
    s->started = s->started && supervisor_lower_cpu(s);
    for (int tries = 1;; tries++) {
        if (!s->started && supervisor_start_container(s, &dir, data_path, e) < 0)
            return -1;
        struct deadline d = deadline_in_ms((int64_t)program->timeout_ms + CONTAINER_START_MS);
        s->run.awaited.began_ms = clock_mono_ms();
        disk_watch_begin(&s->base.disk, &s->base.channel.loop, &s->run.sandbox, before);
        /* The first tick while the program runs does what need not be done before it. */
        channel_ring_at(&s->base.channel, deadline_in_ms(0));
        int result = engine->ops->run(engine, program, &sink, &s->base.attend, d, out, e);
        s->run.over = s->base.disk.over;
        disk_watch_end(&s->base.disk);
        if (result == 0)
            return 0;
        if (e->kind != ERR_LOST || tries == SUPERVISOR_STARTS || s->stop)
            return -1;
        log_debug("run %s: %s; starting another container", s->run.awaited.id, e->text);
        s->started = false;
    }
}

static int run_program(struct supervisor *s, const struct snapshot *before,
                       struct engine_outcome *out, struct err *e)
{
    const struct run_request *r = &s->run.request;
    AUTO_CONTAINER_ENV struct container_env env = container_env_new(r, &s->run.sandbox,
                                                                    index_url(s));
    AUTO_FREE const char **args = mem_array(r->n_args + 1, sizeof *args);

    for (size_t i = 0; i < r->n_args; i++)
        args[i] = r->args[i].data;
    const struct engine_command program = {
        .code = r->code.data ? r->code.data : "",
        .code_len = r->code.len,
        .input = r->input.data,
        .input_len = r->input.len,
        .argv = args,
        .n_argv = r->n_args,
        .env = env.items,
        .n_env = env.n,
        .timeout_ms = r->timeout_ms,
    };
    return run_somewhere(s, &program, before, out, e);
}

void supervisor_forget_run(struct supervisor *s)
{
    struct served_run *run = &s->run;

    supervisor_close_index(s);
    awaited_run_clear(&run->awaited);
    sandbox_close(&run->sandbox);
    wire_run_decoded_clear(&run->request);
    json_decref(run->head);
    json_decref(run->body);
    free(run->image_id);
    if (run->lock_fd >= 0)
        run_lock_remove(s->base.start->root->fd, run->awaited.id);
    auto_close_fd(&run->lock_fd);
    *run = SERVED_RUN_INIT;
}

json_t *supervisor_run(struct supervisor *s, struct engine_outcome *out, struct err *e)
{
    AUTO_SNAPSHOT struct snapshot before = {0};
    AUTO_SNAPSHOT struct snapshot after = {0};

    if (open_sandbox(s, e) < 0)
        return NULL;
    s->run.usage.partial = true; /* as long as the files are not listed */
    snapshot_take_empty(&s->run.sandbox, &before);
    if ((s->run.fresh ? quota_check_usage(&s->run.sandbox, &before.usage, 0, e)
                      : retention_notice_before(&s->run.sandbox, &before, e)) < 0 ||
        supervisor_open_index(s, e) < 0)
        return NULL;
    if (s->run.cancelled || run_program(s, &before, out, e) < 0) {
        if (!s->run.cancelled && s->run.over.kind == ERR_NONE)
            return NULL;
        int64_t now = clock_mono_us(); /* cancelled before there was a program */
        *out = (struct engine_outcome){
            .end = ENGINE_CANCELLED, .exit_code = -1, .started_us = now, .ended_us = now};
    }
    supervisor_close_index(s);
    if (trim_after(&s->run.sandbox, &before, s->run.source != NULL, &after, &s->run.over, e) < 0)
        return NULL;
    if (s->run.over.kind != ERR_NONE && !s->run.cancelled)
        out->end = ENGINE_DISK_LIMIT;
    json_t *result = run_result_new(&s->run.awaited.story, out, &before, &after);
    open_files(s, result);
    s->run.usage = after.usage;
    retention_notice_over(result, &s->run.over);
    retention_notice_after(&s->run.sandbox, &after, result);
    if (s->run.sandbox.made)
        retention_notice_expired(&s->run.sandbox, result);
    supervisor_add_installed(s, result);
    return result;
}
