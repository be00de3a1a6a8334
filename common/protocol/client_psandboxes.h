/*
 * Persistent sandboxes, for workers. A cancelled call ends its command, never the sandbox.
 * ERR_NOT_FOUND has one text for an unknown, forgotten or foreign sandbox; the owner of a closed,
 * expired or lost one is told so as long as its record is kept.
 */
#pragma once

#include "common/protocol/client_call.h"

struct broker_psandbox_request {
    const char *tenant, *conversation;
    const char *language; /* NULL: image */
    const char *image;    /* one of SANDBOX_PERSISTENT_IMAGES; NULL: language */
    const char *alias;    /* a second mount point of /data, as "/app"; NULL: none */
    bool network;
    uint64_t idle_ms, total_ms; /* 0: the settings, which are also the most */
};

/*
 * Answers when the container is up: {"sandboxId", "status":"running", "conversationId", "language"
 * | "image", "network", "createdAt", "idleSeconds", "expiresAt"}, times in Unix seconds. ERR_LIMIT:
 * of the tenant; ERR_BUSY: of the server; ERR_DENIED: the image or the network is not allowed;
 * ERR_NOT_FOUND: no such language or image.
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
    bool stop_at_failure;  /* at the first command that does not end with 0 */
};

/*
 * Runs commands one after the other: {"success", "results":[{"command", "status", "exitCode",
 * "signal", "stdout", "stderr", "truncation":{"stdout","stderr"}, "durationMs"}], "files":[{name,
 * size, url?, change}], "filesOmitted", "conversationId"}. status and truncation are broker_run's;
 * success: all ended with 0; files: all changes in /data meanwhile. ERR_BUSY: over eight calls at
 * once; ERR_LOST: the container was ended from outside. callbacks may be NULL.
 */
json_t *broker_exec(const struct broker_client *c, const char *tenant,
                    const struct broker_exec_want *want, const struct broker_callbacks *callbacks,
                    struct err *e);

/*
 * {"sandboxes":[{"sandboxId", "status":"running"|"paused"|"closed"|"expired"|"lost", … as
 * broker_create_psandbox's, "session":bool, "lastUsedAt", "endedAt"?, "reason"?}]}: one
 * (psandbox_id), a conversation's, or (both NULL) all of the tenant's, the newest first.
 */
json_t *broker_psandbox_status(const struct broker_client *c, const char *tenant,
                               const char *psandbox_id, const char *conversation, struct err *e);

/* Ends it and its commands; answers its row of broker_psandbox_status when the container is
 * removed. One that has ended stays as it is. */
json_t *broker_close_psandbox(const struct broker_client *c, const char *tenant,
                              const char *psandbox_id, struct err *e);

/* {"text"}: the newest MiB of its commands' output, as long as its record is kept. */
json_t *broker_psandbox_logs(const struct broker_client *c, const char *tenant,
                             const char *psandbox_id, struct err *e);

/* Closes the sandboxes in which run_options.session keeps the variables of a conversation, of one
 * language or (NULL) of all: {"sessions":[rows as of broker_close_psandbox]}. */
json_t *broker_reset_session(const struct broker_client *c, const char *tenant,
                             const char *conversation, const char *language, struct err *e);
