/* Persistent sandboxes in the main process: who may have one. */
#pragma once

#include "common/broker/spawn.h"

/* OP_CREATE_PSANDBOX, and OP_SESSION of a conversation whose variables no sandbox keeps. What
 * sandboxes have sent must have been applied. */
void psandboxes_begin(const struct spawner *s, int take_fd, const json_t *head);
