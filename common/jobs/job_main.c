#include "config.h"

#include "common/jobs/job.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/trace.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <sys/socket.h>
#include <unistd.h>

static json_t *job_ping(struct job *job, struct err *e)
{
    (void)job;
    (void)e;
    return json_object();
}

/* Operations of OP_BY_SUPERVISOR come here when that has ended. */
static json_t *(*const handlers[OP_COUNT])(struct job *job, struct err *e) = {
    [OP_PUT] = job_put,
    [OP_OPEN] = job_open,
    [OP_OPEN_URL] = job_open_url,
    [OP_LIST_FOLDER] = job_list_folder,
    [OP_DELETE] = job_delete,
    [OP_MOVE] = job_move,
    [OP_LIST] = job_list,
    [OP_NAMES] = job_names,
    [OP_ARCHIVE_LINK] = job_archive_link,
    [OP_PACK] = job_pack,
    [OP_UNPACK] = job_unpack,
    [OP_DELETE_CONVERSATION] = job_delete_conversation,
    [OP_GET_RUN] = job_get_run,
    [OP_CANCEL_RUN] = job_get_run,
    [OP_LIST_RUNS] = job_list_runs,
    [OP_CREATE_UPLOAD] = job_create_upload,
    [OP_CHECK_UPLOAD] = job_check_upload,
    [OP_STAGE_UPLOAD] = job_stage_upload,
    [OP_FINISH_UPLOAD] = job_finish_upload,
    [OP_IMPORT_URL] = job_import_url,
    [OP_EXEC] = job_exec,
    [OP_CLOSE_PSANDBOX] = job_close_psandbox,
    [OP_PSANDBOX_LOGS] = job_psandbox_logs,
    [OP_PSANDBOX_STATUS] = job_psandbox_status,
    [OP_STATUS] = job_status,
    [OP_READY] = job_ready,
    [OP_PING] = job_ping,
};

void job_main(const struct job_world *world, const struct job_call *call)
{
    struct err e = ERR_INIT;
    const json_t *head = call->head;
    struct job job = {.world = world,
                      .request = head,
                      .caller_fd = call->fd,
                      .in_fd = call->passed_fd,
                      .room_fd = call->room_fd,
                      .out_fd = -1};
    enum broker_op op = op_of(head);
    trace_conversation(json_get_string(head, "tenant"), json_get_string(head, "conversationId"));
    log_note(LOG_TRACE, json_get_string(head, "trace"));
    json_t *result = handlers[op] ? handlers[op](&job, &e)
                                  : job_fail(&e, ERR_INVALID, "no such operation");
    json_auto_t *reply = result ? wire_result_new(result) : wire_error_new(&e);

    /* Errors of the server, not of the client. */
    if (!result && (e.kind == ERR_IO || e.kind == ERR_INTERNAL || e.kind == ERR_UNAVAILABLE ||
                    e.kind == ERR_REFUSED))
        log_warn("%s: %s", op_name(op), e.text);
    /* A caller that has its answer finds the room free, unless it has got that itself. */
    auto_close_fd(&job.room_fd);
    if (wire_send(call->fd, reply, job.out_fd, &e) < 0)
        log_debug("the caller left before the answer: %s", e.text);
    auto_close_fd(&job.out_fd);
    shutdown(call->fd, SHUT_RDWR);
}
