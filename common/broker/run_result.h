/* From what the engine said to run_code's result object. Private to common/broker. */
#ifndef SANDCGI_BROKER_RUN_RESULT_H
#define SANDCGI_BROKER_RUN_RESULT_H

#include "common/broker/capture.h"
#include "common/broker/run.h"
#include "common/engine/engine.h"
#include "common/sandbox/snapshot.h"

/* The three views of a program's output, and when it is too much. */
struct run_capture {
    struct capture out, err, both;
    uint64_t max; /* of all output; 0: no limit */
};

void run_capture_init(struct run_capture *c, size_t keep, uint64_t max);
void run_capture_clear(struct run_capture *c);
/* The sink to hand to the engine; c must outlive it. */
struct engine_sink run_capture_sink(struct run_capture *c);

enum run_status run_result_status(const struct engine_outcome *outcome);

/* The result object: see run_code's output schema. Files are listed up to RUN_FILES_MAX, the rest
 * counted. */
#define RUN_FILES_MAX 200
json_t *run_result_new(const char *run_id, const struct sandbox *sb,
                       const struct engine_outcome *outcome, const struct run_capture *capture,
                       const struct snapshot *before, const struct snapshot *after);

#endif
