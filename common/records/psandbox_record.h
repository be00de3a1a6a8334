/*
 * Records of persistent sandboxes in SANDBOX_ROOT/.sandboxes: <run id>.json, written at every
 * change of state, and <run id>.log, the output of its commands, written at its end. A sandbox
 * without an end whose lock (run_lock.h) is free is lost. Only the broker's account can read them.
 */
#pragma once

#include "common/protocol/run.h"
#include "common/records/output.h"
#include "common/sandbox/sandbox.h"

#define PSANDBOX_LIST_MAX 100 /* rows of one list */

/* The language of a run that is a command, in lists of runs. */
#define PSANDBOX_COMMAND_LANGUAGE "sh"
/*
 * A record is the row of broker_psandbox_status with "tenant", "begunUs" (orders sandboxes of one
 * second) and "keepSeconds" (how long it is kept after its end). Replaced atomically; not synced.
 */
int psandbox_record_write(const struct sandbox_root *root, const char *run_id, const json_t *record,
                          struct err *e);

/* Makes a record the row of broker_psandbox_status. */
void psandbox_record_strip(json_t *record);

/* New reference; NULL: missing or torn. */
json_t *psandbox_record_read(const struct sandbox_root *root, const char *run_id);
/* Calls take with every record, in no order. */
int psandbox_record_each(const struct sandbox_root *root,
                         void (*take)(void *ctx, const char *run_id, const json_t *record),
                         void *ctx, struct err *e);

/* The row of tenant's sandbox; new reference. Every failure is psandbox_not_found. */
json_t *psandbox_record_row(const struct sandbox_root *root, const char *psandbox_id,
                            const char *tenant, struct err *e);

/* The row of a conversation's newest session in that language, but_run_id excepted; NULL: none is
 * recorded. New reference. */
json_t *psandbox_record_last_session(const struct sandbox_root *root, const char *tenant,
                                     const char *conversation, const char *language,
                                     const char *but_run_id);

#define PSANDBOX_CLOSED_BY_OWNER "by its owner"
/* "is lost", "has expired" or "is closed" of an ended or ending sandbox. */
const char *psandbox_record_end(const json_t *row);
/* ERR_NOT_FOUND with that and the reason; -1. */
int psandbox_record_say_end(const json_t *row, struct err *e);
/* ERR_NOT_FOUND with WIRE_NO_SUCH_SANDBOX; -1. */
int psandbox_not_found(struct err *e);

/* The tenant's rows, of a conversation or (NULL) of all, newest first, up to PSANDBOX_LIST_MAX. New
 * reference. */
json_t *psandbox_record_list(const struct sandbox_root *root, const char *tenant,
                             const char *conversation, struct err *e);

int psandbox_record_write_log(const struct sandbox_root *root, const char *run_id,
                              const struct output *log, struct err *e);
/* Appends the raw log; an unreadable one is empty. */
void psandbox_record_read_log(const struct sandbox_root *root, const char *psandbox_id,
                              struct buf *out);

/* Removes expired records. */
void psandbox_record_sweep(const struct sandbox_root *root, int64_t now_unix);
