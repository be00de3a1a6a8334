/* From what the engine said to run_code's result object. Private to common/broker. */
#ifndef SANDCGI_RECORDS_RUN_RESULT_H
#define SANDCGI_RECORDS_RUN_RESULT_H

#include "common/engine/engine.h"
#include "common/protocol/run.h"
#include "common/records/capture.h"
#include "common/records/output_ring.h"
#include "common/sandbox/snapshot.h"

/* The three views of a program's output, and when it is too much. */
struct run_capture {
    struct capture out, err, both;
    uint64_t max; /* of all output; 0: no limit */
};

void run_capture_init(struct run_capture *c, size_t keep, uint64_t max);
void run_capture_clear(struct run_capture *c);
/* false: it is too much. */
bool run_capture_add(struct run_capture *c, enum engine_stream stream, const char *data,
                     size_t len);

enum run_status run_result_status(const struct engine_outcome *outcome);

/* What every result tells of its run. Borrowed. */
struct run_story {
    const char *run_id;
    const struct sandbox *sandbox; /* its name is enough for a run that is not over */
    const struct run_capture *capture;
    int64_t queue_ms;
};

/* The result object: see run_code's output schema. Of more than RUN_FILES_MAX files those are
 * listed that are there and nearest to the top, the rest is counted. New reference, as the next. */
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

/* The same of a run that is not over; ms is how long its program has been running. */
json_t *run_result_running(const struct run_story *story, int64_t ms);

/* The same of one whose outcome nobody knows; reason says why. */
json_t *run_result_lost(const char *run_id, const char *reason);

/* Adds newOutput, what was printed from since on, and nextByte. */
void run_result_add_new(json_t *result, const struct output_ring *output, uint64_t since,
                        bool over);

#endif
