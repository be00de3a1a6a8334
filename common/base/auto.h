/*
 * Local variables that are released at the end of their scope.
 *
 *   AUTO_FD int fd = open(...);        closed when it goes out of scope
 *   AUTO_FREE char *s = mem_strdup(...);  freed when it goes out of scope
 *
 * Ownership leaves a function only through TAKE_FD / TAKE_PTR. A module defines an AUTO_<TYPE>
 * macro next to a type of its own (AUTO_BUF in buf.h).
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define AUTO(fn) __attribute__((cleanup(fn)))

/* Closes *fd unless it is negative, and sets it to -1. errno is kept. */
void auto_close_fd(int *fd);

static inline void auto_free_ptr(void *p)
{
    free(*(void **)p);
}

static inline void auto_close_dir(DIR **d)
{
    if (*d)
        closedir(*d);
}

#define AUTO_FD   AUTO(auto_close_fd)
#define AUTO_FREE AUTO(auto_free_ptr)
#define AUTO_DIR  AUTO(auto_close_dir)

#define TAKE_FD(fd)                                                                                \
    __extension__({                                                                                \
        int take_fd_ = (fd);                                                                       \
        (fd) = -1;                                                                                 \
        take_fd_;                                                                                  \
    })

#define TAKE_PTR(p)                                                                                \
    __extension__({                                                                                \
        __typeof__(p) take_p_ = (p);                                                               \
        (p) = NULL;                                                                                \
        take_p_;                                                                                   \
    })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/*
 * The descriptors that one message carries (sock.h).
 *
 *   AUTO_FDS struct fds files = FDS_INIT(FDS_MAX);    closed when it goes out of scope
 */
#define FDS_MAX 16

struct fds {
    size_t n;
    size_t max; /* at most FDS_MAX */
    int at[FDS_MAX];
};

#define FDS_INIT(most) ((struct fds){.max = (most)})

/* Appends take_fd; false: the list is full, take_fd is closed. */
bool fds_add(struct fds *f, int take_fd);
/* Removes the first and returns it; -1: the list is empty. */
int fds_take(struct fds *f);
/* Appends all of from to to; closes those that do not fit. */
void fds_move(struct fds *to, struct fds *from);
/* Closes all. */
void fds_clear(struct fds *f);

#define AUTO_FDS AUTO(fds_clear)
