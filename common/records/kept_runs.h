/* All records of kept runs: lists, expiry, and what one tenant may keep. */
#pragma once

#include "common/records/run_record.h"

#define RUN_LIST_MAX  100  /* runs in one list */
#define KEPT_RUNS_MAX 1000 /* results of one tenant */

/* The tenant's runs (conversation NULL: of all), newest first, up to RUN_LIST_MAX: [{runId, status,
 * conversationId, language, createdAt, endedAt?, expiresAt}], times in Unix seconds. New reference.
 */
json_t *kept_runs_list(const struct sandbox_root *root, const char *tenant,
                       const char *conversation, int64_t now_unix, struct err *e);

/* Removes expired records, and torn ones after an hour. */
void kept_runs_sweep(const struct sandbox_root *root, int64_t now_unix);

/* Removes the tenant's oldest results above KEPT_RUNS_MAX and above the bound of their size. */
void kept_runs_bound(const struct sandbox_root *root, const char *tenant);
