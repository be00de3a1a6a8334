/*
 * Who has room for a content on its way (scheduler/room_books.h): each owner holds a socket, over
 * which it says how much it needs (protocol/room.h). The room is free again when no process has the
 * socket any more, however its owner ended: no message says so.
 *
 * The first message is a job's, which has counted the sandbox. The socket may then go to a worker:
 * whose room it is does not change any more.
 */
#pragma once

#include "common/base/loop.h"
#include "common/scheduler/room_books.h"

struct rooms {
    struct loop *loop;               /* borrowed, */
    const struct sandbox_root *root; /* as this */
    struct room_books books;
    struct room *first;
    size_t n;
};

/* A new socket for an owner; -1: ERR_BUSY when there are too many. */
int rooms_open(struct rooms *rooms, struct err *e);
void rooms_clear(struct rooms *rooms);
