#include "config.h"

#include "common/broker/job.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/broker/run_look.h"
#include "common/broker/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/files.h"
#include "common/sandbox/state.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int job_read_target(const struct job *job, const char *key, const char *field,
                    struct job_target *out, struct err *e)
{
    const json_t *name = json_object_get(job->request, key);

    out->tenant = json_get_string(job->request, "tenant");
    out->conversation = json_get_string(job->request, "conversation");
    out->name = json_string_value(name);
    if (!out->tenant || !out->conversation || !out->name)
        return err_set(e, ERR_INVALID, "tenant, conversation or %s is missing", key);
    return files_check_name(field, out->name, json_string_length(name), e);
}

void job_note_use(const struct sandbox *sb, const char *tenant, const char *conversation)
{
    struct err e = ERR_INIT;

    if (state_note_use(sb, tenant, conversation, &e) < 0)
        log_warn("a sandbox's record was not written: %s", e.text);
}

static json_t *op_put(struct job *job, struct err *e)
{
    uint64_t max = job->world->config->limits.file_max;
    json_int_t size = json_get_integer(job->request, "size", -1);
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct job_target t;

    if (size < 0 || job->in_fd < 0) {
        err_set(e, ERR_INVALID, "put: the content is missing");
        return NULL;
    }
    if ((uint64_t)size > max) {
        err_set(e, ERR_LIMIT, "content is %lld bytes; the limit is %llu", (long long)size,
                (unsigned long long)max);
        return NULL;
    }
    if (job_read_target(job, "name", "filename", &t, e) < 0 ||
        sandbox_open(job->world->root, t.tenant, t.conversation, &sb, e) < 0 ||
        files_put(&sb, t.name, job->in_fd, (uint64_t)size, e) < 0)
        return NULL;
    job_note_use(&sb, t.tenant, t.conversation);
    AUTO_FREE char *url = sandbox_file_url(&sb, t.name);
    return json_pack("{s:s, s:I, s:s}", "name", t.name, "size", size, "url", url);
}

static json_t *op_open(struct job *job, struct err *e)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct job_target t;
    struct stat st;
    /* Looking for a file makes no sandbox: names are guessed here. */
    if (job_read_target(job, "name", "filename", &t, e) < 0 ||
        sandbox_find(job->world->root, t.tenant, t.conversation, &sb, e) < 0)
        return NULL;
    job->out_fd = files_open(&sb, t.name, &st, e);
    if (job->out_fd < 0)
        return NULL;
    return json_pack("{s:I}", "size", (json_int_t)st.st_size);
}

/* Of a run that no supervisor answers for; to one that is over, cancelling changes nothing. */
static json_t *op_get_run(struct job *job, struct err *e)
{
    return run_look_get(job->world->root, job->request, e);
}

static json_t *op_list_runs(struct job *job, struct err *e)
{
    return run_look_list(job->world->root, job->world->children, job->request, e);
}

static json_t *op_status(struct job *job, struct err *e)
{
    (void)e;
    return job_status(job->world);
}

static json_t *op_list(struct job *job, struct err *e)
{
    return job_list(job->world, job->request, e);
}

static json_t *op_names(struct job *job, struct err *e)
{
    return job_names(job->world, job->request, e);
}

static json_t *op_ping(struct job *job, struct err *e)
{
    (void)job;
    (void)e;
    return json_object();
}

static const struct {
    const char *name;
    json_t *(*handle)(struct job *job, struct err *e);
} ops[] = {
    {"put", op_put},
    {"open", op_open},
    {"list", op_list},
    {"names", op_names},
    {"get_run", op_get_run},
    {"cancel_run", op_get_run},
    {"list_runs", op_list_runs},
    {"create_upload", job_create_upload},
    {"check_upload", job_check_upload},
    {"stage_upload", job_stage_upload},
    {"finish_upload", job_finish_upload},
    {"import_url", job_import_url},
    {"status", op_status},
    {"ping", op_ping},
};

static json_t *dispatch(struct job *job, struct err *e)
{
    const char *op = json_get_string(job->request, "op");
    for (size_t i = 0; op && i < ARRAY_LEN(ops); i++)
        if (strcmp(op, ops[i].name) == 0)
            return ops[i].handle(job, e);
    err_set(e, ERR_INVALID, "no such operation");
    return NULL;
}

/* What the operator should read about; the rest is the client's own doing. */
static bool is_ours_to_mend(enum err_kind kind)
{
    return kind == ERR_IO || kind == ERR_INTERNAL || kind == ERR_UNAVAILABLE || kind == ERR_REFUSED;
}

void job_handle(const struct job_world *world, int fd, const json_t *head, int passed_fd)
{
    struct err e = ERR_INIT;
    struct job job = {
        .world = world, .request = head, .asker_fd = fd, .in_fd = passed_fd, .out_fd = -1};
    json_t *result = dispatch(&job, &e);
    json_auto_t *reply = result ? wire_result_new(result) : wire_error_new(&e);
    if (!result && is_ours_to_mend(e.kind))
        log_warn("%s: %s", json_get_string(head, "op"), e.text);
    if (wire_send(fd, reply, job.out_fd, &e) < 0)
        log_debug("the asker left before the answer: %s", e.text);
    auto_close_fd(&job.out_fd);
    shutdown(fd, SHUT_RDWR);
}
