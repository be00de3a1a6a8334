/* A store in a directory, on any mount: NFS has neither renames that replace nothing nor files
 * without a name, so that none is used. */
#include "config.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK     65536
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct folder_store {
    struct store base;
    int fd;
};

static struct folder_store *self(struct store *s)
{
    return (struct folder_store *)(void *)s;
}

/* The folder of a key, made when make says so, and the key's last part. -1 with errno. */
static int open_above(const struct folder_store *f, const char *key, bool make,
                      const char **out_last)
{
    const char *slash = strrchr(key, '/');
    AUTO_FREE char *above = mem_strndup(key, slash ? (size_t)(slash - key) : 0);

    *out_last = slash ? slash + 1 : key;
    if (!slash)
        return fcntl(f->fd, F_DUPFD_CLOEXEC, 3);
    if (make && mkdirat(f->fd, above, 0700) < 0 && errno != EEXIST)
        return -1;
    return openat(f->fd, above, DIR_FLAGS);
}

static int copy_in(int fd, struct payload *c, struct err *e)
{
    AUTO_FREE char *block = mem_alloc_raw(BLOCK);
    ssize_t n;

    if (payload_rewind(c, e) < 0)
        return -1;
    while ((n = payload_read(c, block, BLOCK, e)) > 0)
        if (fdio_write_all(fd, block, (size_t)n, e) < 0)
            return err_wrap(e, "the store");
    if (n < 0)
        return -1;
    return fsync(fd) < 0 ? err_errno(e, "the store cannot be written") : 0;
}

static int write_and_rename(int dir, const char *temporary, const char *last, struct payload *c,
                            struct err *e)
{
    AUTO_FD int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            0600);

    if (fd < 0)
        return err_errno(e, "the store cannot be written");
    if (copy_in(fd, c, e) < 0)
        return -1;
    if (renameat(dir, temporary, dir, last) < 0 || fsync(dir) < 0)
        return err_errno(e, "the store cannot be written");
    return 0;
}

static int folder_put(struct store *s, const char *key, struct payload *c, struct err *e)
{
    char temporary[32] = ".new-", *random = temporary + strlen(temporary);
    const char *last;
    AUTO_FD int dir = open_above(self(s), key, true, &last);

    if (dir < 0 && errno == ENOENT) /* it was empty, and removed just now */
        dir = open_above(self(s), key, true, &last);
    if (dir < 0)
        return err_errno(e, "the store cannot be written");
    crypto_random_hex(8, random);
    int rc = write_and_rename(dir, temporary, last, c, e);
    if (rc < 0)
        (void)unlinkat(dir, temporary, 0);
    return rc;
}

static int not_there(struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, "the store does not have it");
}

static int folder_get(struct store *s, const char *key, struct payload *c, struct err *e)
{
    AUTO_FREE char *block = mem_alloc_raw(BLOCK);
    const char *last;
    AUTO_FD int dir = open_above(self(s), key, false, &last);
    AUTO_FD int fd = dir < 0 ? -1 : openat(dir, last, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n;

    if (fd < 0 && errno == ENOENT)
        return not_there(e);
    if (fd < 0)
        return err_errno(e, "the store cannot be read");
    if (payload_rewind(c, e) < 0)
        return -1;
    while (!payload_is_full(c) && (n = read(fd, block, BLOCK)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "the store cannot be read");
        if (payload_write(c, block, (size_t)n, e) < 0)
            return -1;
    }
    return 0;
}

static int folder_remove(struct store *s, const char *key, struct err *e)
{
    const char *last;
    AUTO_FD int dir = open_above(self(s), key, false, &last);

    if (dir < 0 && errno == ENOENT)
        return 0;
    if (dir < 0 || (unlinkat(dir, last, 0) < 0 && errno != ENOENT))
        return err_errno(e, "an object cannot be removed from the store");
    if (last > key) { /* its folder goes when it is empty */
        AUTO_FREE char *above = mem_strndup(key, (size_t)(last - key - 1));
        (void)unlinkat(self(s)->fd, above, AT_REMOVEDIR);
    }
    return 0;
}

static void folder_free(struct store *s)
{
    auto_close_fd(&self(s)->fd);
    free(s);
}

static const struct store_ops folder_ops = {
    .put = folder_put, .get = folder_get, .remove = folder_remove, .free = folder_free};

struct store *store_folder_new(const char *path, struct err *e)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        err_errno(e, "the store's directory %s cannot be opened", path);
        return NULL;
    }
    struct folder_store *f = mem_alloc(sizeof *f);
    f->base.ops = &folder_ops;
    f->fd = TAKE_FD(fd);
    return &f->base;
}
