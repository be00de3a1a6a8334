#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/index/index.h"
#include "common/index/proxy.h"
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
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define BODY_MS        30000 /* for the body, which was sent behind the head */
#define KEEP_BYTES_MAX (8u * 1024 * 1024)
#define WAIT_MAX_S     7200 /* the pool replaces a warm container long before that */
#define INSTALLED_MAX  1000 /* packages that a result names */

/* ---- a run that installs packages: its only network is our proxy to the package index ---- */

static int check_packages(const struct index_ecosystem *eco, const struct run_request *r,
                          struct err *e)
{
    if (r->n_args == 0 || r->n_args > INDEX_PACKAGES_MAX)
        return err_set(e, ERR_LIMIT, "packages: from 1 to %d are installed at once",
                       INDEX_PACKAGES_MAX);
    for (size_t i = 0; i < r->n_args; i++)
        if (index_check_package(eco, r->args[i].data, e) < 0)
            return -1;
    return 0;
}

static int run_check_index(struct supervisor *s, struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    const struct run_request *r = &s->request;
    const struct index_ecosystem *eco = index_ecosystem_of(r->language);

    if (!r->index)
        return 0;
    if (r->network || r->code.len > 0 || r->input.data || r->n_env > 0)
        return err_set(e, ERR_INVALID, "an installation takes packages and nothing else");
    s->source = eco ? index_source_of(start->config->index, r->language) : NULL;
    if (!s->source)
        return err_set(e, ERR_DENIED,
                       "language: this server has no package index for %s (SANDBOX_INDEXES)",
                       r->language);
    if (!start->runner->install)
        return err_set(e, ERR_DENIED,
                       "language: the server's runner image for %s cannot install packages (label "
                       "sandbox.install)",
                       r->language);
    return check_packages(eco, r, e);
}

static int run_open_index(struct supervisor *s, struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    struct index_rules rules = {.source = s->source};

    if (!s->source)
        return 0;
    rules.private_ok = start->config->index->private_ok;
    AUTO_FD int fd = index_dir_make(start->root, start->run_id, start->config->index_ca, e);
    if (fd < 0)
        return -1;
    pid_t pid = index_proxy_start(fd, &rules, e);
    if (pid < 0) {
        index_dir_remove(start->root->fd, start->run_id);
        return -1;
    }
    s->index_proxy = pid;
    return 0;
}

void supervisor_close_index(struct supervisor *s)
{
    if (s->index_proxy <= 0)
        return;
    kill(s->index_proxy, SIGKILL); /* its connections die with it */
    waitpid(s->index_proxy, NULL, 0);
    s->index_proxy = 0;
    index_dir_remove(s->base.start->root->fd, s->base.start->run_id);
}

/* Only what a result may have: the container is not trusted. */
static json_t *copy_installed(const json_t *list)
{
    json_t *copy = json_array();
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
    {
        json_t *name = json_object_get(item, "name"), *version = json_object_get(item, "version");

        if (json_is_string(name) && json_is_string(version) && i < INSTALLED_MAX)
            json_array_append_new(copy, json_pack("{s:O, s:O}", "name", name, "version", version));
    }
    return copy;
}

/* The installer prints one line of JSON, {"installed": […]} or {"reason": "…"}; what the package
 * manager prints is on stderr. */
static void run_add_installed(const struct supervisor *s, json_t *result)
{
    const json_t *text = json_object_get(result, "stdout");
    struct err e = ERR_INIT;

    if (!s->source)
        return;
    json_auto_t *report = json_parse(json_string_value(text), json_string_length(text), 8, &e);
    json_t *reason = json_object_get(report, "reason");
    json_object_set_new(result, "installed", copy_installed(json_object_get(report, "installed")));
    if (s->over.kind != ERR_NONE) { /* it is removed again */
        json_object_set_new(result, "installed", json_array());
        json_object_set_new(result, "reason", json_string(s->over.text));
    } else if (json_is_string(reason)) {
        json_object_set(result, "reason", reason);
    }
    json_object_set(result, "output", json_object_get(result, "stderr"));
    json_object_set_new(result, "stdout", json_string(""));
}

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

    s->head = json_incref(head); /* it is not changed */
    if (wire_run_head_decode(s->head, &s->request, &s->options, e) < 0 ||
        !(s->body = wire_recv(connection, NULL, deadline_in_ms(BODY_MS), e)) ||
        wire_run_body_decode(s->body, &s->request, e) < 0 ||
        check_request(s->base.start, &s->request, e) < 0 || run_check_index(s, e) < 0 ||
        quota_check_disk(root->fd, &root->bounds, 0, e) < 0) /* before it may be kept */
        return -1;
    /* Its name is known before its directory is there. */
    s->sandbox.root = root;
    return sandbox_name(root, s->request.tenant, s->request.conversation, s->sandbox.name, e);
}

static void record_init(struct supervisor *s)
{
    const struct run_request *r = &s->request;
    int64_t now = clock_unix_s();

    s->record = (struct run_record){
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
    int64_t left_ms = (int64_t)s->options.wait_ms - s->story.queue_ms;

    if (!r) {
        close(connection);
        return;
    }
    r->live = s->options.live;
    r->output = r->live ? s->output : NULL;
    if (s->options.wait_ms > 0)
        r->answer_by = deadline_in_ms(left_ms > 0 ? left_ms : 0);
    if (s->options.background)
        r->answer_by = deadline_in_ms(0);
}

void supervisor_claim(void *owner, const json_t *message, int take_connection)
{
    struct supervisor *s = owner;
    struct err e = ERR_INIT;

    if (s->claimed || s->stop) {
        close(take_connection); /* without a word: the main process gives the run to another */
        return;
    }
    if (receive_request(s, json_object_get(message, "head"), take_connection, &e) < 0) {
        waiter_refuse(take_connection, &e);
        s->stop = true;
        return;
    }
    s->claimed = true;
    s->story = (struct run_story){.run_id = s->base.start->run_id,
                                  .sandbox = &s->sandbox,
                                  .capture = &s->capture,
                                  .queue_ms = json_get_integer(message, "queueMs", 0)};
    record_init(s);
    run_capture_init(&s->capture, s->request.keep_bytes, s->base.start->config->limits.output_max);
    add_caller(s, take_connection);
    channel_send(&s->base.channel, json_pack("{s:s}", "is", "running"));
}

/* ---- its files ---- */

/* Was the warm container started on the sandbox's directory, as its owner? */
static bool is_warm_on_it(const struct supervisor *s)
{
    struct stat now;

    return fstat(s->sandbox.fd, &now) == 0 && now.st_ino == s->dir.st_ino &&
           now.st_uid == s->dir.st_uid && now.st_gid == s->dir.st_gid;
}

/* Opens s->sandbox; started becomes false when the warm container cannot serve it. */
static int open_sandbox(struct supervisor *s, struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    const struct run_request *r = &s->request;
    struct err why = ERR_INIT;

    if (run_needs_new(r))
        s->started = false;
    if (s->started && start->warm_dir) {
        s->fresh = warm_dir_adopt(start->root, start->warm_dir, r->tenant, r->conversation,
                                  &s->sandbox, &why) == 0;
        if (s->fresh)
            return 0;
        if (why.kind != ERR_EXISTS) /* else the conversation got its sandbox meanwhile */
            log_warn("cannot use a warm container: %s", why.text);
        s->started = false;
    }
    if (sandbox_open(start->root, r->tenant, r->conversation, &s->sandbox, e) < 0)
        return -1;
    if (s->started && !is_warm_on_it(s))
        s->started = false;
    return 0;
}

/* Opens the first changed files for a caller that wants them so: it needs no call for each. */
static void open_files(struct supervisor *s, const json_t *result)
{
    size_t i;
    json_t *file;

    if (!s->options.open_files)
        return;
    json_array_foreach(json_object_get(result, "files"), i, file)
    {
        struct err e = ERR_INIT;
        struct stat st;

        if (!json_get_string(file, "url"))
            continue;
        /* Only their order tells them apart: after one that is gone, none is opened. */
        int fd = files_open(&s->sandbox, json_get_string(file, "name"), &st, &e);
        if (fd < 0 || !fds_add(&s->open_files, fd))
            return;
    }
}

void supervisor_note_use(struct supervisor *s)
{
    struct err e = ERR_INIT;

    if (s->use_noted || s->sandbox.fd < 0)
        return;
    s->use_noted = true;
    if (state_note_use(&s->sandbox, s->request.tenant, s->request.conversation, &e) < 0)
        log_warn("cannot write a sandbox's record: %s", e.text);
}

/* ---- its container ---- */

static const char *index_url(const struct supervisor *s)
{
    return s->source ? s->source->url : NULL;
}

int supervisor_start_container(struct supervisor *s, const char *data_path, struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    uint64_t run_ms = s->claimed ? s->request.timeout_ms : start->config->limits.timeout_max_ms;
    AUTO_CONTAINER_ENV struct container_env env = {0};
    AUTO_FREE char *index_path = s->source ? index_dir_host_path(start->root, start->run_id) : NULL;
    struct engine_spec spec = {
        .protocol = start->runner->protocol,
        .data_path = data_path,
        .deadline_unix = clock_unix_s() + (s->claimed ? 0 : WAIT_MAX_S) +
                         (int64_t)(run_ms + CONTAINER_START_MS) / 1000 + 1,
        .network = s->request.network,
        .index_path = index_path,
    };

    if (start->runner->protocol == 0 && s->claimed) {
        env = container_env_new(&s->request, &s->sandbox, index_url(s));
        spec.env = env.items;
        spec.n_env = env.n;
    }
    struct sandbox_owner owner = {s->dir.st_uid, s->dir.st_gid};
    if (s->sandbox.fd >= 0)
        owner = s->sandbox.owner;
    s->cpu_raised = false;
    s->started = container_start(&s->base, owner, &spec, e) == 0;
    if (s->started && s->claimed)
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
    AUTO_FREE char *data_path = sandbox_host_path(&s->sandbox);
    struct engine *engine = s->base.engine;
    struct engine_sink sink = {.output = supervisor_take_output, .ctx = s};

    s->started = s->started && supervisor_lower_cpu(s);
    for (int tries = 1;; tries++) {
        if (!s->started && supervisor_start_container(s, data_path, e) < 0)
            return -1;
        struct deadline d = deadline_in_ms((int64_t)program->timeout_ms + CONTAINER_START_MS);
        s->began_ms = clock_mono_ms();
        disk_watch_begin(&s->base.disk, &s->base.channel.loop, &s->sandbox, before);
        /* The first tick while the program runs does what need not be done before it. */
        channel_ring_at(&s->base.channel, deadline_in_ms(0));
        int result = engine->ops->run(engine, program, &sink, &s->base.attend, d, out, e);
        s->over = s->base.disk.over;
        disk_watch_end(&s->base.disk);
        if (result == 0)
            return 0;
        if (e->kind != ERR_LOST || tries == SUPERVISOR_STARTS || s->stop)
            return -1;
        log_debug("run %s: %s; starting another container", s->base.start->run_id, e->text);
        s->started = false;
    }
}

static int run_program(struct supervisor *s, const struct snapshot *before,
                       struct engine_outcome *out, struct err *e)
{
    const struct run_request *r = &s->request;
    AUTO_CONTAINER_ENV struct container_env env = container_env_new(r, &s->sandbox, index_url(s));
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

json_t *supervisor_run(struct supervisor *s, struct engine_outcome *out, struct err *e)
{
    AUTO_SNAPSHOT struct snapshot before = {0};
    AUTO_SNAPSHOT struct snapshot after = {0};

    if (open_sandbox(s, e) < 0)
        return NULL;
    s->usage.partial = true; /* as long as the files are not listed */
    snapshot_take_empty(&s->sandbox, &before);
    if ((s->fresh ? quota_check_usage(&s->sandbox, &before.usage, 0, e)
                  : retention_notice_before(&s->sandbox, &before, e)) < 0 ||
        run_open_index(s, e) < 0)
        return NULL;
    if (s->cancelled || run_program(s, &before, out, e) < 0) {
        if (!s->cancelled && s->over.kind == ERR_NONE)
            return NULL;
        int64_t now = clock_mono_us(); /* cancelled before there was a program */
        *out = (struct engine_outcome){
            .end = ENGINE_CANCELLED, .exit_code = -1, .started_us = now, .ended_us = now};
    }
    supervisor_close_index(s);
    if (trim_after(&s->sandbox, &before, s->source != NULL, &after, &s->over, e) < 0)
        return NULL;
    if (s->over.kind != ERR_NONE && !s->cancelled)
        out->end = ENGINE_DISK_LIMIT;
    json_t *result = run_result_new(&s->story, out, &before, &after);
    open_files(s, result);
    s->usage = after.usage;
    retention_notice_over(result, &s->over);
    retention_notice_after(&s->sandbox, &after, result);
    if (s->sandbox.made)
        retention_notice_expired(&s->sandbox, result);
    run_add_installed(s, result);
    return result;
}
