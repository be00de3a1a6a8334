#include "config.h"

#include "common/sandbox/files/beneath.h"

#include "common/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define COMPONENT_MAX 255
/* The kernel answers EAGAIN when a rename elsewhere races with the lookup; a program can provoke
 * that for ever. */
#define AGAIN_TRIES 8

__attribute__((weak)) int beneath_openat2(int dir_fd, const char *name, const struct open_how *how,
                                          size_t size)
{
    return (int)syscall(SYS_openat2, dir_fd, name, how, size);
}

bool beneath_is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool component_ok(const char *c, size_t len)
{
    if (len == 0 || len > COMPONENT_MAX)
        return false;
    return !(c[0] == '.' && (len == 1 || (len == 2 && c[1] == '.')));
}

const char *beneath_component(const char *name, char *out)
{
    size_t len = strcspn(name, "/");
    const char *rest = name[len] ? name + len + 1 : NULL;

    out[0] = '\0';
    if (!component_ok(name, len)) {
        errno = EINVAL;
        return rest;
    }
    memcpy(out, name, len);
    out[len] = '\0';
    return rest;
}

static bool name_ok(const char *name)
{
    char part[COMPONENT_MAX + 1];

    while (name) {
        name = beneath_component(name, part);
        if (!part[0])
            return false;
    }
    return true;
}

bool beneath_name_fits(const char *name)
{
    int parts = 1;

    for (const char *s = name; *s; s++)
        parts += *s == '/';
    return strlen(name) <= FILES_NAME_MAX && parts <= FILES_DEPTH_MAX && name_ok(name);
}

/*
 * Each step opens one directory by a name without slashes and without following it, so whatever is
 * swapped behind our back, the descriptor we hold is a directory that was reached from dir_fd by
 * going down only.
 */
static int walk(int dir_fd, const char *name, int flags)
{
    AUTO_FD int held = -1;
    char part[COMPONENT_MAX + 1];
    int at = dir_fd;

    for (;;) {
        name = beneath_component(name, part);
        if (!name)
            return openat(at, part, flags);
        int next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return -1;
        auto_close_fd(&held);
        at = held = next;
    }
}

int beneath_open(int dir_fd, const char *name, int flags)
{
    static bool no_openat2; /* remembered: it does not come back while we live */

    flags |= O_CLOEXEC | O_NOFOLLOW;
    if (!name_ok(name)) {
        errno = EINVAL;
        return -1;
    }
    struct open_how how = {
        .flags = (unsigned)flags,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    for (int i = 0; i < AGAIN_TRIES && !no_openat2; i++) {
        int fd = beneath_openat2(dir_fd, name, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != ENOSYS && errno != EPERM))
            return fd;
        /* EPERM is what seccomp filters of older engines answer for calls they do not know. */
        no_openat2 = errno != EAGAIN;
    }
    return walk(dir_fd, name, flags);
}

DIR *beneath_open_dir(int at_fd, const char *name)
{
    AUTO_FD int fd = openat(at_fd, name,
                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir)
        (void)TAKE_FD(fd); /* the stream owns it now */
    return dir;
}

int beneath_rename_free(int from_fd, const char *from, int to_fd, const char *to)
{
    struct stat st;

    if (renameat2(from_fd, from, to_fd, to, RENAME_NOREPLACE) == 0)
        return 0;
    /* EINVAL is also said of a folder that would move into itself; the rename says it again. */
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (fstatat(to_fd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
        errno = EEXIST;
    return errno == ENOENT ? renameat(from_fd, from, to_fd, to) : -1;
}

int beneath_exchange(int a_fd, const char *a, int b_fd, const char *b)
{
    char aside[FILES_COMPONENT_MAX + 1];

    if (renameat2(a_fd, a, b_fd, b, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if ((size_t)snprintf(aside, sizeof aside, "%s.aside", b) >= sizeof aside) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (renameat(b_fd, b, b_fd, aside) < 0)
        return -1;
    int rc = renameat(a_fd, a, b_fd, b);
    if (rc == 0 && renameat(b_fd, aside, a_fd, a) == 0)
        return 0;
    const int why = errno;
    if (rc == 0)
        (void)renameat(b_fd, b, a_fd, a);
    (void)renameat(b_fd, aside, b_fd, b);
    errno = why;
    return -1;
}

bool beneath_system_failed(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

bool beneath_has_changed(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP;
}
