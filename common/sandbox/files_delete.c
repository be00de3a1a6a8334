/* Deleting files, and folders with all that is in them. */
#include "config.h"

#include "common/sandbox/files.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/sandbox/beneath.h"
#include "common/sandbox/files_way.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define DELETE_MS 30000
/* Folders held open at once. What is deeper is moved up first, so that no depth needs more. */
#define LEVELS_MAX 24
/* How often a folder is read again although nothing of it could be deleted. */
#define VAIN_PASSES_MAX 8
#define RAISED_LEN      32 /* characters of a folder's name that was moved up */

struct removal {
    int top_fd; /* of the folder that is to go */
    uint64_t deleted;
    struct deadline end;
    struct err *e;
};

static int remove_folder(struct removal *r, int at_fd, const char *name, int level);

static int fail(struct removal *r, const char *what)
{
    if (errno == EACCES || errno == EPERM)
        return err_set(r->e, ERR_DENIED,
                       "%s cannot be deleted: its mode, or that of its folder, forbids it", what);
    return err_errno(r->e, "%s cannot be deleted", what);
}

static int check_bounds(struct removal *r)
{
    if (r->deleted < FILES_DELETE_MAX && !deadline_passed(r->end))
        return 0;
    return err_set(r->e, ERR_LIMIT,
                   "there is more than one call deletes: %" PRIu64
                   " files and folders are gone, the rest is still there; call again",
                   r->deleted);
}

/* Has somebody else been faster? Whoever reads the folder again sees what there is now. */
static bool has_changed(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

/* A folder that lies too deep goes to the top, where it is found again. */
static int raise_folder(struct removal *r, int at_fd, const char *name)
{
    char raised[RAISED_LEN + 1];

    crypto_random_hex(RAISED_LEN / 2, raised);
    if (renameat(at_fd, name, r->top_fd, raised) < 0 && !has_changed(errno))
        return fail(r, "a folder");
    return 0;
}

static int remove_entry(struct removal *r, int at_fd, const char *name, int level)
{
    if (check_bounds(r) < 0)
        return -1;
    if (unlinkat(at_fd, name, 0) == 0) {
        r->deleted++;
        return 0;
    }
    if (has_changed(errno))
        return 0;
    /* What unlink says of a folder. */
    if (errno != EISDIR && errno != EPERM)
        return fail(r, "a file");
    return level == LEVELS_MAX ? raise_folder(r, at_fd, name)
                               : remove_folder(r, at_fd, name, level + 1);
}

/* Deletes what is in the folder now. */
static int empty_folder(struct removal *r, int at_fd, const char *name, int level)
{
    AUTO_FD int fd = openat(at_fd, name,
                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    AUTO_DIR DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir)
        return has_changed(errno) ? 0 : fail(r, "a folder");
    int dir_fd = TAKE_FD(fd);
    if (level == 0)
        r->top_fd = dir_fd;
    while ((entry = readdir(dir))) {
        if (beneath_is_dot(entry->d_name))
            continue;
        if (remove_entry(r, dir_fd, entry->d_name, level) < 0)
            return -1;
    }
    return 0;
}

static int remove_folder(struct removal *r, int at_fd, const char *name, int level)
{
    for (int vain = 0; vain < VAIN_PASSES_MAX;) {
        uint64_t before = r->deleted;

        if (empty_folder(r, at_fd, name, level) < 0)
            return -1;
        if (unlinkat(at_fd, name, AT_REMOVEDIR) == 0) {
            r->deleted++;
            return 0;
        }
        if (has_changed(errno))
            return 0;
        if (errno != ENOTEMPTY && errno != EEXIST)
            return fail(r, "a folder");
        vain += r->deleted == before;
    }
    return err_set(r->e, ERR_LIMIT, "a running program keeps filling the folder");
}

/* What unlink would not take. */
static int delete_folder(struct removal *r, const struct files_way *way, bool recursive)
{
    if (recursive)
        return remove_folder(r, way->fd, way->last, 0);
    if (unlinkat(way->fd, way->last, AT_REMOVEDIR) == 0) {
        r->deleted++;
        return 0;
    }
    if (errno == ENOTEMPTY || errno == EEXIST)
        return err_set(r->e, ERR_INVALID,
                       "that is a folder with something in it: say recursive to delete it all");
    return has_changed(errno) ? 0 : fail(r, "the file");
}

/* 0 with nothing deleted: it became something else meanwhile. */
static int delete_it(struct removal *r, const struct sandbox *sb, const char *name, bool recursive)
{
    AUTO_FILES_WAY struct files_way way = FILES_WAY_INIT;

    if (files_way_go(sb, name, false, &way) == 0) {
        if (unlinkat(way.fd, way.last, 0) == 0) {
            r->deleted++;
            return 0;
        }
        if (errno == EISDIR || errno == EPERM)
            return delete_folder(r, &way, recursive);
    }
    if (has_changed(errno) || errno == EINVAL)
        return err_set(r->e, ERR_NOT_FOUND, "there is no such file or folder");
    return fail(r, "the file");
}

int files_delete(const struct sandbox *sb, const char *name, bool recursive, uint64_t *out_deleted,
                 struct err *e)
{
    struct removal r = {.top_fd = -1, .end = deadline_in_ms(DELETE_MS), .e = e};
    int rc = 0;

    for (int i = 0; i < VAIN_PASSES_MAX && rc == 0 && r.deleted == 0; i++)
        rc = delete_it(&r, sb, name, recursive);
    *out_deleted = r.deleted;
    if (rc == 0 && r.deleted == 0)
        return err_set(e, ERR_LIMIT, "a running program keeps changing what has this name");
    return rc;
}
