/*
 * What outlives a run whose result is kept: SANDBOX_ROOT/.runs/<run id>.d/ with
 *
 *   run.json     owner and retention; on disk before the run's id is given to its caller
 *   result.json  two lines, {"endedAt","status","total"} and the result; written once, at the end
 *   output       the newest bytes of its output, raw
 *
 * Only the broker's account can read them.
 */
#ifndef SANDCGI_RECORDS_RUN_RECORD_H
#define SANDCGI_RECORDS_RUN_RECORD_H

#include "common/protocol/run.h"
#include "common/records/output_ring.h"
#include "common/sandbox/sandbox.h"

#include <jansson.h>

#define RUN_LIST_MAX 100 /* runs in one list */

struct run_record {
    char *tenant, *conversation, *language;
    int64_t created;  /* Unix seconds, as are the next */
    int64_t deadline; /* by then it is over, however it ends */
    int64_t ended;    /* 0: there is no result */
    int64_t ttl_s;    /* how long it is kept after its end */
};

#define RUN_RECORD_INIT                                                                            \
    {                                                                                              \
        0                                                                                          \
    }
#define AUTO_RUN_RECORD AUTO(run_record_clear)

/* Frees the strings. */
void run_record_clear(struct run_record *r);

/* When it goes, in Unix seconds; the latest possible moment for a run that is not over. */
int64_t run_record_expires(const struct run_record *r);

/* Tells in a result whose run it is, since when, and when it goes: conversationId, language,
 * createdAt, endedAt?, expiresAt. */
void run_record_tell(const struct run_record *r, json_t *result);

/* Is that what our run ids look like? */
bool run_id_ok(const char *run_id);

/* ERR_NOT_FOUND with the one text for unknown, foreign, expired and malformed ids; -1. */
int run_not_found(struct err *e);

/* Returns when the record is on the disk. -1 (ERR_IO: a full disk): nothing is left. */
int run_record_begin(const struct sandbox_root *root, const char *run_id,
                     const struct run_record *record, struct err *e);

/* Puts the result (with its "status") and the output there; ended is when it was over. -1: no
 * result is seen by waiters. */
int run_record_end(const struct sandbox_root *root, const char *run_id, int64_t ended,
                   const json_t *result, const struct output_ring *output, struct err *e);

/*
 * The record of tenant's run, to be cleared with run_record_clear, and its result (new reference;
 * NULL: there is none). Whatever is wrong is run_not_found.
 */
int run_record_read(const struct sandbox_root *root, const char *run_id, const char *tenant,
                    struct run_record *out, json_t **out_result, struct err *e);

#define RUN_STATUS_MAX 16 /* bytes of a status with its NUL */

/* Anybody's record without its result, for lists; *out_status "" when there is no result. -1: it
 * makes no sense. */
int run_record_look(const struct sandbox_root *root, const char *run_id, struct run_record *out,
                    char out_status[RUN_STATUS_MAX]);

/* The output of a run that has a result, to be freed with output_ring_free; NULL: it cannot be
 * read. */
struct output_ring *run_record_output(const struct sandbox_root *root, const char *run_id,
                                      struct err *e);

/*
 * The tenant's runs (conversation NULL: of all), newest first, up to RUN_LIST_MAX: [{runId,
 * conversationId, language, status, createdAt, endedAt?, expiresAt}], times in Unix seconds. New
 * reference.
 */
json_t *run_record_list(const struct sandbox_root *root, const char *tenant,
                        const char *conversation, int64_t now_unix, struct err *e);

/* One row of such a list. */
json_t *run_record_row(const char *run_id, const struct run_record *r, const char *status);

void run_record_remove(const struct sandbox_root *root, const char *run_id);

/* Removes what has expired, and what makes no sense and is an hour old. */
void run_record_sweep(const struct sandbox_root *root, int64_t now_unix);

#endif
