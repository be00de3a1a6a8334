/* Ids of runs and persistent sandboxes. */
#pragma once

#include "common/protocol/run.h"

/* RUN_ID_LEN hex digits? A client's text may be anything. */
bool run_id_ok(const char *run_id);

/* The sandboxId of a persistent sandbox's run. */
void psandbox_id_write(const char *run_id, char out[PSANDBOX_ID_LEN + 1]);
/* The run id in a client's text; NULL: not a sandboxId. */
const char *psandbox_run_id(const char *psandbox_id);

/* The id of the n-th run, from 1 on, in the sandbox with that run id. It begins as that does. */
void psandbox_run_id_write(const char *psandbox_run_id, uint32_t n, char out[RUN_ID_LEN + 1]);
/* Whether a run of that id would be one of the sandbox. */
bool psandbox_has_run(const char *psandbox_run_id, const char *run_id);
