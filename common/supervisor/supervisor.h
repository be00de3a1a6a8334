/*
 * A process that owns one container; the broker's main process forks it. wire.h describes the
 * messages on its channel. It checks each call again (workers are not trusted), and answers it and
 * all who ask for what it runs.
 *
 * A container of the pool serves one run after the other. If the main process says so after a run,
 * the container is wiped and waits for the next run of the same conversation; every run has an id,
 * a record and output of its own. When the main process ends, a container that waits is removed; a
 * run goes on, and its supervisor offers itself to the next main process.
 *
 * The container of a persistent sandbox is not wiped, and serves any number of calls: commands,
 * cells of an interpreter that keeps its variables, the log, a close. It is paused when nothing
 * runs. Its supervisor ends when it was unused for too long, when its time is over, when it is
 * closed, or when the server stops; without a main process after a minute. If the supervisor is
 * killed, the container ends, since its standard input is closed.
 */
#pragma once

#include "common/protocol/wire.h"
#include "common/sandbox/sandbox.h"
#include "common/scheduler/broker_config.h"

#include <jansson.h>

/* Borrowed, except for the two descriptors. */
struct supervisor_start {
    const struct broker_config *config;
    const struct sandbox_root *root;
    bool psandbox;                        /* of a persistent sandbox, else of the pool */
    const struct engine_runner *runner;   /* NULL: head names an image, which is allowed */
    const struct engine_runners *runners; /* all that there are */
    bool reuse; /* of the pool: containers of the image may serve several runs */
    struct engine_facts facts;
    char container_id[RUN_ID_LEN + 1]; /* its lock and label; also the id of its first run, or of a
                                          persistent sandbox */
    int channel;                       /* to the main process; taken over */
    struct handed_call call;           /* that it is forked for, its connection taken over; no head:
                                          a warm container, for that sandbox_dir or (NULL) any */
    const char *warm_dir; /* of a warm container without a conversation; the main process removes it
                             unless it has become a sandbox */
    const char *helpers_path; /* as engine_spec's */
};

/* Returns when everything is cleaned up; the process has nothing more to do then. */
void supervisor_main(const struct supervisor_start *start);

/* Is there an interpreter for this language that keeps its variables? */
bool psandbox_session_known(const char *language);
