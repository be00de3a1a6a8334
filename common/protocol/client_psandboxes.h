/*
 * The worker's side of persistent sandboxes: containers that stay for a conversation and run
 * commands until they are closed, idle for too long, or too old. A call ends as client_call.h says;
 * one that is not wanted any more ends its command, never the sandbox.
 *
 * A sandbox that is none of this tenant's, was closed long ago or never was: ERR_NOT_FOUND in one
 * text. One that was closed, has expired or was lost tells that to its owner (ERR_NOT_FOUND as
 * well) for as long as its record is kept.
 */
#ifndef SANDCGI_PROTOCOL_CLIENT_PSANDBOXES_H
#define SANDCGI_PROTOCOL_CLIENT_PSANDBOXES_H

#include "common/protocol/client_call.h"

struct broker_psandbox_request {
    const char *tenant, *conversation;
    const char *language; /* a runner's; NULL: image says */
    const char
        *image; /* one that the operator allows (SANDBOX_PERSISTENT_IMAGES); NULL: language */
    const char *alias; /* a second place of /data in it, as "/app"; NULL: none */
    bool network;
    uint64_t idle_ms, total_ms; /* 0: the settings, which are also the most */
};

/*
 * Answers when its container is up: {"sandboxId", "status":"running", "conversationId",
 * "language" | "image", "network", "createdAt", "idleSeconds", "expiresAt"}, times in Unix seconds.
 * ERR_LIMIT: the tenant has as many as it may have; ERR_BUSY: the server has; ERR_DENIED: an image
 * that is not allowed, or network; ERR_NOT_FOUND: no such language or image.
 */
json_t *broker_create_psandbox(const struct broker_client *c,
                               const struct broker_psandbox_request *want, struct err *e);

struct broker_exec_want {
    const char *psandbox_id;
    const struct run_text *commands; /* n of them, up to PSANDBOX_COMMANDS_MAX, each for sh -c */
    size_t n;
    const char *cwd;     /* absolute, or below /data; NULL: /data */
    uint64_t timeout_ms; /* of all commands together; 0: the setting */
    const struct run_env *env;
    size_t n_env;
    struct run_text input; /* of the first command; data NULL: none */
    bool stop_at_failure;  /* no command behind one that did not end with 0 */
};

/*
 * Runs commands one after the other: {"success", "results":[{"command", "status", "exitCode",
 * "signal", "stdout", "stderr", "truncation":{"stdout","stderr"}, "durationMs"}], "files":[{name,
 * size, url?, change}], "filesOmitted", "conversationId"}. status and truncation are as
 * broker_run's; success: all have run and ended with 0. files: what changed in /data meanwhile,
 * whoever changed it. Several calls at once share the sandbox; ERR_BUSY over eight. ERR_LOST: the
 * container was ended from outside. callbacks may be NULL.
 */
json_t *broker_exec(const struct broker_client *c, const char *tenant,
                    const struct broker_exec_want *want, const struct broker_callbacks *callbacks,
                    struct err *e);

/*
 * {"sandboxes":[{"sandboxId", "status":"running"|"paused"|"closed"|"expired"|"lost", … as
 * broker_create_psandbox's, "session":bool, "lastUsedAt", "endedAt"?, "reason"?}]}: one
 * (psandbox_id), those of a conversation, or (both NULL) all of the tenant's that are not
 * forgotten, the newest first.
 */
json_t *broker_psandbox_status(const struct broker_client *c, const char *tenant,
                               const char *psandbox_id, const char *conversation, struct err *e);

/* Ends it, and the commands in it; answers its row of broker_psandbox_status when its container is
 * removed. One that has ended already stays as it is. */
json_t *broker_close_psandbox(const struct broker_client *c, const char *tenant,
                              const char *psandbox_id, struct err *e);

/* {"text"}: the newest MiB of what its commands printed, in the order it came; of one that has
 * ended, too, as long as its record is kept. */
json_t *broker_psandbox_logs(const struct broker_client *c, const char *tenant,
                             const char *psandbox_id, struct err *e);

/* Closes the sandboxes in which run_options.session keeps the variables of a conversation, of one
 * language or (NULL) of all: {"sessions":[rows as of broker_close_psandbox]}. */
json_t *broker_reset_session(const struct broker_client *c, const char *tenant,
                             const char *conversation, const char *language, struct err *e);

#endif
