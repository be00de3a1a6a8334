/*
 * Connections whose first message is still coming. Nobody waits for them: they have their time, and
 * when they are too many the oldest goes. Private to common/broker.
 */
#ifndef SANDCGI_BROKER_PENDING_CONNS_H
#define SANDCGI_BROKER_PENDING_CONNS_H

#include "common/base/clock.h"

#include <stddef.h>

struct broker;
struct head;

struct pending_conns {
    struct head *first; /* the oldest */
    size_t n;
};

/* Takes a new connection; when its head is there already it is dealt with at once. */
void pending_conns_take(struct broker *b, int take_fd);

/* Closes those whose time has passed. */
void pending_conns_tick(struct broker *b);
struct deadline pending_conns_next(const struct pending_conns *h);
void pending_conns_clear(struct broker *b);

#endif
