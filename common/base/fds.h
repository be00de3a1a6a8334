/*
 * A handful of descriptors that go together, as they ride along with one message (sock.h).
 *
 *   AUTO_FDS struct fds files = FDS_INIT(FDS_MAX);    closed when it goes out of scope
 */
#ifndef SANDCGI_BASE_FDS_H
#define SANDCGI_BASE_FDS_H

#include "common/base/auto.h"

#include <stdbool.h>
#include <stddef.h>

#define FDS_MAX 16

struct fds {
    size_t n;
    size_t max; /* at most FDS_MAX */
    int at[FDS_MAX];
};

#define FDS_INIT(most)                                                                             \
    {                                                                                              \
        .max = (most)                                                                              \
    }

/* Takes fd over, behind the others. false: there is no room, and fd is closed. */
bool fds_add(struct fds *f, int take_fd);
/* Hands the first one over; -1: there is none. The others move up. */
int fds_take(struct fds *f);
/* Hands over as many of from's as to has room for, in their order; the rest is closed. */
void fds_move(struct fds *to, struct fds *from);
/* Closes all. */
void fds_clear(struct fds *f);

#define AUTO_FDS AUTO(fds_clear)

#endif
