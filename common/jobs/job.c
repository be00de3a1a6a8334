#include "config.h"

#include "common/jobs/job.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/jobs/run_lookup.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/state/state.h"

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

void job_note_reading(const struct sandbox *sb, const char *tenant, const char *conversation)
{
    struct err e = ERR_INIT;

    if (state_note_use(sb, tenant, conversation, &e) < 0)
        log_warn("a sandbox's record was not written: %s", e.text);
}

void job_note_use(const struct sandbox *sb, const char *tenant, const char *conversation)
{
    job_note_reading(sb, tenant, conversation);
    state_forget_size(sb->root, sb->name);
}

/* Of a run that no supervisor answers for; to one that is over, cancelling changes nothing. */
static json_t *op_get_run(struct job *job, struct err *e)
{
    return run_lookup_get(job->world->root, job->request, e);
}

static json_t *op_list_runs(struct job *job, struct err *e)
{
    return run_lookup_list(job->world->root, job->world->children, job->request, e);
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
    {"put", job_put},
    {"open", job_open},
    {"list_folder", job_list_folder},
    {"delete", job_delete},
    {"move", job_move},
    {"list", op_list},
    {"names", op_names},
    {"archive_link", job_archive_link},
    {"pack", job_pack},
    {"unpack", job_unpack},
    {"delete_conversation", job_remove},
    {"get_run", op_get_run},
    {"cancel_run", op_get_run},
    {"list_runs", op_list_runs},
    {"create_upload", job_create_upload},
    {"check_upload", job_check_upload},
    {"stage_upload", job_stage_upload},
    {"finish_upload", job_finish_upload},
    {"import_url", job_import_url},
    {"exec", job_psandbox_ended},
    {"close_psandbox", job_close_psandbox},
    {"sandbox_logs", job_psandbox_logs},
    {"sandbox_status", job_psandbox_status},
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
        .world = world, .request = head, .caller_fd = fd, .in_fd = passed_fd, .out_fd = -1};
    json_t *result = dispatch(&job, &e);
    json_auto_t *reply = result ? wire_result_new(result) : wire_error_new(&e);
    if (!result && is_ours_to_mend(e.kind))
        log_warn("%s: %s", json_get_string(head, "op"), e.text);
    if (wire_send(fd, reply, job.out_fd, &e) < 0)
        log_debug("the caller left before the answer: %s", e.text);
    auto_close_fd(&job.out_fd);
    shutdown(fd, SHUT_RDWR);
}
