/*
 * Records of runs whose result is kept: SANDBOX_ROOT/.runs/<run id>-<hash of the tenant>.d/ with
 *
 *   run.json     owner and retention; on disk before the caller gets the run's id
 *   result.json  two lines, {"endedAt","status","total", lengths of the texts} and the result,
 *                and its texts as they are; written once, at the end
 *   output       the newest bytes of its output, raw
 *
 * Only the broker's account can read them.
 */
#pragma once

#include "common/protocol/run.h"
#include "common/records/output.h"
#include "common/sandbox/sandbox.h"

#include <jansson.h>

#define RUN_RECORDS_DIR     ".runs"
#define RUN_RESULT_FILE     "result.json"
#define RUN_OUTPUT_FILE     "output"
#define RUN_TENANT_BYTES    8 /* of the hash of a tenant's name */
#define RUN_RECORD_NAME_LEN (RUN_ID_LEN + 1 + 2 * RUN_TENANT_BYTES + 2)

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

/* ERR_NOT_FOUND with WIRE_NO_SUCH_RUN; -1. */
int run_not_found(struct err *e);

/* The name of its folder. */
void run_record_name(const char *run_id, const char *tenant, char out[RUN_RECORD_NAME_LEN + 1]);

/* Returns when the record is on the disk. -1 (ERR_IO: a full disk): nothing is left. */
int run_record_begin(const struct sandbox_root *root, const char *run_id,
                     const struct run_record *record, struct err *e);

/* Writes the result (with its "status") and the output. -1: readers see no result. */
int run_record_end(const struct sandbox_root *root, const char *run_id,
                   const struct run_record *record, const json_t *result,
                   const struct output *output, struct err *e);

/* The record of tenant's run, to be cleared with run_record_clear, and its result (new reference;
 * NULL: none, or torn). Every failure is run_not_found. */
int run_record_read(const struct sandbox_root *root, const char *run_id, const char *tenant,
                    struct run_record *out, json_t **out_result, struct err *e);

#define RUN_STATUS_MAX 16 /* bytes of a status with its NUL */

/* The record in a folder of RUN_RECORDS_DIR without its result; *out_status "" when there is none.
 * -1: torn. */
int run_record_look(int runs_fd, const char *name, struct run_record *out,
                    char out_status[RUN_STATUS_MAX]);

/* The output of a run with a result, to be freed with output_free; NULL: unreadable. */
struct output *run_record_output(const struct sandbox_root *root, const char *run_id,
                                 const char *tenant, struct err *e);

/* One row of a list of runs. */
json_t *run_record_row(const char *run_id, const struct run_record *r, const char *status);

void run_record_remove(const struct sandbox_root *root, const char *run_id, const char *tenant);
/* By the folder's name. */
void run_record_remove_at(int runs_fd, const char *name);
