#include "config.h"

#include "common/protocol/ops.h"

#include "common/base/log.h"
#include "common/rpc/json.h"

#include <string.h>

/* Who may send it: each of these and those before. */
#define OWN   (1u << OP_FROM_OWN)
#define CALLS (OWN | 1u << OP_FROM_CALLS)
#define LOOKS (CALLS | 1u << OP_FROM_HUB)
#define ALL   (LOOKS | 1u << OP_FROM_METRICS)

static const struct op_row rows[OP_COUNT] = {
    [OP_UNKNOWN] = {"", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NONE, ALL},
    [OP_RUN] = {"run", OP_BY_MAIN, JOB_LIMIT_NONE, OP_FILES_NAMED, CALLS},
    [OP_SESSION] = {"session", OP_BY_SUPERVISOR, JOB_LIMIT_NONE, OP_FILES_NAMED, CALLS},
    [OP_ADOPT] = {"adopt", OP_BY_MAIN, JOB_LIMIT_NONE, OP_FILES_NONE, OWN},
    [OP_GET_RUN] = {"get_run", OP_BY_SUPERVISOR, JOB_LIMIT_DEFAULT, OP_FILES_NONE, LOOKS},
    [OP_CANCEL_RUN] = {"cancel_run", OP_BY_SUPERVISOR, JOB_LIMIT_DEFAULT, OP_FILES_NONE, CALLS},
    [OP_LIST_RUNS] = {"list_runs", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NONE, LOOKS},
    [OP_RUNNERS] = {"runners", OP_BY_MAIN, JOB_LIMIT_NONE, OP_FILES_NONE, LOOKS},
    [OP_CREATE_PSANDBOX] = {"create_psandbox", OP_BY_MAIN, JOB_LIMIT_NONE, OP_FILES_NAMED, CALLS},
    [OP_EXEC] = {"exec", OP_BY_SUPERVISOR, JOB_LIMIT_DEFAULT, OP_FILES_NONE, CALLS},
    [OP_CLOSE_PSANDBOX] = {"close_psandbox", OP_BY_SUPERVISOR, JOB_LIMIT_DEFAULT, OP_FILES_NONE,
                           CALLS},
    [OP_PSANDBOX_LOGS] = {"psandbox_logs", OP_BY_SUPERVISOR, JOB_LIMIT_DEFAULT, OP_FILES_NONE,
                          CALLS},
    [OP_PSANDBOX_STATUS] = {"psandbox_status", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NONE, LOOKS},
    [OP_PUT] = {"put", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NAMED, CALLS},
    [OP_OPEN] = {"open", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NAMED, LOOKS},
    [OP_OPEN_URL] = {"open_url", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_URL, LOOKS},
    [OP_LIST_FOLDER] = {"list_folder", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NAMED, LOOKS},
    [OP_DELETE] = {"delete", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NAMED, CALLS},
    [OP_MOVE] = {"move", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NAMED, CALLS},
    [OP_LIST] = {"list", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NAMED, LOOKS},
    [OP_NAMES] = {"names", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NONE, LOOKS},
    [OP_ARCHIVE_LINK] = {"archive_link", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NAMED, CALLS},
    [OP_PACK] = {"pack", OP_BY_JOB, JOB_LIMIT_PACK, OP_FILES_ARCHIVE, CALLS},
    [OP_UNPACK] = {"unpack", OP_BY_JOB, JOB_LIMIT_UNPACK, OP_FILES_NAMED, CALLS},
    [OP_CREATE_UPLOAD] = {"create_upload", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NAMED, CALLS},
    [OP_CHECK_UPLOAD] = {"check_upload", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NONE, CALLS},
    [OP_STAGE_UPLOAD] = {"stage_upload", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NONE, CALLS},
    [OP_FINISH_UPLOAD] = {"finish_upload", OP_BY_JOB, JOB_LIMIT_DEFAULT, OP_FILES_NONE, CALLS},
    [OP_IMPORT_URL] = {"import_url", OP_BY_JOB, JOB_LIMIT_IMPORT, OP_FILES_NAMED, CALLS},
    /* The main process moves the files away; a job counts them and answers. */
    [OP_DELETE_CONVERSATION] = {"delete_conversation", OP_BY_MAIN, JOB_LIMIT_DELETION,
                                OP_FILES_NAMED, CALLS},
    [OP_EXCHANGE_CONVERSATION] = {"exchange_conversation", OP_BY_MAIN, JOB_LIMIT_NONE,
                                  OP_FILES_NONE, OWN},
    [OP_STATUS] = {"status", OP_BY_JOB, JOB_LIMIT_NONE, OP_FILES_NONE, ALL},
    [OP_READY] = {"ready", OP_BY_JOB, JOB_LIMIT_NONE, OP_FILES_NONE, ALL},
    [OP_PING] = {"ping", OP_BY_JOB, JOB_LIMIT_NONE, OP_FILES_NONE, ALL},
    [OP_AUDIT] = {"audit", OP_BY_MAIN, JOB_LIMIT_NONE, OP_FILES_NONE, OWN},
};

const struct op_row *op_row(enum broker_op op)
{
    return &rows[op];
}

bool op_brings_content(enum broker_op op)
{
    return op == OP_PUT || op == OP_UNPACK || op == OP_CHECK_UPLOAD || op == OP_IMPORT_URL;
}

bool op_may_come_from(enum broker_op op, enum op_sender sender)
{
    return rows[op].from & 1u << sender;
}

const char *op_name(enum broker_op op)
{
    return rows[op].name;
}

enum broker_op op_of(const json_t *head)
{
    const char *name = json_get_string(head, "op");

    for (size_t i = OP_UNKNOWN + 1; name && i < OP_COUNT; i++)
        if (strcmp(name, rows[i].name) == 0)
            return (enum broker_op)i;
    return OP_UNKNOWN;
}

bool op_is_of_this_version(const json_t *head)
{
    return json_get_integer(head, "wire", 0) == WIRE_VERSION;
}

json_t *op_head_vnew(enum broker_op op, const char *format, va_list members)
{
    json_t *head = json_vpack_ex(NULL, 0, format, members);

    json_object_set_new(head, "op", json_string(op_name(op)));
    json_object_set_new(head, "wire", json_integer(WIRE_VERSION));
    if (*log_noted(LOG_TRACE)) /* of the call that it is for */
        json_object_set_new(head, "trace", json_string(log_noted(LOG_TRACE)));
    return head;
}

json_t *op_head_new(enum broker_op op, const char *format, ...)
{
    va_list members;

    va_start(members, format);
    json_t *head = op_head_vnew(op, format, members);
    va_end(members);
    return head;
}
