/*
 * The run protocol on the broker's socket, both directions. Private to common/broker.
 *
 * Everything is a message of sock.h holding a JSON object. A connection begins with its head:
 *   {"op":"run", tenant, conversationId, language, network, index, timeoutMs, waitMs, background,
 * live, detach, cancelOnDisconnect, opened, wants}, and at once a second message, the body: {code,
 * stdin, args, env, keepBytes}
 *   {"op":"get_run", tenant, runId, sinceByte?, waitMs, live}
 *   {"op":"cancel_run", tenant, runId}     {"op":"list_runs", tenant, conversationId?}
 *   {"op":"session", …as run…}: in the conversation's persistent sandbox
 *   {"op":"create_psandbox", tenant, conversationId, language?, image?, alias?, network, idleMs,
 * totalMs}
 *   {"op":"exec", tenant, sandboxId, timeoutMs, live} and the body {args: the commands, cwd?,
 * stopAtFailure, stdin, env}
 *   {"op":"close_psandbox"|"psandbox_logs", tenant, sandboxId}
 *   {"op":"psandbox_status", tenant, sandboxId?, conversationId?}
 *   {"op":"put"|"open"|"list_folder"|"delete"|"move"|"list"|"names"|"runners"|"status"|"ping", …}
 *   {"op":"archive_link"|"pack"|"unpack", …}
 *   {"op":"create_upload"|"check_upload"|"stage_upload"|"finish_upload"|"import_url", …}
 * With put and finish_upload the content's descriptor rides along, with the replies of open and
 * stage_upload the file's, with the result of a run that asked for it (opened) those of the first
 * files with a url, in their order, if they could be opened; with pack the pipe that the archive
 * goes into, with unpack (unless it names a file) the archive.
 *
 * Replies, the last one is result or error; whoever sent it shuts the connection down:
 *   {"queued":{"position":N}}     {"live":{"stdout"|"stderr":"…"}, "nextByte":N}
 *   {"live":{"skipped":N}, "nextByte":N}
 *   {"result":{…}}     {"error":{"kind","text", "retryAfterMs"?, "position"?}}
 * Meanwhile the caller of a run may send {"cancel":true}. It may come together with the end of the
 * connection, which a poll shows as a hang-up first: read before believing it.
 *
 * Between the broker's main process and a supervisor (the channel):
 *   {"do":"claim","head":{…},"queueMs":N} with the connection, its body unread
 *   {"do":"hand","head":{…}} with a connection (get_run, cancel_run)     {"do":"preload"}
 *   {"is":"waiting","tier":"light"|"full","memoryBytes":N}   {"is":"running"}   {"is":"started"}
 * {"is":"ended"} "running" is said as soon as the body has been read: from then on nobody else can
 * serve the run. A persistent sandbox's process gets its commands and sessions by "hand", too, says
 * "ended" before it goes, and is told {"do":"end"} when the server stops. "started" is said when a
 * run's container is up that did not wait when the run came.
 */
#ifndef SANDCGI_PROTOCOL_WIRE_H
#define SANDCGI_PROTOCOL_WIRE_H

#include "common/protocol/run.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/clock.h"

#include <jansson.h>

/* Code, stdin, arguments and environment, each escaped at worst sixfold in JSON, stay below this.
 */
#define WIRE_MESSAGE_MAX (64u * 1024 * 1024)
#define WIRE_HEAD_MAX    (16u * 1024)
#define WIRE_WANTS_MAX   64 /* names of imports; the rest is not told */

/* The text of every answer about a run that its caller has no part in, or that is no more. */
#define WIRE_NO_SUCH_RUN "runId: no such run (unknown, expired, or another client's)"

/* The same of a persistent sandbox. */
#define WIRE_NO_SUCH_SANDBOX                                                                       \
    "sandboxId: no such sandbox (unknown, closed long ago, or another client's)"

/* The two messages of "run". */
json_t *wire_run_head_new(const struct run_request *request, const struct run_options *options);
json_t *wire_run_body_new(const struct run_request *request);

/*
 * And back: the head fills what is in it (code, stdin, args, env and keepBytes stay empty), the
 * body adds the rest. ERR_INVALID when a member is missing or of another type. They point into
 * head and body, which must outlive *out; clear it with wire_run_decoded_clear, also after a
 * failure.
 */
int wire_run_head_decode(const json_t *head, struct run_request *out, struct run_options *options,
                         struct err *e);
int wire_run_body_decode(const json_t *body, struct run_request *out, struct err *e);
void wire_run_decoded_clear(struct run_request *request);

/* Sends a JSON object with an optional descriptor (-1: none). */
int wire_send(int fd, const json_t *message, int pass_fd, struct err *e);
/* The same without waiting, see sock_post_message. */
int wire_post(int fd, const json_t *message, int pass_fd, struct err *e);
/* The message's bytes as they go over the socket, behind what out has. */
int wire_frame(const json_t *message, struct buf *out, struct err *e);
/* Receives a JSON object; new reference or NULL. out_fd may be NULL. */
json_t *wire_recv(int fd, int *out_fd, struct deadline d, struct err *e);
/* The same, see sock_recv_with_fds. */
json_t *wire_recv_with_fds(int fd, struct fds *out_fds, struct deadline d, struct err *e);
/* A message's bytes as an object; new reference or NULL. */
json_t *wire_parse(const struct buf *text, struct err *e);

/* {"result": take_result} and {"error": …}. */
json_t *wire_result_new(json_t *take_result);
json_t *wire_error_new(const struct err *problem);
/* The inverse of wire_error_new, for the value of "error"; always returns -1. */
int wire_error_take(const json_t *error, struct err *e);

#endif
