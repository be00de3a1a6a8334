/*
 * What is known of a persistent sandbox beside its process: SANDBOX_ROOT/.sandboxes/<run id>.json,
 * written at its start and whenever its state changes, and <run id>.log, what its commands printed,
 * once it has ended. One whose record says that it lives while nobody holds its lock (run_lock.h)
 * is lost. Only the broker's account can read them. Private to common/broker.
 */
#ifndef SANDCGI_RECORDS_PSANDBOX_RECORD_H
#define SANDCGI_RECORDS_PSANDBOX_RECORD_H

#include "common/protocol/run.h"
#include "common/records/output_ring.h"
#include "common/sandbox/sandbox.h"

#define PSANDBOX_LIST_MAX 100 /* rows of one list */

/* The sandboxId of a persistent sandbox's run. */
void psandbox_id_write(const char *run_id, char out[PSANDBOX_ID_LEN + 1]);
/* The run id in a client's text; NULL: it is no id of ours. */
const char *psandbox_run_id(const char *psandbox_id);

/*
 * A record is a JSON object: the row that its owner is told (client_psandboxes.h:
 * broker_psandbox_status), "tenant", "begunUs", which tells apart what was created in one second,
 * and "keepSeconds", for how long it is kept after its end. Replaces the one before at once; not
 * synced.
 */
int psandbox_record_write(const struct sandbox_root *root, const char *run_id, const json_t *record,
                          struct err *e);

/* Leaves the row of what is a record. */
void psandbox_record_strip(json_t *record);

/* The record as it was written; NULL: it is missing or torn. New reference. */
json_t *psandbox_record_read(const struct sandbox_root *root, const char *run_id);
/* Calls take with all of them, in no order; -1: they cannot be listed. */
int psandbox_record_each(const struct sandbox_root *root,
                         void (*take)(void *ctx, const char *run_id, const json_t *record),
                         void *ctx, struct err *e);
/* Does the record say that it has not ended, and is its process there? */
bool psandbox_record_lives(const struct sandbox_root *root, const char *run_id,
                           const json_t *record);

/* The owner's row of tenant's sandbox; new reference. Whatever is wrong is ERR_NOT_FOUND in one
 * text. */
json_t *psandbox_record_row(const struct sandbox_root *root, const char *psandbox_id,
                            const char *tenant, struct err *e);

/* The row of the newest sandbox that kept the variables of a conversation in that language, but not
 * of the one of that run id; NULL: there was none, or it is forgotten. New reference. */
json_t *psandbox_record_last_session(const struct sandbox_root *root, const char *tenant,
                                     const char *conversation, const char *language,
                                     const char *but_run_id);

/* Why one ended that its owner did not want any more. */
#define PSANDBOX_CLOSED_BY_OWNER "by close_sandbox"
/* What became of the sandbox of that row: "is lost", "has expired", "is closed"; in all it is ended
 * or ending. */
const char *psandbox_record_end(const json_t *row);
/* The same for a call: ERR_NOT_FOUND with what became of the sandbox of that row; -1. */
int psandbox_record_say_end(const json_t *row, struct err *e);
/* ERR_NOT_FOUND in the one text; -1. */
int psandbox_not_found(struct err *e);

/* The tenant's rows, of a conversation or (NULL) of all, newest first, up to PSANDBOX_LIST_MAX. New
 * reference. */
json_t *psandbox_record_list(const struct sandbox_root *root, const char *tenant,
                             const char *conversation, struct err *e);

int psandbox_record_write_log(const struct sandbox_root *root, const char *run_id,
                              const struct output_ring *log, struct err *e);
/* Appends it as it was printed; one that cannot be read is empty. */
void psandbox_record_read_log(const struct sandbox_root *root, const char *psandbox_id,
                              struct buf *out);

/* Forgets those whose time is over. */
void psandbox_record_sweep(const struct sandbox_root *root, int64_t now_unix);

#endif
