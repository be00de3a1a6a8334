/*
 * Records of runs whose result is kept: SANDBOX_ROOT/.runs/<run id>.d/ with
 *
 *   run.json     owner and retention; on disk before the caller gets the run's id
 *   result.json  two lines, {"endedAt","status","total"} and the result; written once, at the end
 *   output       the newest bytes of its output, raw
 *
 * Only the broker's account can read them.
 */
#pragma once

#include "common/protocol/run.h"
#include "common/records/output_ring.h"
#include "common/sandbox/sandbox.h"

#include <jansson.h>

#define RUN_LIST_MAX 100 /* runs in one list */

struct run_record {
    char *tenant, *conversation, *language;
    int64_t created;  /* Unix seconds, as are the next */
    int64_t deadline; /* the run's latest end */
    int64_t ended;    /* 0: there is no result */
    int64_t ttl_s;    /* from its end */
};

#define AUTO_RUN_RECORD AUTO(run_record_clear)

/* Frees the strings. */
void run_record_clear(struct run_record *r);

/* When the record expires, in Unix seconds; at the latest for a run without a result. */
int64_t run_record_expires(const struct run_record *r);

/* Adds conversationId, language, createdAt, endedAt? and expiresAt. */
void run_record_tell(const struct run_record *r, json_t *result);

/* Whether it has the form of a run id. */
bool run_id_ok(const char *run_id);

/* ERR_NOT_FOUND with WIRE_NO_SUCH_RUN; -1. */
int run_not_found(struct err *e);

/* Returns when the record is on the disk. -1 (ERR_IO: a full disk): nothing is left. */
int run_record_begin(const struct sandbox_root *root, const char *run_id,
                     const struct run_record *record, struct err *e);

/* Writes the result (with its "status") and the output. -1: readers see no result. */
int run_record_end(const struct sandbox_root *root, const char *run_id, int64_t ended,
                   const json_t *result, const struct output_ring *output, struct err *e);

/* The record of tenant's run, to be cleared with run_record_clear, and its result (new reference;
 * NULL: none, or torn). Every failure is run_not_found. */
int run_record_read(const struct sandbox_root *root, const char *run_id, const char *tenant,
                    struct run_record *out, json_t **out_result, struct err *e);

#define RUN_STATUS_MAX 16 /* bytes of a status with its NUL */

/* The record of any tenant's run without its result; *out_status "" when there is none. -1: torn.
 */
int run_record_look(const struct sandbox_root *root, const char *run_id, struct run_record *out,
                    char out_status[RUN_STATUS_MAX]);

/* The output of a run with a result, to be freed with output_ring_free; NULL: unreadable. */
struct output_ring *run_record_output(const struct sandbox_root *root, const char *run_id,
                                      struct err *e);

/* The tenant's runs (conversation NULL: of all), newest first, up to RUN_LIST_MAX: [{runId, status,
 * conversationId, language, createdAt, endedAt?, expiresAt}], times in Unix seconds. New reference.
 */
json_t *run_record_list(const struct sandbox_root *root, const char *tenant,
                        const char *conversation, int64_t now_unix, struct err *e);

/* One row of such a list. */
json_t *run_record_row(const char *run_id, const struct run_record *r, const char *status);

void run_record_remove(const struct sandbox_root *root, const char *run_id);

/* Removes expired records, and torn ones after an hour. */
void run_record_sweep(const struct sandbox_root *root, int64_t now_unix);
