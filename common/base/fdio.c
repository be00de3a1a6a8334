#include "config.h"

#include "common/base/fdio.h"

#include "common/base/log.h"
#include "common/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_CHUNK 65536

/* After a failed read or write: was it interrupted, or is the descriptor ready now? */
static bool may_retry(int fd, short events)
{
    if (errno == EINTR)
        return true;
    if (errno != EAGAIN)
        return false;
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

int fdio_write_all(int fd, const void *data, size_t len, struct err *e)
{
    const char *from = data;
    while (len > 0) {
        ssize_t n = write(fd, from, len);
        if (n < 0) {
            if (may_retry(fd, POLLOUT))
                continue;
            return err_errno(e, "cannot write");
        }
        from += n;
        len -= (size_t)n;
    }
    return 0;
}

/* One read that returns at least a byte, 0 at the end, -1 with *e. */
static ssize_t read_some(int fd, void *to, size_t len, struct err *e)
{
    for (;;) {
        ssize_t n = read(fd, to, len);
        if (n >= 0)
            return n;
        if (!may_retry(fd, POLLIN))
            return err_errno(e, "cannot read");
    }
}

int fdio_read_to_end(int fd, struct buf *out, struct err *e)
{
    for (;;) {
        size_t room = out->max - out->len;
        size_t want = room < READ_CHUNK ? room : READ_CHUNK;
        /* One more byte than the buffer holds tells exactly max from too long. */
        char beyond;
        char *to = want ? buf_reserve(out, want) : &beyond;
        if (!to)
            return err_set(e, ERR_LIMIT, "longer than %zu bytes", out->max);
        ssize_t n = read_some(fd, to, want ? want : 1, e);
        if (n <= 0)
            return (int)n;
        if (!want)
            return err_set(e, ERR_LIMIT, "longer than %zu bytes", out->max);
        buf_grew(out, (size_t)n);
    }
}

int fdio_read_file(const char *path, struct buf *out, struct err *e)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "%s does not exist", path);
    if (fd < 0)
        return err_errno(e, "cannot open %s", path);
    if (fdio_read_to_end(fd, out, e) < 0)
        return err_wrap(e, "%s", path);
    return 0;
}

static int write_new(int fd, const char *path, const struct buf *text, mode_t mode, struct err *e)
{
    struct stat st;
    bool there = stat(path, &st) == 0;

    if (fchmod(fd, there ? st.st_mode & 07777 : mode) < 0 ||
        (there && (st.st_uid != geteuid() || st.st_gid != getegid()) &&
         fchown(fd, st.st_uid, st.st_gid) < 0))
        return err_errno(e, "owner and mode of %s", path);
    if (fdio_write_all(fd, text->data, text->len, e) < 0)
        return err_wrap(e, "writing beside %s", path);
    return fsync(fd) < 0 ? err_errno(e, "writing beside %s", path) : 0;
}

int fdio_replace_file(const char *path, const struct buf *text, mode_t mode, struct err *e)
{
    AUTO_FREE char *new = mem_printf("%s.XXXXXX", path);
    AUTO_FREE char *folder = mem_strdup(path);
    AUTO_FD int folder_fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD int fd = folder_fd < 0 ? -1 : mkostemp(new, O_CLOEXEC);

    if (fd < 0)
        return err_errno(e, "cannot write beside %s", path);
    if (write_new(fd, path, text, mode, e) < 0) {
        unlink(new);
        return -1;
    }
    if (rename(new, path) < 0) {
        err_errno(e, "%s cannot be replaced", path);
        unlink(new);
        return -1;
    }
    return fsync(folder_fd) < 0 ? err_errno(e, "the folder of %s", path) : 0;
}

int fdio_set_nonblocking(int fd, struct err *e)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return err_errno(e, "cannot make a descriptor non-blocking");
    return 0;
}

void fdio_allow(uint64_t n)
{
    const struct rlimit more = {n, n};
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= n)
        return;
    if (limit.rlim_max < n &&
        setrlimit(RLIMIT_NOFILE, &more) == 0) /* root, not in all containers */
        return;
    limit.rlim_cur = limit.rlim_max < n ? limit.rlim_max : n;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        log_warn("cannot raise RLIMIT_NOFILE: %s", strerror(errno));
}

void fdio_fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* open takes the lowest free number, which is fd: those below are open by now. */
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd)
            _exit(70);
    }
}
