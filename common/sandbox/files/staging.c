#include "config.h"

#include "common/sandbox/files/staging.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SWEEP_AGE_S      3600
#define SWEEP_FULL_AGE_S 86400 /* of a folder with content, as a restore makes it for hours */

/* Opens .staging and chooses a name in it, which *out does not have yet. */
static int begin(const struct sandbox_root *root, struct staged *out, int unlink_flags,
                 char name[STAGING_NAME_LEN + 1])
{
    out->dir_fd = openat(root->fd, STAGING_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    out->unlink_flags = unlink_flags;
    out->name[0] = '\0';
    crypto_random_hex(STAGING_NAME_LEN / 2, name);
    return out->dir_fd < 0 ? -1 : 0;
}

int staging_create_file(const struct sandbox_root *root, struct staged *out)
{
    char name[STAGING_NAME_LEN + 1];

    if (begin(root, out, 0, name) < 0)
        return -1;
    int fd = openat(out->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        memcpy(out->name, name, sizeof(name));
    return fd;
}

int staging_name_file(const struct sandbox_root *root, int fd, struct staged *out)
{
    char name[STAGING_NAME_LEN + 1], path[sizeof "/proc/self/fd/" + 12];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (begin(root, out, 0, name) < 0 ||
        linkat(AT_FDCWD, path, out->dir_fd, name, AT_SYMLINK_FOLLOW) < 0)
        return -1;
    memcpy(out->name, name, sizeof(name));
    return 0;
}

int staging_create_folder(const struct sandbox_root *root, struct sandbox_owner owner,
                          struct staged *out)
{
    char name[STAGING_NAME_LEN + 1];

    if (begin(root, out, AT_REMOVEDIR, name) < 0 || mkdirat(out->dir_fd, name, 0700) < 0)
        return -1;
    memcpy(out->name, name, sizeof(name));
    AUTO_FD int fd = openat(out->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, owner.uid, owner.gid) < 0)
        return -1;
    return fchmod(fd, 0755);
}

int staged_move(struct staged *s, int to_fd, const char *name, enum staged_move how)
{
    int rc;

    if (how == STAGED_MOVE_REPLACE)
        rc = renameat(s->dir_fd, s->name, to_fd, name);
    else if (how == STAGED_MOVE_NEW)
        rc = renameat2(s->dir_fd, s->name, to_fd, name, RENAME_NOREPLACE);
    else
        rc = beneath_rename_free(s->dir_fd, s->name, to_fd, name);
    if (rc == 0)
        s->name[0] = '\0';
    return rc;
}

void staged_clear(struct staged *s)
{
    int saved = errno;

    if (s->name[0])
        unlinkat(s->dir_fd, s->name, s->unlink_flags);
    s->name[0] = '\0';
    auto_close_fd(&s->dir_fd);
    errno = saved;
}

void staging_sweep(const struct sandbox_root *root, int64_t now)
{
    AUTO_DIR DIR *dir = beneath_open_dir(root->fd, STAGING_DIR);
    const struct dirent *entry;
    char trash[TRASH_NAME_LEN + 1];
    struct err ignored = ERR_INIT;
    struct stat st;

    if (!dir)
        return;
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.' ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            st.st_ctim.tv_sec > now - SWEEP_AGE_S)
            continue;
        if (unlinkat(dirfd(dir), entry->d_name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 &&
            errno == ENOTEMPTY && st.st_ctim.tv_sec < now - SWEEP_FULL_AGE_S)
            (void)trash_take(root, dirfd(dir), entry->d_name, trash, &ignored);
    }
}

void staging_sweep_files(const struct sandbox_root *root, const char *folder,
                         bool (*is_ours)(const char *name), int64_t age_s)
{
    AUTO_DIR DIR *dir = beneath_open_dir(root->fd, folder);
    struct stat st;

    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (is_ours(entry->d_name) &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_mtim.tv_sec < clock_unix_s() - age_s)
            unlinkat(dirfd(dir), entry->d_name, 0);
}
