/* Runs, and the state of the broker, for workers. */
#ifndef SANDCGI_PROTOCOL_CLIENT_RUNS_H
#define SANDCGI_PROTOCOL_CLIENT_RUNS_H

#include "common/protocol/client_call.h"

/* options.live and options.opened are set from the rest. Zeros, or NULL for the whole: the call
 * lasts as long as the run. */
struct broker_run_options {
    struct run_options options;
    struct broker_callbacks callbacks;
    struct fds *opened; /* NULL, or empty: gets the first of the answer's files that have a url,
                           opened for reading, in their order; perhaps none */
};

/*
 * Runs a program. The answer is the run's result as an object with run_code's result fields (see
 * tools/run_code.c's output schema), built by the broker: success, status, exitCode, signal,
 * stdout, stderr, output, truncation…, files[{name,size,url,change}] without mimeType, which the
 * worker adds, runId, queueMs, and expiresAt when it is kept. With waitMs or background its status
 * may be "running": exitCode and signal are null, the output is what came so far, and nextByte says
 * where to go on with broker_get_run. With session it also has sandboxId, sessionStarted (its
 * variables are new) and stateLost (they, or those of the calls before, are gone), and sessionNote
 * where that has to be said. New reference, or NULL with *e (kinds as the broker gave
 * them: INVALID, NOT_FOUND, UNAVAILABLE, IO, BUSY, LOST…; CANCELLED: its caller hung up).
 */
json_t *broker_run(const struct broker_client *c, const struct run_request *request,
                   const struct broker_run_options *options, struct err *e);

struct broker_poll_options {
    bool since_given;
    uint64_t since_byte; /* newOutput: the combined output from there on */
    uint64_t wait_ms;    /* 0: answers at once; else when there is something new, or by then */
    struct broker_callbacks callbacks;
};

/* A run of before: its result so far or at its end, as broker_run's, with newOutput and nextByte
 * when since_given. ERR_NOT_FOUND, in one text, for every run that is not this tenant's. */
json_t *broker_get_run(const struct broker_client *c, const char *tenant, const char *run_id,
                       const struct broker_poll_options *look, struct err *e);

/* Ends a run; answers its result as broker_get_run. A run that has ended already stays as it is. */
json_t *broker_cancel_run(const struct broker_client *c, const char *tenant, const char *run_id,
                          struct err *e);

/* The tenant's runs, of one conversation or (NULL) of all, the newest first: {"runs":[{runId,
 * conversationId, language, status, createdAt, endedAt?, expiresAt?}]}. */
json_t *broker_list_runs(const struct broker_client *c, const char *tenant,
                         const char *conversation, struct err *e);

/* How the broker is (job.c says what is in it): for the operator, not for clients. */
json_t *broker_status(const struct broker_client *c, struct err *e);

/* [{language, image, version, libraries:[{name,version}], protocol}], sorted by language. */
json_t *broker_runners(const struct broker_client *c, struct err *e);

/* Is somebody there? 0 or -1. */
int broker_ping(const struct broker_client *c, struct err *e);

#endif
