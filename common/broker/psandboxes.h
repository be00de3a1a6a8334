/*
 * Persistent sandboxes in the main process: who may have one, and which connection is handed to
 * which.
 *
 * One that has outlived the broker before looks for this one every 200 ms (container.c). Until
 * it is back its row is among the children without a process and a channel, so that it counts and
 * its files are not removed; a call for it is held for a moment.
 */
#pragma once

#include "common/broker/spawn.h"

struct held_call;

struct psandboxes {
    const struct spawner *spawner; /* borrowed */
    /* Called with each call that was held, when it is known what became of its sandbox; takes both
     * descriptors. */
    void (*dispatch)(void *ctx, int take_fd, const json_t *head, int take_passed_fd);
    void *ctx;
    struct held_call *first; /* the oldest */
    struct deadline check;   /* when to see which have ended; never: none is missing */
    struct deadline young;   /* until then the broker before may still have begun one */
};

/* Enters those whose records say that they live, and whose locks are held. */
void psandboxes_init(struct psandboxes *p, const struct spawner *spawner);

/* OP_CREATE_PSANDBOX and OP_SESSION. What sandboxes have sent must have been applied. */
void psandboxes_create(struct psandboxes *p, int take_fd, const json_t *head);
void psandboxes_session(struct psandboxes *p, int take_fd, const json_t *head);
/* OP_ADOPT_PSANDBOX: one comes back on this connection. */
void psandboxes_adopt(struct psandboxes *p, int take_fd, const json_t *head);
/* Operations of a living one: true when it has the connection. Reads the record of an unknown id
 * only as long as the broker before may have begun it. */
bool psandboxes_hand(struct psandboxes *p, int fd, const json_t *head);
/* The same for operations of a run in one. */
bool psandboxes_hand_run(struct psandboxes *p, int fd, const json_t *head);

void psandboxes_tick(struct psandboxes *p);
struct deadline psandboxes_due(const struct psandboxes *p);
/* The server stops: they end when what runs in them has ended. Relieved by another broker: they are
 * released, and look for that one. */
void psandboxes_end(struct psandboxes *p, bool relieved);
