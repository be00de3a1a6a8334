/* Deleting files, and folders with all that is in them. */
#include "config.h"

#include "common/sandbox/files/files.h"

#include "common/base/clock.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/path_walk.h"
#include "common/sandbox/files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define DELETE_MS 30000
/* How often it is tried again because the name has become something else. */
#define TRIES_MAX 8

/* What unlink would not take. */
static int delete_folder(const struct path_walk *walk, const struct tree_bounds *recursive,
                         uint64_t *deleted, struct err *e)
{
    if (recursive)
        return tree_remove(walk->fd, walk->last, *recursive, deleted, e);
    if (unlinkat(walk->fd, walk->last, AT_REMOVEDIR) == 0) {
        ++*deleted;
        return 0;
    }
    if (errno == ENOTEMPTY || errno == EEXIST)
        return err_set(e, ERR_INVALID,
                       "that is a folder with something in it: say recursive to delete it all");
    return beneath_has_changed(errno) ? 0 : tree_cannot("the file", e);
}

/* 0 with nothing deleted: it became something else meanwhile. */
static int delete_it(const struct sandbox *sb, const char *name,
                     const struct tree_bounds *recursive, uint64_t *deleted, struct err *e)
{
    AUTO_PATH_WALK struct path_walk walk = PATH_WALK_INIT;

    if (path_walk_go(sb, name, false, &walk) == 0) {
        if (unlinkat(walk.fd, walk.last, 0) == 0) {
            ++*deleted;
            return 0;
        }
        if (errno == EISDIR || errno == EPERM)
            return delete_folder(&walk, recursive, deleted, e);
    }
    if (beneath_has_changed(errno) || errno == EINVAL)
        return err_set(e, ERR_NOT_FOUND, "there is no such file or folder");
    return tree_cannot("the file", e);
}

int files_delete(const struct sandbox *sb, const char *name, bool recursive, uint64_t *out_deleted,
                 struct err *e)
{
    const struct tree_bounds bounds = {.entries = FILES_DELETE_MAX,
                                       .end = deadline_in_ms(DELETE_MS)};
    int rc = 0;

    *out_deleted = 0;
    for (int i = 0; i < TRIES_MAX && rc == 0 && *out_deleted == 0; i++)
        rc = delete_it(sb, name, recursive ? &bounds : NULL, out_deleted, e);
    if (rc == 0 && *out_deleted == 0)
        return err_set(e, ERR_LIMIT, "a running program keeps changing what has this name");
    return rc;
}
