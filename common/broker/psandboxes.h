/* Persistent sandboxes in the main process: who may have one, and which keeps a conversation's
 * variables. */
#pragma once

#include "common/broker/reattach.h"

struct psandboxes {
    const struct spawner *spawner; /* borrowed, as the next */
    struct reattach *reattach;
};

/* OP_CREATE_PSANDBOX and OP_SESSION. What sandboxes have sent must have been applied. */
void psandboxes_begin(struct psandboxes *p, int take_fd, const json_t *head);
/* The one that an OP_SESSION is for; NULL: none yet. */
struct child *psandboxes_find_session(struct psandboxes *p, const json_t *head);
