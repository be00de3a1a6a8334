/*
 * Locals that clean themselves up.
 *
 *   AUTO_FD int fd = open(...);        closed when it goes out of scope
 *   AUTO_FREE char *s = xstrdup(...);  freed when it goes out of scope
 *
 * Ownership leaves a function only through TAKE_FD / TAKE_PTR, which read as "this is handed over".
 * Modules with a type of their own put an AUTO_<TYPE> macro next to it (AUTO_BUF in buf.h).
 */
#ifndef SANDCGI_BASE_AUTO_H
#define SANDCGI_BASE_AUTO_H

#include <dirent.h>
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

#endif
