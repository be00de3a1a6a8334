/* Moving, and looking at what is to be moved. */
#include "config.h"

#include "common/sandbox/files/files.h"

#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/path_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* How often the way is walked anew when a program changes it under our feet. */
#define MOVE_TRIES 8

int files_look(const struct sandbox *sb, const char *name, struct stat *out, struct err *e)
{
    AUTO_PATH_WALK struct path_walk walk = PATH_WALK_INIT;

    if (path_walk_go(sb, name, false, &walk) == 0 &&
        fstatat(walk.fd, walk.last, out, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (beneath_system_failed(errno))
        return err_errno(e, "the file cannot be looked at");
    return err_set(e, ERR_NOT_FOUND, "there is no such file or folder");
}

/* 0, or -1 with errno. */
static int move_once(const struct sandbox *sb, const char *from, const char *to, bool replace)
{
    AUTO_PATH_WALK struct path_walk source = PATH_WALK_INIT;
    AUTO_PATH_WALK struct path_walk target = PATH_WALK_INIT;

    if (path_walk_go(sb, from, false, &source) < 0 || path_walk_go(sb, to, true, &target) < 0)
        return -1;
    if ((replace ? renameat(source.fd, source.last, target.fd, target.last)
                 : beneath_rename_free(source.fd, source.last, target.fd, target.last)) < 0)
        return -1;
    path_walk_keep(&target);
    return 0;
}

static int move_error(int error, struct err *e)
{
    errno = error;
    switch (error) {
    case EEXIST:
    case ENOTEMPTY:
        return err_set(e, ERR_EXISTS, "there is something of the new name already");
    case EISDIR:
        return err_set(e, ERR_EXISTS, "the new name is that of a folder: a file cannot replace it");
    case ENOTDIR:
    case ELOOP:
        return err_set(e, ERR_INVALID,
                       "the new name leads through, or would replace, what is not a folder");
    case EINVAL:
        return err_set(e, ERR_INVALID, "a folder cannot be moved into itself");
    case ENOENT:
        return err_set(e, ERR_IO, "a running program keeps removing the folder of the new name");
    default:
        return err_errno(e, "the file cannot be moved");
    }
}

int files_move(const struct sandbox *sb, const char *from, const char *to, bool replace,
               struct err *e)
{
    struct stat st;
    int error = ENOENT;

    for (int i = 0; i < MOVE_TRIES && error == ENOENT; i++) {
        if (files_look(sb, from, &st, e) < 0)
            return -1;
        if (move_once(sb, from, to, replace) == 0)
            return 0;
        error = errno;
    }
    return move_error(error, e);
}
