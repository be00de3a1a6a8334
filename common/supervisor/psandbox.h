/*
 * The process of a persistent sandbox: one container that stays, forked by the main process for the
 * call that asks for it. Private to common/broker; what goes over the channel is in wire.h.
 *
 * It starts the container, answers whoever asked, and then runs what it is handed: commands
 * (several calls at once share the container), cells of an interpreter that keeps its variables, a
 * close, a look at the log. When nothing runs for a while the container is paused; it ends when
 * nobody used it for longer, when its time is over, when it is closed, or when the server stops and
 * what runs is done. When the main process dies it offers itself to the next one, and ends if none
 * comes within a minute. Without this process the container ends by itself: its standard input has
 * ended.
 */
#ifndef SANDCGI_SUPERVISOR_PSANDBOX_H
#define SANDCGI_SUPERVISOR_PSANDBOX_H

#include "common/protocol/run.h"
#include "common/sandbox/sandbox.h"
#include "common/scheduler/broker_config.h"

#include <jansson.h>

/* Borrowed but for what is said. */
struct psandbox_start {
    const struct broker_config *config;
    const struct sandbox_root *root;
    const struct engine_runner *runner; /* NULL: head names an image, which is allowed */
    const char *version;                /* of the engine's API; "" unknown */
    const char *helpers_path;           /* as engine_spec's */
    char run_id[RUN_ID_LEN + 1];
    int channel;        /* to the main process; taken over */
    const json_t *head; /* of the call that it is forked for: create_box or session */
    int connection;     /* that call's caller; taken over */
};

/* Returns when everything is cleaned up; the process has nothing more to do then. */
void psandbox_main(const struct psandbox_start *start);

/* Is there an interpreter for this language that keeps its variables? */
bool psandbox_session_known(const char *language);

#endif
