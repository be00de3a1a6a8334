/* Runs, the state of the broker, and persistent sandboxes, for workers. */
#pragma once

#include "common/protocol/client_call.h"

/* options.live and options.open_files are set by broker_run. */
struct broker_run_options {
    struct run_options options;
    struct broker_callbacks callbacks;
    struct fds *open_files; /* NULL, or gets the answer's first files with a url, open for reading,
                           in their order; perhaps none */
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
    uint64_t new_max;    /* bytes of newOutput; 0: all that is there */
    uint64_t wait_ms;    /* for new output; 0: answers at once */
    bool to_end;         /* for its end, whatever is new meanwhile */
    struct broker_callbacks callbacks;
};

/* A run's result so far or at its end, as broker_run's, with newOutput and nextByte when
 * since_given. ERR_NOT_FOUND in one text for unknown and foreign runs. */
json_t *broker_get_run(const struct broker_client *c, const char *run_id,
                       const struct broker_poll_options *look, struct err *e);

/* Ends a run; answers its result as broker_get_run. A run that has ended already stays as it is. */
json_t *broker_cancel_run(const struct broker_client *c, const char *run_id, struct err *e);

/* The tenant's runs, of one conversation or (NULL) of all, the newest first: {"runs":[{runId,
 * conversationId, language, status, createdAt, endedAt?, expiresAt?}]}. */
json_t *broker_list_runs(const struct broker_client *c, const char *conversation, struct err *e);

/* The broker's status (job_status), for the operator. */
json_t *broker_status(const struct broker_client *c, struct err *e);

/* [{language, image, version, libraries:[{name,version}], protocol}], sorted by language. */
json_t *broker_runners(const struct broker_client *c, struct err *e);

/* Can programs run now? 0: yes; -1: *e says why not. */
int broker_ready(const struct broker_client *c, struct err *e);

/* 0 when the broker answers, or -1. */
int broker_ping(const struct broker_client *c, struct err *e);

/*
 * ---- persistent sandboxes ----
 *
 * A cancelled call ends its command, never the sandbox. ERR_NOT_FOUND has one text for an unknown,
 * forgotten or foreign sandbox; the owner of a closed, expired or lost one is told so as long as
 * its record is kept.
 */

struct broker_psandbox_request {
    const char *conversation;
    const char *language; /* NULL: image */
    const char *image;    /* one of SANDBOX_PERSISTENT_IMAGES; NULL: language */
    const char *alias;    /* a second mount point of /data, as "/app"; NULL: none */
    enum network_tier network;
    uint64_t idle_ms, total_ms; /* 0: the settings, which are also the most */
};

/*
 * Answers when the container is up: {"sandboxId", "status":"running", "conversationId", "language"
 * | "image", "network", "createdAt", "idleTimeoutMs", "expiresAt"}, the others in Unix seconds.
 * ERR_LIMIT: of the tenant; ERR_BUSY: of the server; ERR_DENIED: the image or the network is not
 * allowed; ERR_NOT_FOUND: no such language or image.
 */
json_t *broker_create_psandbox(const struct broker_client *c,
                               const struct broker_psandbox_request *want, struct err *e);

struct broker_exec_want {
    const char *psandbox_id;
    const struct run_text *commands; /* n of them, up to PSANDBOX_COMMANDS_MAX, each for bash -c */
    size_t n;
    const char *cwd;     /* absolute, or below /data; NULL: /data */
    uint64_t timeout_ms; /* of all commands together; 0: the setting */
    const struct run_env *env;
    size_t n_env;
    struct run_text input;      /* of the first command; data NULL: none */
    bool stop_at_failure;       /* at the first command that does not end with 0 */
    struct run_options options; /* wait_ms, background, cancel_on_disconnect and keep_over */
};

/*
 * Runs commands one after the other, as one run: the answer is broker_run's, with "results":
 * [{"command", "status", "exitCode", "signal", "stdout", "stderr", "truncation":{"stdout",
 * "stderr"}, "durationMs"}] when they have ended. Its output is that of all, its status the last
 * one's; success: all ended with 0; files: all changes in /data meanwhile. ERR_BUSY: over eight
 * calls at once; ERR_LOST: the container was ended from outside. callbacks may be NULL.
 */
json_t *broker_exec(const struct broker_client *c, const struct broker_exec_want *want,
                    const struct broker_callbacks *callbacks, struct err *e);

/*
 * {"sandboxes":[{"sandboxId", "status":"running"|"paused"|"closed"|"expired"|"lost", … as
 * broker_create_psandbox's, "session":bool, "lastUsedAt", "endedAt"?, "reason"?}]}: one
 * (psandbox_id), a conversation's, or (both NULL) all of the tenant's, the newest first.
 */
json_t *broker_psandbox_status(const struct broker_client *c, const char *psandbox_id,
                               const char *conversation, struct err *e);

/* Ends it and its commands; answers its row of broker_psandbox_status when the container is
 * removed. One that has ended stays as it is. */
json_t *broker_close_psandbox(const struct broker_client *c, const char *psandbox_id,
                              struct err *e);

/* {"text"}: the newest MiB of its commands' output, as long as its record is kept. */
json_t *broker_psandbox_logs(const struct broker_client *c, const char *psandbox_id, struct err *e);

/* Closes the sandboxes in which run_options.session keeps the variables of a conversation, of one
 * language or (NULL) of all; one that keeps another language's, too, just forgets these:
 * {"sessions":[rows as of broker_close_psandbox]}. */
json_t *broker_reset_session(const struct broker_client *c, const char *conversation,
                             const char *language, struct err *e);
