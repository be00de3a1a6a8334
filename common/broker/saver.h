/*
 * The saver: a long-lived child of the main process that copies changed files to the store, one
 * conversation after the other, never on a run's way. It finds its work in .state/unsaved
 * (common/sandbox/state/unsaved.h), and needs no message. When the server stops, its end of the
 * connection is closed once all other children have ended: it saves what is left, and ends.
 */
#pragma once

#include "common/broker/spawn.h"

/* The main process's side. */
struct saver_link {
    const struct spawner *spawner; /* borrowed */
    struct helper helper;
    struct deadline start; /* when one that has ended is started again */
    struct deadline end;   /* up to when its last work may take; never: it was not told to end */
};

void saver_link_init(struct saver_link *k, const struct spawner *spawner);
/* Begins to note changes, or ceases to; before anything is changed. */
int saver_link_open(struct saver_link *k, struct err *e);
void saver_link_tick(struct saver_link *k);
/* The server stops; now: without the last work. */
void saver_link_stop(struct saver_link *k, bool now);
/* A helper has ended. */
void saver_link_reap(struct saver_link *k, const struct child *child);
/* When the next tick has something to do. */
struct deadline saver_link_due(const struct saver_link *k);
