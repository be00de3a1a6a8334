/* Kept runs, from their records: one, lists, expiry, and what one tenant may keep. */
#pragma once

#include "common/base/clock.h"
#include "common/records/run_record.h"

#define RUN_LIST_MAX  100  /* runs in one list */
#define KEPT_RUNS_MAX 1000 /* results of one tenant */

/* As run_record_read; waits for the result while the run's supervisor lives and may be writing it,
 * until last. */
int kept_run_read(const struct sandbox_root *root, const char *run_id, const char *tenant,
                  struct deadline last, struct run_record *out, json_t **out_result, struct err *e);

/* The answer to a get_run or cancel_run with that head, of a run that no supervisor answers for;
 * new reference. NULL: run_not_found. */
json_t *kept_run_get(const struct sandbox_root *root, const json_t *head, struct deadline last,
                     struct err *e);

/* The tenant's runs (conversation NULL: of all), newest first, up to RUN_LIST_MAX: [{runId, status,
 * conversationId, language, createdAt, endedAt?, expiresAt}], times in Unix seconds. New reference.
 */
json_t *kept_runs_list(const struct sandbox_root *root, const char *tenant,
                       const char *conversation, int64_t now_unix, struct err *e);

/* Removes the kept results of what a conversation ran until before (Unix seconds); later runs are
 * those of a new conversation of the same name. */
void kept_runs_remove(const struct sandbox_root *root, const char *tenant, const char *conversation,
                      int64_t before);

/* Removes expired records, and torn ones after an hour. */
void kept_runs_sweep(const struct sandbox_root *root, int64_t now_unix);

/* Removes the tenant's oldest results above KEPT_RUNS_MAX and above the bound of their size. */
void kept_runs_bound(const struct sandbox_root *root, const char *tenant);
