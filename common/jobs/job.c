#include "config.h"

#include "common/jobs/job.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/jobs/run_lookup.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/state/state.h"

#include <sys/socket.h>
#include <unistd.h>

int job_read_target(const struct job *job, const char *key, const char *field,
                    struct job_target *out, struct err *e)
{
    const json_t *name = json_object_get(job->request, key);

    out->tenant = json_get_string(job->request, "tenant");
    out->conversation = json_get_string(job->request, "conversationId");
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

/* Of OP_BY_RUN and OP_BY_PSANDBOX: when the process that the head names has ended. */
static json_t *(*const handlers[OP_COUNT])(struct job *job, struct err *e) = {
    [OP_PUT] = job_put,
    [OP_OPEN] = job_open,
    [OP_LIST_FOLDER] = job_list_folder,
    [OP_DELETE] = job_delete,
    [OP_MOVE] = job_move,
    [OP_LIST] = op_list,
    [OP_NAMES] = op_names,
    [OP_ARCHIVE_LINK] = job_archive_link,
    [OP_PACK] = job_pack,
    [OP_UNPACK] = job_unpack,
    [OP_DELETE_CONVERSATION] = job_remove,
    [OP_GET_RUN] = op_get_run,
    [OP_CANCEL_RUN] = op_get_run,
    [OP_LIST_RUNS] = op_list_runs,
    [OP_CREATE_UPLOAD] = job_create_upload,
    [OP_CHECK_UPLOAD] = job_check_upload,
    [OP_STAGE_UPLOAD] = job_stage_upload,
    [OP_FINISH_UPLOAD] = job_finish_upload,
    [OP_IMPORT_URL] = job_import_url,
    [OP_EXEC] = job_psandbox_ended,
    [OP_CLOSE_PSANDBOX] = job_close_psandbox,
    [OP_PSANDBOX_LOGS] = job_psandbox_logs,
    [OP_PSANDBOX_STATUS] = job_psandbox_status,
    [OP_STATUS] = op_status,
    [OP_PING] = op_ping,
};

static json_t *carry_out(struct job *job, struct err *e)
{
    enum broker_op op = op_of(job->request);

    if (handlers[op])
        return handlers[op](job, e);
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
    json_t *result = carry_out(&job, &e);
    json_auto_t *reply = result ? wire_result_new(result) : wire_error_new(&e);
    if (!result && is_ours_to_mend(e.kind))
        log_warn("%s: %s", op_name(op_of(head)), e.text);
    if (wire_send(fd, reply, job.out_fd, &e) < 0)
        log_debug("the caller left before the answer: %s", e.text);
    auto_close_fd(&job.out_fd);
    shutdown(fd, SHUT_RDWR);
}
