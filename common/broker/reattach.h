/*
 * Lasting sandboxes that have outlived the broker before and have not come back yet: they look for
 * this one every 200 ms (stay_channel.c). Until then their rows are in the books, without process
 * and channel, so that they count, and nobody takes their files; who calls for one is held for a
 * moment. Part of the main process; private to common/broker.
 */
#ifndef SANDCGI_BROKER_REATTACH_H
#define SANDCGI_BROKER_REATTACH_H

#include "common/base/clock.h"

#include <jansson.h>
#include <stdbool.h>

struct broker;
struct child;
struct reattach_call;

struct reattach {
    struct reattach_call *first; /* calls that are held, the oldest first */
    struct deadline look;        /* when to see who lives no more; never: nobody is reattach */
    struct deadline young;       /* until then the broker before may still have begun one */
};

void reattach_init(struct reattach *a);
/* Enters those into the books whose records say that they live, while somebody holds their lock. */
void reattach_expect(struct broker *b);
bool reattach_is(const struct child *child);
/* The tenant's sandbox of that id that nobody knew of so far; its row is in the books. NULL: there
 * is none. */
struct child *reattach_discover(struct broker *b, const char *tenant, const char *run_id);
/* The call begins anew when it is known what became of the sandbox, or is busy soon; fd stays the
 * caller's. */
void reattach_hold(struct broker *b, const struct child *child, int fd, const json_t *head);
/* One is back, with a row of its own, or has ended: who was held for it goes on. */
void reattach_settle(struct broker *b, const struct child *child);

void reattach_tick(struct broker *b);
struct deadline reattach_next(const struct reattach *a);
/* Nobody is reattach any more, who was held is busy. */
void reattach_end(struct broker *b);

#endif
