/* Runs, and the state of the broker, for workers. */
#pragma once

#include "common/protocol/client_call.h"

/* options.live and options.opened are set by broker_run. */
struct broker_run_options {
    struct run_options options;
    struct broker_callbacks callbacks;
    struct fds *opened; /* NULL, or gets the answer's first files with a url, open for reading, in
                           their order; perhaps none */
};

/*
 * Runs a program. The answer is run_code's result object: success, status, exitCode, signal,
 * stdout, stderr, output, truncation…, files[{name,size,url,change}] without mimeType, runId,
 * queueMs, and expiresAt when it is kept. With wait_ms or background the status may be "running":
 * exitCode and signal are null, and broker_get_run continues the output at nextByte. With session
 * it has sandboxId, sessionStarted (the variables are new), stateLost (they, or those of earlier
 * calls, are gone) and perhaps sessionNote. New reference, or NULL with the broker's error;
 * ERR_CANCELLED: the caller hung up.
 */
json_t *broker_run(const struct broker_client *c, const struct run_request *request,
                   const struct broker_run_options *options, struct err *e);

struct broker_poll_options {
    bool since_given;
    uint64_t since_byte; /* newOutput: the combined output from there on */
    uint64_t wait_ms;    /* for new output; 0: answers at once */
    struct broker_callbacks callbacks;
};

/* A run's result so far or at its end, as broker_run's, with newOutput and nextByte when
 * since_given. ERR_NOT_FOUND in one text for unknown and foreign runs. */
json_t *broker_get_run(const struct broker_client *c, const char *tenant, const char *run_id,
                       const struct broker_poll_options *look, struct err *e);

/* Ends a run; answers its result as broker_get_run. A run that has ended already stays as it is. */
json_t *broker_cancel_run(const struct broker_client *c, const char *tenant, const char *run_id,
                          struct err *e);

/* The tenant's runs, of one conversation or (NULL) of all, the newest first: {"runs":[{runId,
 * conversationId, language, status, createdAt, endedAt?, expiresAt?}]}. */
json_t *broker_list_runs(const struct broker_client *c, const char *tenant,
                         const char *conversation, struct err *e);

/* The broker's status (job_status), for the operator. */
json_t *broker_status(const struct broker_client *c, struct err *e);

/* [{language, image, version, libraries:[{name,version}], protocol}], sorted by language. */
json_t *broker_runners(const struct broker_client *c, struct err *e);

/* 0 when the broker answers, or -1. */
int broker_ping(const struct broker_client *c, struct err *e);
