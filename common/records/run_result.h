/* run_code's result object. */
#pragma once

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/engine/engine.h"
#include "common/protocol/run.h"
#include "common/records/output.h"
#include "common/sandbox/snapshot.h"

enum run_status run_result_status(const struct engine_outcome *outcome);

/* What every result says of its run. Borrowed. */
struct run_story {
    const char *run_id;
    const struct sandbox *sandbox; /* its name is enough for a run that is not over */
    const struct output *output;
    int64_t queue_ms;
};

/* The result object of run_code's output schema. Over RUN_FILES_MAX files, existing files nearest
 * to the top are listed and the rest is counted. New reference, as the next. */
#define RUN_FILES_MAX 200
json_t *run_result_new(const struct run_story *story, const struct engine_outcome *outcome,
                       const struct snapshot *before, const struct snapshot *after);

/* Adds "files" and "filesOmitted": what was created, changed and deleted. */
void run_result_add_files(json_t *result, const struct sandbox *sandbox,
                          const struct snapshot *before, const struct snapshot *after);

/* One command of several: {command, status, exitCode, signal, stdout, stderr, truncation,
 * durationMs}. */
json_t *run_result_command(const char *command, const struct output *output,
                           const struct engine_outcome *outcome);

/* The result of a run that has not ended; ms: since its program began. */
json_t *run_result_running(const struct run_story *story, int64_t ms);

/* The result of a run whose outcome is unknown. */
json_t *run_result_lost(const char *run_id, const char *reason);

/* Adds newOutput, at most max bytes of the output from since on (0: all), and nextByte. */
void run_result_add_new(json_t *result, const struct output *output, uint64_t since, size_t max,
                        bool over);

/* The members of a result about the retention and the quota of its conversation's files. */

/* Adds filesExpireAt, in Unix seconds, unless files do not expire. */
void retention_notice_expiry(const struct sandbox *sb, json_t *result);

/* Adds a notice, once, when files of this conversation have expired. */
void retention_notice_expired(const struct sandbox *sb, json_t *result);
/* Both, for results of calls that add files. */
void retention_notice_owner(const struct sandbox *sb, json_t *result);
/* Before a run: takes the snapshot, with the whole usage, and checks the quota. */
int retention_notice_before(const struct sandbox *sb, struct snapshot *out, struct err *e);

/* Adds a notice when over says what was removed after a run (trim.h). */
void retention_notice_over(json_t *result, const struct err *over);

/* Adds filesExpireAt, and a notice when the next run would be refused: files above the quota or too
 * deep to count, a disk below its reserve. Must be quick: an answer waits for it. */
void retention_notice_after(const struct sandbox *sb, const struct snapshot *after, json_t *result);
