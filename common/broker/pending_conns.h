/*
 * Connections whose first message is still coming. The main process does not wait for them: each
 * has its time, and when there are too many the oldest is closed.
 */
#pragma once

#include "common/base/loop.h"
#include "common/protocol/ops.h"

#include <jansson.h>
#include <stddef.h>

struct pending_conn;

struct pending_conns {
    struct loop *loop; /* borrowed */
    /* Called with each first message; takes both descriptors (-1: none rode along). */
    void (*dispatch)(void *ctx, int take_fd, enum op_sender sender, const json_t *head,
                     int take_passed_fd);
    void *ctx;
    struct pending_conn *first; /* the oldest */
    size_t n;
    struct deadline quiet; /* until then what is wrong with them is counted, not told */
    size_t n_untold;
};

/* A new connection; when its message is there already it is dispatched at once. */
void pending_conns_add(struct pending_conns *conns, int take_fd, enum op_sender sender);
/* Closes those whose time has passed. */
void pending_conns_tick(struct pending_conns *conns);
struct deadline pending_conns_due(const struct pending_conns *conns);
void pending_conns_clear(struct pending_conns *conns);
