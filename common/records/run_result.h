/* A program's output as it is kept, and run_code's result object. */
#pragma once

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/engine/engine.h"
#include "common/protocol/run.h"
#include "common/records/output_ring.h"
#include "common/sandbox/snapshot.h"

/* The head and the tail of a stream of output, in fixed memory. */
struct capture {
    char *data;     /* keep bytes: first half the head, second half a ring with the tail */
    size_t keep;    /* at most; 2 or more */
    uint64_t total; /* bytes seen */
};

#define AUTO_CAPTURE AUTO(capture_clear)

void capture_init(struct capture *c, size_t keep);
void capture_clear(struct capture *c);
void capture_add(struct capture *c, const char *data, size_t len);
bool capture_truncated(const struct capture *c);
/* Appends the kept bytes as valid UTF-8 (room for 3 * keep + 64), with a line in place of the bytes
 * left out. *out_kept: the number of original bytes kept. */
void capture_text(const struct capture *c, struct buf *out, uint64_t *out_kept);

/* The streams of a program, and both together. */
struct run_capture {
    struct capture out, err, both;
    uint64_t max; /* of all output; 0: no limit */
};

void run_capture_init(struct run_capture *c, size_t keep, uint64_t max);
void run_capture_clear(struct run_capture *c);
/* false: over max. */
bool run_capture_add(struct run_capture *c, enum engine_stream stream, const char *data,
                     size_t len);

enum run_status run_result_status(const struct engine_outcome *outcome);

/* What every result says of its run. Borrowed. */
struct run_story {
    const char *run_id;
    const struct sandbox *sandbox; /* its name is enough for a run that is not over */
    const struct run_capture *capture;
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
json_t *run_result_command(const struct run_text *command, const struct run_capture *capture,
                           const struct engine_outcome *outcome);

/* The result of a run that has not ended; ms: since its program began. */
json_t *run_result_running(const struct run_story *story, int64_t ms);

/* The result of a run whose outcome is unknown. */
json_t *run_result_lost(const char *run_id, const char *reason);

/* Adds newOutput, at most max bytes of the output from since on (0: all), and nextByte. */
void run_result_add_new(json_t *result, const struct output_ring *output, uint64_t since,
                        size_t max, bool over);

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
