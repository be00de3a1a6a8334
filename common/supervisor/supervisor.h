/*
 * A run's supervisor: a process with one container for one run, forked ahead (it waits with its
 * container) or for a run that has come. Private to common/broker; what goes over the channel is in
 * wire.h.
 *
 * The process starts its container, reads the run's body, checks everything again (workers are not
 * trusted), runs the program, and answers whoever listens: the run's own caller, and those who look
 * in on it later. A run whose caller is answered or gone before its end is kept (run_record.h).
 * When the broker's main process dies, a supervisor that waits ends; one with a run goes on and
 * offers itself to the next main process.
 */
#ifndef SANDCGI_SUPERVISOR_SUPERVISOR_H
#define SANDCGI_SUPERVISOR_SUPERVISOR_H

#include "common/protocol/run.h"
#include "common/sandbox/sandbox.h"
#include "common/scheduler/broker_config.h"

#include <jansson.h>

/* Borrowed but for what is said. */
struct supervisor_start {
    const struct broker_config *config;
    const struct sandbox_root *root;
    const struct engine_runner *runner;
    const char *version; /* of the engine's API; "" unknown */
    char run_id[RUN_ID_LEN + 1];
    int channel;          /* to the main process; taken over */
    const char *warm_dir; /* name of a warm directory to wait on, or NULL; whoever made it removes
                          it unless it has become a sandbox */
    const char *sandbox_dir; /* sandbox of a known conversation to wait on, or NULL */
    json_t *claim;           /* head of the run that it is forked for, or NULL: ahead */
    int64_t queue_ms;        /* how long that run waited for its turn */
    int connection;          /* that run's caller, its body unread; taken over; -1: none */
};

/* Returns when everything is cleaned up; the process has nothing more to do then. */
void supervisor_main(const struct supervisor_start *start);

#endif
