#include "config.h"

#include "common/sandbox/files/path_walk.h"

#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void path_walk_keep(struct path_walk *w)
{
    while (w->n_made > 0)
        auto_close_fd(&w->made[--w->n_made].parent_fd);
}

void path_walk_clear(struct path_walk *w)
{
    int saved = errno;

    /* Only empty folders go: what a program has put there meanwhile stays. */
    for (int i = w->n_made - 1; i >= 0; i--)
        unlinkat(w->made[i].parent_fd, w->made[i].name, AT_REMOVEDIR);
    path_walk_keep(w);
    auto_close_fd(&w->fd);
    errno = saved;
}

/*
 * Makes the folder w->last in w->fd: with its owner already right, by renaming it in. When a
 * program put something there in the meantime, the rename fails or replaces an empty folder by
 * another one; the open that follows decides.
 */
static int make_folder(const struct sandbox_root *root, struct path_walk *w)
{
    AUTO_STAGED struct staged folder = STAGED_INIT;

    if (w->n_made == FILES_DEPTH_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (staging_create_folder(root, &folder) < 0)
        return -1;
    AUTO_FD int parent = fcntl(w->fd, F_DUPFD_CLOEXEC, 3);
    if (parent < 0)
        return -1;
    if (staged_move(&folder, w->fd, w->last) < 0)
        return errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR ? 0 : -1;
    struct files_made *made = &w->made[w->n_made++];
    made->parent_fd = TAKE_FD(parent);
    memcpy(made->name, w->last, sizeof(made->name));
    return 0;
}

/* Goes into the folder w->last. */
static int enter(const struct sandbox *sb, bool make, struct path_walk *w)
{
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int next = openat(w->fd, w->last, flags);

    if (next < 0 && errno == ENOENT && make) {
        if (make_folder(sb->root, w) < 0)
            return -1;
        next = openat(w->fd, w->last, flags);
    }
    if (next < 0)
        return -1;
    auto_close_fd(&w->fd);
    w->fd = next;
    return 0;
}

int path_walk_go(const struct sandbox *sb, const char *name, bool make, struct path_walk *out)
{
    out->fd = fcntl(sb->fd, F_DUPFD_CLOEXEC, 3);
    if (out->fd < 0)
        return -1;
    for (;;) {
        name = beneath_component(name, out->last);
        if (!out->last[0])
            return -1;
        if (!name)
            return 0;
        if (enter(sb, make, out) < 0)
            return -1;
    }
}
