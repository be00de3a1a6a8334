#include "config.h"

#include "common/base/auto.h"

#include <errno.h>
#include <string.h>

void auto_close_fd(int *fd)
{
    if (*fd < 0)
        return;
    int saved = errno;
    /* Linux releases the descriptor even when close fails with EINTR: no second try. */
    close(*fd);
    *fd = -1;
    errno = saved;
}

bool fds_add(struct fds *f, int take_fd)
{
    if (f->n == f->max) {
        auto_close_fd(&take_fd);
        return false;
    }
    f->at[f->n++] = take_fd;
    return true;
}

int fds_take(struct fds *f)
{
    if (f->n == 0)
        return -1;
    int fd = f->at[0];
    f->n--;
    memmove(f->at, f->at + 1, f->n * sizeof f->at[0]);
    return fd;
}

void fds_move(struct fds *to, struct fds *from)
{
    for (size_t i = 0; i < from->n; i++)
        fds_add(to, from->at[i]);
    from->n = 0;
}

void fds_clear(struct fds *f)
{
    while (f->n > 0)
        auto_close_fd(&f->at[--f->n]);
}
