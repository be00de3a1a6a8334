/*
 * Connections whose first message is still coming. Nobody waits for them: they have their time, and
 * when they are too many the oldest goes. Private to common/broker.
 */
#ifndef SANDCGI_BROKER_HEADS_H
#define SANDCGI_BROKER_HEADS_H

#include "common/base/clock.h"

#include <stddef.h>

struct broker;
struct head;

struct heads {
    struct head *first; /* the oldest */
    size_t n;
};

/* Takes a new connection; when its head is there already it is dealt with at once. */
void heads_take(struct broker *b, int take_fd);

/* Closes those whose time has passed. */
void heads_turn(struct broker *b);
struct deadline heads_next(const struct heads *h);
void heads_clear(struct broker *b);

#endif
