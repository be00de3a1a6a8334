/*
 * The protocol on the broker's socket: messages of sock.h, each a JSON object. A connection begins
 * with its head, which has a member "wire" (WIRE_VERSION), too:
 *   {"op":"run", tenant, conversationId, language, network (enum network_tier), singleUse, index,
 * timeoutMs, keepBytes, waitMs, background, live, detach, cancelOnDisconnect, openFiles, keepOver,
 * imports}, and at once a second message, the body, which is no JSON: code, stdin, args, env as
 * records (run_body.h)
 *   {"op":"get_run", tenant, runId, sinceByte?, newMax, waitMs, toEnd, live}
 *   {"op":"cancel_run", tenant, runId}     {"op":"list_runs", tenant, conversationId?}
 *   {"op":"session", …as run…, sessionNetwork (enum network_tier)}: in the conversation's
 * persistent sandbox
 *   {"op":"create_psandbox", tenant, conversationId, language?, image?, alias?, network, idleMs,
 * totalMs}
 *   {"op":"exec", tenant, sandboxId, timeoutMs, waitMs, background, live, cancelOnDisconnect,
 * keepOver, stopAtFailure} and the body: the commands as args, cwd, stdin, env
 *   {"op":"close_psandbox", tenant, sandboxId, language?: just the variables of that, if there are
 * others}
 *   {"op":"psandbox_logs", tenant, sandboxId}
 *   {"op":"psandbox_status", tenant, sandboxId?, conversationId?}
 *   {"op":"put"|"open"|"open_url"|"list_folder"|"delete"|"move"|"list"|"names"|"runners", …}
 *   {"op":"delete_conversation"|"exchange_conversation", tenant, conversationId, …}
 *   {"op":"status"|"ready"|"ping", …}
 *   {"op":"archive_link"|"pack"|"unpack", …}
 *   {"op":"adopt", runId, call: the operation that it goes on with, …members of that head, of a
 * persistent sandbox runs, usedMs (clock_mono_ms)}: a supervisor that has outlived its main
 * process; the connection becomes its channel
 *   {"op":"create_upload"|"check_upload"|"stage_upload"|"finish_upload"|"import_url", …}
 * With a tenant there may be "limits": the section of SANDBOX_TENANTS_FILE that counts instead of
 * it.
 * Descriptors are passed with put and finish_upload (the content), pack (the pipe for the archive)
 * and unpack (the archive, unless a file is named), and with the replies of open and stage_upload
 * (the file) and of a run with "openFiles" (its first files with a url, in their order).
 *
 * Replies; the last one is a result or an error, and its sender shuts the connection down:
 *   {"queued":{"position":N}}     {"live":{"stdout"|"stderr":"…"}, "nextByte":N}
 *   {"live":{"skipped":N}, "nextByte":N}
 *   {"result":{…}}     {"error":{"kind","text", "retryAfterMs"?, "position"?}}
 * The caller of a run may send {"cancel":true} meanwhile. poll() may report it together with a
 * hang-up: read first.
 *
 * Between the broker's main process and a supervisor (the channel):
 *   {"do":"hand","head":{…},"queueMs":N,"runId","imageId"?,"sandboxDir"?}: a call, with its
 * connection, a body unread; the last two of a run
 *   {"do":"preload"}     {"do":"preload_fast"}: its limit of processor time may be raised meanwhile
 *   {"do":"end","why"?}: the server does not wait for the run; of a persistent sandbox: it stops
 *   {"do":"next"}: nothing of the run that has ended is asked for any more; the container is wiped
 *   {"is":"waiting","tier":"started"|"preloaded","memoryBytes":N}   {"is":"running"}
 *   {"is":"started"}   {"is":"ended","reusable":bool,"ranMs":N}   {"is":"doubted"}: the wipe failed
 *   {"is":"runs","runs":[{"runId","language","createdAt","background"}],"dealt":N,"ranMs":N}: the
 * runs of a persistent sandbox that have not ended, how many calls it was handed that have begun or
 * were refused, and how long programs ran
 * "running" is sent when the body has been read: the run cannot be given to another supervisor from
 * then on. "started" is sent when the container of a cold start is up. The supervisor of a
 * persistent sandbox sends "ended" before it exits; the ids of its runs begin as its own
 * (run_id.h), so that they find it.
 */
#pragma once

#include "common/protocol/run.h"

/* Of a file of a run, for the order of pictures; no client gets it. */
#define WIRE_MODIFIED "modifiedMs"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/clock.h"

#include <jansson.h>

/* Results stay below this, though JSON may escape output sixfold; so do code, stdin, arguments and
 * environment. */
#define WIRE_MESSAGE_MAX (64u * 1024 * 1024)
#define WIRE_HEAD_MAX    (16u * 1024)
#define WIRE_IMPORTS_MAX 64 /* names of imports that are sent */

/* The one text for unknown, expired and foreign ids. */
#define WIRE_NO_SUCH_RUN                                                                           \
    "runId: no such run (unknown, expired, removed for newer results, or another client's)"
#define WIRE_NO_SUCH_SANDBOX                                                                       \
    "sandboxId: no such sandbox (unknown, closed long ago, or another client's)"

/* The member "network" of a head. */
enum network_tier wire_network(const json_t *head);
/* May the head's call run in a session that has that network? A session's network stays as it
 * began: a call that wants one needs that one. A call that wants none goes on with what calls
 * before it were given, up to the member "sessionNetwork". */
bool wire_network_suits(const json_t *head, enum network_tier session);

/* The head of "run", without what is in its body. */
json_t *wire_run_head_new(const struct run_request *request, const struct run_options *options);
/* The inverse, for any call that runs something. ERR_INVALID when a member is negative, of another
 * type or, unless it is an "exec", missing. *out points into head. */
int wire_run_head_decode(const json_t *head, struct run_request *out, struct run_options *options,
                         struct err *e);

/* A call as the main process gives it to a supervisor: with the fork, or over the channel.
 * Borrowed. */
struct handed_call {
    const json_t *head;      /* NULL: there is none yet */
    int connection;          /* its caller's, a body unread; -1: none */
    const char *sandbox_dir; /* of its conversation; NULL: the supervisor has it, or none yet */
    const char *image_id;    /* that a run is wanted in; else NULL */
    int64_t queue_ms;        /* for which a run was queued */
};
/* {"do":"hand",…}, of the supervisor with that run id. New reference. */
json_t *wire_hand_new(const struct handed_call *call, const char *run_id);

/* Sends a JSON object with an optional descriptor (-1: none). */
int wire_send(int fd, const json_t *message, int pass_fd, struct err *e);
/* The same without waiting, see sock_post_message. */
int wire_post(int fd, const json_t *message, int pass_fd, struct err *e);
/* Appends the message as it is sent over the socket. */
int wire_frame(const json_t *message, struct buf *out, struct err *e);
/* Receives a JSON object; new reference or NULL. out_fd may be NULL. */
json_t *wire_recv(int fd, int *out_fd, struct deadline d, struct err *e);
/* A message's bytes as an object; new reference or NULL. */
json_t *wire_parse(const struct buf *text, struct err *e);

/* {"result": take_result} and {"error": …}. */
json_t *wire_result_new(json_t *take_result);
json_t *wire_error_new(const struct err *problem);
/* The inverse of wire_error_new, for the value of "error"; always returns -1. */
int wire_error_take(const json_t *error, struct err *e);

/* For processes that must not wait: sends the last message and closes the connection; takes both. A
 * caller that has left is logged. */
void reply_send(int take_fd, json_t *take_reply);
void reply_send_error(int take_fd, const struct err *why);
/* The same, and after how long it can be tried again; 0: not by waiting. */
void reply_send_refusal(int take_fd, const struct err *why, int64_t retry_ms);
