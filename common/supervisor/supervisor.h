/*
 * Processes that own one container each; the broker's main process forks them. The messages on the
 * channel are described in wire.h.
 *
 * A run's supervisor serves a run, which it is forked for or which its warm container is claimed
 * for. It checks the request again (workers are not trusted) and answers the run's caller and all
 * who poll it. If the main process says so then, its container is wiped and waits for the next run
 * of the same conversation, and so on; every run has an id, a record and output of its own. When
 * the main process ends, a container that waits is removed; a run goes on, and its supervisor
 * offers itself to the next main process.
 *
 * A persistent sandbox's process serves any number of calls: commands, cells of an interpreter that
 * keeps its variables, the log, a close. It pauses the container when nothing runs, and ends when
 * it was unused for too long, when its time is over, when it is closed, or when the server stops.
 * Without a main process it ends after a minute. Without it the container ends, since its standard
 * input is closed.
 */
#pragma once

#include "common/protocol/run.h"
#include "common/sandbox/sandbox.h"
#include "common/scheduler/broker_config.h"

#include <jansson.h>

/* Borrowed, except for the two descriptors. */
struct supervisor_start {
    const struct broker_config *config;
    const struct sandbox_root *root;
    bool psandbox;                      /* what it is forked to be: else a run's supervisor */
    const struct engine_runner *runner; /* NULL: head names an image, which is allowed */
    struct engine_facts facts;
    char container_id[RUN_ID_LEN + 1]; /* its lock and label; also the id of its first run, or of a
                                          persistent sandbox */
    int channel;                       /* to the main process; taken over */
    const json_t *head;      /* of the call that it is forked for; NULL: a warm container */
    int connection;          /* that call's caller, its body unread; taken over; -1: none */
    const char *sandbox_dir; /* of the call's conversation, or of that which a warm container is
                                for; NULL: for any */
    /* Of a run's supervisor. */
    int64_t queue_ms;     /* how long the run of head was queued */
    const char *warm_dir; /* of a warm container without a conversation; the main process removes it
                             unless it has become a sandbox */
    /* Of a persistent sandbox's process. */
    const char *helpers_path; /* as engine_spec's */
};

/* Returns when everything is cleaned up; the process has nothing more to do then. */
void supervisor_main(const struct supervisor_start *start);

/* Is there an interpreter for this language that keeps its variables? */
bool psandbox_session_known(const char *language);
