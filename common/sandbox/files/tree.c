#include "config.h"

#include "common/sandbox/files/tree.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Folders open at once; deeper ones are moved up to the top. */
#define LEVELS_MAX  24
#define PASSES_MAX  16 /* readings of a folder in which something was left */
#define WATCH_STEPS 64 /* entries between two calls of the watch */
#define RAISED_LEN  32 /* characters of the new name of a folder that was moved up */

struct removal {
    int top_fd; /* of the folder that is emptied */
    bool force; /* modes are changed, and what cannot be removed is left */
    struct tree_bounds bounds;
    uint64_t *gone;
    uint64_t steps;
    struct err *e;
};

/*
 * The functions below return 1 when the entry has left its folder (of a folder's content: when some
 * has), 0 when it is still there or was removed by another process, -1 when the removal ends.
 */
static int remove_folder(struct removal *r, int at_fd, const char *name, int level);

int tree_cannot(const char *what, struct err *e)
{
    if (errno == EACCES || errno == EPERM)
        return err_set(e, ERR_DENIED,
                       "%s cannot be deleted: its mode, or that of its folder, forbids it", what);
    return err_errno(e, "%s cannot be deleted", what);
}

static int fail(const struct removal *r, const char *what)
{
    return r->force ? 0 : tree_cannot(what, r->e);
}

static int check_bounds(struct removal *r)
{
    const struct sandbox_watch *watch = r->bounds.watch;

    if (watch && ++r->steps % WATCH_STEPS == 0 && watch->check(watch->ctx, r->e) < 0)
        return -1;
    if (*r->gone < r->bounds.entries && !deadline_passed(r->bounds.end))
        return 0;
    return err_set(r->e, ERR_LIMIT,
                   "there is more than one call deletes: %" PRIu64
                   " files and folders are gone, the rest is still there; call again",
                   *r->gone);
}

/* Gives a folder mode 0700, by its descriptor: the name could be a link by now. */
static void unlock(int at_fd, const char *name)
{
    char path[40];
    AUTO_FD int fd = openat(at_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fd >= 0)
        (void)chmod(path, 0700);
}

static DIR *open_folder(const struct removal *r, int at_fd, const char *name)
{
    DIR *dir = beneath_open_dir(at_fd, name);

    if (dir || !r->force || errno != EACCES)
        return dir;
    unlock(at_fd, name);
    return beneath_open_dir(at_fd, name);
}

static int unlink_file(const struct removal *r, int at_fd, const char *name)
{
    if (unlinkat(at_fd, name, 0) == 0)
        return 0;
    if (!r->force || errno != EACCES)
        return -1;
    (void)fchmod(at_fd, 0700); /* the folder's own mode forbade it */
    return unlinkat(at_fd, name, 0);
}

/* Moves a folder that lies too deep to the top, where a later pass finds it. */
static int raise_folder(const struct removal *r, int at_fd, const char *name)
{
    char raised[RAISED_LEN + 1];

    crypto_random_hex(RAISED_LEN / 2, raised);
    if (renameat(at_fd, name, r->top_fd, raised) == 0)
        return 1;
    if (r->force && errno == EACCES) { /* its own mode forbade it */
        unlock(at_fd, name);
        if (renameat(at_fd, name, r->top_fd, raised) == 0)
            return 1;
    }
    return beneath_has_changed(errno) ? 0 : fail(r, "a folder");
}

static int remove_entry(struct removal *r, int at_fd, const char *name, int level)
{
    if (check_bounds(r) < 0)
        return -1;
    if (unlink_file(r, at_fd, name) == 0) {
        ++*r->gone;
        return 1;
    }
    if (beneath_has_changed(errno))
        return 0;
    /* These are unlink's errors for a folder. */
    if (errno != EISDIR && errno != EPERM)
        return fail(r, "a file");
    return level == LEVELS_MAX ? raise_folder(r, at_fd, name)
                               : remove_folder(r, at_fd, name, level + 1);
}

/* One pass over what is in the folder now. level: of the folder, the top is 0. */
static int empty_folder(struct removal *r, int at_fd, const char *name, int level)
{
    AUTO_DIR DIR *dir = open_folder(r, at_fd, name);
    const struct dirent *entry;
    int some = 0;

    if (!dir)
        return beneath_has_changed(errno) ? 0 : fail(r, "a folder");
    if (level == 0)
        r->top_fd = dirfd(dir);
    while ((entry = readdir(dir))) {
        if (beneath_is_dot(entry->d_name))
            continue;
        int gone = remove_entry(r, dirfd(dir), entry->d_name, level);
        if (gone < 0)
            return -1;
        some |= gone;
    }
    return some;
}

static int remove_folder(struct removal *r, int at_fd, const char *name, int level)
{
    for (int left = PASSES_MAX;;) { /* a program can fill a folder for ever */
        if (unlinkat(at_fd, name, AT_REMOVEDIR) == 0) {
            ++*r->gone;
            return 1;
        }
        if (beneath_has_changed(errno))
            return 0;
        if (!r->force && errno != ENOTEMPTY && errno != EEXIST)
            return fail(r, "a folder");
        if (left == 0)
            break;
        int some = empty_folder(r, at_fd, name, level);
        if (some < 0)
            return -1;
        /* By force each pass counts, and one that removed nothing is the last; else the bounds end
         * passes that remove something. */
        if (r->force && some == 0)
            left = 0;
        else if (r->force || some == 0)
            left--;
    }
    if (r->force)
        return 0;
    return err_set(r->e, ERR_LIMIT, "a running program keeps filling the folder");
}

int tree_remove(int at_fd, const char *name, struct tree_bounds bounds, uint64_t *gone,
                struct err *e)
{
    struct removal r = {.top_fd = -1, .bounds = bounds, .gone = gone, .e = e};

    return remove_folder(&r, at_fd, name, 0) < 0 ? -1 : 0;
}

int tree_take(const struct sandbox_root *root, int at_fd, const char *name, const char *to,
              char out[], struct err *e)
{
    char fresh[TRASH_NAME_LEN + 1];
    AUTO_FD int dir = openat(root->fd, to, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0)
        return err_errno(e, "SANDBOX_ROOT/%s cannot be opened", to);
    crypto_random_hex(TRASH_NAME_LEN / 2, fresh);
    if (renameat(at_fd, name, dir, fresh) < 0) {
        if (errno == ENOENT)
            return err_set(e, ERR_NOT_FOUND, "there is no such folder");
        return err_errno(e, "a folder cannot be moved to SANDBOX_ROOT/%s", to);
    }
    memcpy(out, fresh, sizeof(fresh));
    return 0;
}

int trash_take(const struct sandbox_root *root, int at_fd, const char *name, char out[],
               struct err *e)
{
    return tree_take(root, at_fd, name, TRASH_DIR, out, e);
}

void trash_empty(const struct sandbox_root *root)
{
    struct err e = ERR_INIT;
    uint64_t gone = 0;
    struct removal r = {.top_fd = -1,
                        .force = true,
                        .bounds = {.entries = UINT64_MAX, .end = DEADLINE_NEVER},
                        .gone = &gone,
                        .e = &e};

    while (empty_folder(&r, root->fd, TRASH_DIR, 0) > 0)
        ;
}
