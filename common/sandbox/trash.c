#include "config.h"

#include "common/sandbox/trash.h"

#include "common/base/crypto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A folder that is deeper is moved up into .trash and is one of its own from then on: descriptors
 * and stack stay few, however deep a program has dug. */
#define DEPTH_MAX 32
/* How often a folder is read again because something was left in it. */
#define ROUNDS_MAX 16

static int open_trash(const struct sandbox_root *root)
{
    return openat(root->fd, TRASH_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int trash_take(const struct sandbox_root *root, int at_fd, const char *name, char out[],
               struct err *e)
{
    char fresh[TRASH_NAME_LEN + 1];
    AUTO_FD int trash = open_trash(root);

    if (trash < 0)
        return err_errno(e, "SANDBOX_ROOT/" TRASH_DIR " cannot be opened");
    crypto_random_hex(TRASH_NAME_LEN / 2, fresh);
    if (renameat(at_fd, name, trash, fresh) < 0) {
        if (errno == ENOENT)
            return err_set(e, ERR_NOT_FOUND, "there is no such folder");
        return err_errno(e, "a folder cannot be moved to SANDBOX_ROOT/" TRASH_DIR);
    }
    memcpy(out, fresh, sizeof(fresh));
    return 0;
}

static bool is_dot(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Whatever mode a program gave it. By its descriptor: a name could be a link by now. */
static void unlock(int at_fd, const char *name)
{
    char path[40];
    AUTO_FD int fd = openat(at_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fd >= 0)
        (void)chmod(path, 0700);
}

static DIR *open_dir(int at_fd, const char *name)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(at_fd, name, flags);

    if (fd < 0 && errno == EACCES) {
        unlock(at_fd, name);
        fd = openat(at_fd, name, flags);
    }
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        auto_close_fd(&fd);
    return dir;
}

static bool remove_dir(int trash_fd, int at_fd, const char *name, int depth);

/* true: it is not in this folder any more. */
static bool remove_entry(int trash_fd, int at_fd, const char *name, int depth)
{
    char fresh[TRASH_NAME_LEN + 1];

    if (unlinkat(at_fd, name, 0) == 0 || errno == ENOENT)
        return true;
    if (errno == EACCES) { /* this folder's own mode */
        (void)fchmod(at_fd, 0700);
        if (unlinkat(at_fd, name, 0) == 0)
            return true;
    }
    if (errno != EISDIR && errno != EPERM)
        return false;
    if (depth < DEPTH_MAX)
        return remove_dir(trash_fd, at_fd, name, depth + 1);
    crypto_random_hex(TRASH_NAME_LEN / 2, fresh);
    return renameat(at_fd, name, trash_fd, fresh) == 0;
}

static bool remove_dir(int trash_fd, int at_fd, const char *name, int depth)
{
    if (unlinkat(at_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return true;
    AUTO_DIR DIR *dir = open_dir(at_fd, name);
    for (int i = 0; dir && i < ROUNDS_MAX; i++) {
        bool some = false;

        rewinddir(dir);
        for (const struct dirent *entry; (entry = readdir(dir));)
            some |= !is_dot(entry->d_name) &&
                    remove_entry(trash_fd, dirfd(dir), entry->d_name, depth);
        if (unlinkat(at_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return true;
        if (!some)
            break;
    }
    return false;
}

/* Folders that are moved up while one is removed are new ones here. */
void trash_empty(const struct sandbox_root *root)
{
    AUTO_FD int trash = open_trash(root);
    AUTO_DIR DIR *dir = trash < 0 ? NULL : open_dir(trash, ".");
    bool some = dir != NULL;

    while (some) {
        some = false;
        rewinddir(dir);
        for (const struct dirent *entry; (entry = readdir(dir));)
            if (!is_dot(entry->d_name))
                some |= remove_entry(trash, trash, entry->d_name, 0);
    }
}
