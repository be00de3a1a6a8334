/*
 * Persistent sandboxes that have outlived the broker before, or whose channel was cut. One looks
 * for this broker every 200 ms (channel.c). Until it is back its row is among the children without
 * a channel, so that it counts and its files are not removed; dispatch.c holds a call for it for a
 * moment.
 */
#pragma once

#include "common/broker/spawn.h"

struct reattach {
    const struct spawner *spawner; /* borrowed */
    bool *settled;                 /* set when one is back, or has ended instead; borrowed */
    struct deadline check;         /* when to see which have ended; never: none is missing */
    struct deadline young;         /* until then the broker before may still have begun one */
};

/* Enters those whose records say that they live, and whose locks are held. */
void reattach_init(struct reattach *r, const struct spawner *spawner, bool *settled);
/* Enters those that were begun since; does nothing when that cannot be any more. */
void reattach_look(struct reattach *r);
/* One of this broker's own is among them now. */
void reattach_await(struct reattach *r);
/* This child is back, or has ended. */
void reattach_settle(struct reattach *r, struct child *child);
void reattach_tick(struct reattach *r);
