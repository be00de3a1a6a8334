/*
 * The operations of the broker, one row each: the name in a request's head ("op"), the process that
 * carries it out, the share of jobs that it counts for, and who may send it. A client names an
 * operation by its constant; the processes keep their handlers in tables that these constants
 * index.
 */
#pragma once

#include "common/base/err.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>

enum broker_op {
    OP_UNKNOWN, /* a head without "op", or with a name that is in no row */
    OP_RUN,
    OP_SESSION,
    OP_ADOPT,
    OP_GET_RUN,
    OP_CANCEL_RUN,
    OP_LIST_RUNS,
    OP_RUNNERS,
    OP_CREATE_PSANDBOX,
    OP_EXEC,
    OP_CLOSE_PSANDBOX,
    OP_PSANDBOX_LOGS,
    OP_PSANDBOX_STATUS,
    OP_PUT,
    OP_OPEN,
    OP_OPEN_URL,
    OP_LIST_FOLDER,
    OP_DELETE,
    OP_MOVE,
    OP_LIST,
    OP_NAMES,
    OP_ARCHIVE_LINK,
    OP_PACK,
    OP_UNPACK,
    OP_CREATE_UPLOAD,
    OP_CHECK_UPLOAD,
    OP_STAGE_UPLOAD,
    OP_FINISH_UPLOAD,
    OP_IMPORT_URL,
    OP_DELETE_CONVERSATION,
    OP_EXCHANGE_CONVERSATION,
    OP_STATUS,
    OP_READY,
    OP_PING,
    OP_AUDIT,
    OP_COUNT
};

/* Which process answers. With OP_BY_SUPERVISOR a job answers when the one named in the head has
 * ended, from its record; a session is begun then. */
enum op_by {
    OP_BY_MAIN,       /* the main process */
    OP_BY_SUPERVISOR, /* that of "runId", "sandboxId", or the conversation's session */
    OP_BY_JOB,        /* a child of its own */
};

/* Which share of jobs an operation counts for (scheduler/children.c). */
enum job_limit {
    JOB_LIMIT_NONE,    /* it is no job, or must never be refused */
    JOB_LIMIT_DEFAULT, /* it ends soon by itself */
    JOB_LIMIT_DELETION,
    JOB_LIMIT_IMPORT,
    JOB_LIMIT_PACK,
    JOB_LIMIT_UNPACK,
    JOB_LIMIT_COUNT
};

/* How a head names the conversation whose files the operation needs. */
enum op_files {
    OP_FILES_NONE,    /* it needs none, or the files are known to be here */
    OP_FILES_NAMED,   /* "tenant" and "conversationId" */
    OP_FILES_URL,     /* "uri", a file's URL */
    OP_FILES_ARCHIVE, /* "subject", that of an archive's link */
};

/* What the main process knows of who has sent a request, by the way on which it came. */
enum op_sender {
    OP_FROM_OWN,     /* root and the server's own account, by the socket's path */
    OP_FROM_CALLS,   /* workers, and CGI programs by the path: what tenants may call */
    OP_FROM_HUB,     /* it looks, and changes nothing */
    OP_FROM_METRICS, /* also a server that waits to take over: how the broker is */
    OP_SENDERS
};

struct op_row {
    const char *name;
    enum op_by by;
    enum job_limit limit;
    enum op_files files;
    unsigned from; /* bits of enum op_sender */
};

/* Version of the messages on the sockets; each head has it as "wire". At a reload, processes of two
 * versions meet: the main process refuses a body that its supervisors could not read, and has
 * persistent sandboxes end that could not read those of its workers. */
#ifndef WIRE_VERSION /* else it is the program of tests/e2e/test_versions.py */
#define WIRE_VERSION 2
#endif
bool op_is_of_this_version(const json_t *head);

const struct op_row *op_row(enum broker_op op);
/* Does a content come with it, which needs room while it is on its way (room.h)? */
bool op_brings_content(enum broker_op op);
bool op_may_come_from(enum broker_op op, enum op_sender sender);
const char *op_name(enum broker_op op);
/* What a request's head names. */
enum broker_op op_of(const json_t *head);
/* A request's head: the members that json_pack makes of an object's format, and "op". */
json_t *op_head_new(enum broker_op op, const char *format, ...);
json_t *op_head_vnew(enum broker_op op, const char *format, va_list members);
