#include "config.h"

#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/owner.h"
#include "common/sandbox/files/staging.h"
#include "common/sandbox/sandbox.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/state/user_quota.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_MIN      32
#define ROOT_MODE       0710 /* the web server's group passes through and cannot list */
#define WARM_MODE       0711 /* within the root */
#define NAME_SECRET     STATE_DIR "/name-secret"
#define NAME_SECRET_MAX 4096 /* bytes, as of a setting */

static char *without_trailing_slashes(const char *s)
{
    size_t len = strlen(s);

    while (len > 1 && s[len - 1] == '/')
        len--;
    return mem_strndup(s, len);
}

static int check_paths(const char *path, const char *host_path, struct err *e)
{
    if (path[0] != '/')
        return err_set(e, ERR_INVALID, "SANDBOX_ROOT must be an absolute path");
    if (host_path[0] != '/')
        return err_set(e, ERR_INVALID, "SANDBOX_HOST_PATH must be an absolute path");
    /* Podman takes a mount as text with commas between its members. */
    if (strpbrk(host_path, ",\""))
        return err_set(e, ERR_INVALID, "SANDBOX_HOST_PATH must not contain a comma or a quote");
    return 0;
}

/* Is there nothing but sandboxes and what a server or nginx has made beside them? A slip in a
 * setting must not close /var/lib. */
static bool holds_ours_only(int fd)
{
    AUTO_DIR DIR *dir = beneath_open_dir(fd, ".");

    if (!dir)
        return false;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && !state_name_ok(entry->d_name) &&
            strcmp(entry->d_name, "lost+found") != 0) /* of a file system of its own */
            return false;
    return true;
}

/* Every account reads the names of mounted directories in /proc/PID/mountinfo, so the root has to
 * keep them out. Without a web server's group an administrator may have chosen another. */
static bool is_closed(const struct stat *st, gid_t web_gid)
{
    return !(st->st_mode & 0007) && (!web_gid || (st->st_gid == web_gid && (st->st_mode & 0010)));
}

int sandbox_root_check_access(const char *path, const struct stat *st, gid_t web_gid, struct err *e)
{
    if (is_closed(st, web_gid))
        return 0;
    return err_set(e, ERR_REFUSED, "SANDBOX_ROOT %s has mode %04o and group %ju: %s", path,
                   st->st_mode & 07777, (uintmax_t)st->st_gid,
                   st->st_mode & 0007 ? "it is open to other accounts"
                                      : "the web server cannot serve files");
}

int sandbox_root_check_owner(const char *path, struct err *e)
{
    AUTO_FREE char *made = mem_printf("%s/" STATE_DIR, path);
    struct stat st, ours;

    if (stat(path, &st) < 0 || lstat(made, &ours) < 0 || st.st_uid == 0 || st.st_uid == ours.st_uid)
        return 0;
    return err_set(e, ERR_REFUSED,
                   "SANDBOX_ROOT %s belongs to the user %ju, who can open it, and what the server "
                   "makes in it to the user %ju",
                   path, (uintmax_t)st.st_uid, (uintmax_t)ours.st_uid);
}

static int close_root(int fd, const char *path, const struct stat *st, gid_t web_gid, struct err *e)
{
    const mode_t mode = web_gid ? ROOT_MODE : 0700;

    if (is_closed(st, web_gid))
        return 0;
    if (!holds_ours_only(fd) || (web_gid && fchown(fd, (uid_t)-1, web_gid) < 0) ||
        fchmod(fd, mode) < 0)
        return err_set(
            e, ERR_INVALID,
            "SANDBOX_ROOT %s has mode %04o and group %ju: use a directory of its own, or "
            "chmod %04o it%s",
            path, st->st_mode & 07777, (uintmax_t)st->st_gid, mode,
            web_gid ? " and chgrp it to SANDCGI_LISTEN_GROUP" : "");
    if (st->st_mode & 0007)
        log_warn("SANDBOX_ROOT %s was open to every account: its mode is %04o now%s", path, mode,
                 web_gid ? "" : "; a web server of another account needs SANDCGI_LISTEN_GROUP");
    return 0;
}

static int open_root_dir(const char *path, gid_t web_gid, struct err *e)
{
    struct stat st;

    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        err_errno(e, "SANDBOX_ROOT %s cannot be made", path);
        e->kind = ERR_INVALID;
        return -1;
    }
    AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        err_errno(e, "SANDBOX_ROOT %s cannot be opened as a directory", path);
        e->kind = ERR_INVALID;
        return -1;
    }
    if (st.st_mode & S_IWOTH)
        return err_set(e, ERR_INVALID,
                       "SANDBOX_ROOT %s can be written by everybody: use a directory of its own, "
                       "or chmod o-w it",
                       path);
    return close_root(fd, path, &st, web_gid, e) < 0 ? -1 : TAKE_FD(fd);
}

static int make_own_dir(int root_fd, const char *path, const char *name, mode_t mode, struct err *e)
{
    struct stat st;

    if (mkdirat(root_fd, name, mode) == 0) {
        if (fchmodat(root_fd, name, mode, 0) < 0) /* whatever the umask was */
            return err_errno(e, "SANDBOX_ROOT %s: the mode of %s cannot be set", path, name);
    } else if (errno != EEXIST) {
        err_errno(e, "SANDBOX_ROOT %s is not writable", path);
        e->kind = ERR_INVALID;
        return -1;
    }
    if (fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(e, "SANDBOX_ROOT %s: %s", path, name);
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ERR_INVALID, "SANDBOX_ROOT %s: %s is not a directory: remove it", path,
                       name);
    return 0;
}

static int make_own_dirs(const struct sandbox_root *root, struct err *e)
{
    static const struct {
        const char *name;
        mode_t mode;
    } dirs[] = {{STAGING_DIR, 0700}, {".runs", 0700},   {".sandboxes", 0700}, {STATE_DIR, 0700},
                {TICKET_DIR, 0700},  {TRASH_DIR, 0700}, {WARM_DIR, WARM_MODE}};

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (make_own_dir(root->fd, root->path, dirs[i].name, dirs[i].mode, e) < 0)
            return -1;
    return 0;
}

/* Makes a file in .staging and gives it to a user of sandboxes, as every upload does. */
static int probe_root(struct sandbox_root *root, struct err *e)
{
    AUTO_STAGED struct staged probe = STAGED_INIT;

    AUTO_FD int fd = staging_create_file(root, &probe);
    /* With a full disk the server starts: files can be read and deleted. */
    if (fd < 0 && (errno == ENOSPC || errno == EDQUOT))
        fd = memfd_create("probe", MFD_CLOEXEC);
    if (fd < 0) {
        err_errno(e, "SANDBOX_ROOT %s is not writable", root->path);
        e->kind = ERR_INVALID;
        return -1;
    }
    return owners_choose(root, fd, e);
}

static void forget_name_secret(struct sandbox_root *root)
{
    if (root->name_secret)
        explicit_bzero(root->name_secret, strlen(root->name_secret));
    free(TAKE_PTR(root->name_secret));
}

/* The file is there once FILE_SECRET was replaced. */
static int read_name_secret(struct sandbox_root *root, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(NAME_SECRET_MAX);
    AUTO_FD int fd = openat(root->fd, NAME_SECRET, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return err_errno(e, "SANDBOX_ROOT %s: " NAME_SECRET " cannot be opened", root->path);
    if (fdio_read_to_end(fd, &text, e) < 0)
        return -1;
    if (strlen(buf_str(&text)) < SECRET_MIN)
        return err_set(e, ERR_INVALID,
                       "SANDBOX_ROOT %s: " NAME_SECRET " is damaged; restore it from a backup: "
                       "without it no conversation is found",
                       root->path);
    forget_name_secret(root);
    root->name_secret = mem_strdup(buf_str(&text));
    return 0;
}

int sandbox_root_open(struct sandbox_root *out, const char *path, const char *host_path,
                      const char *secret, const char *base_url, uid_t uid, gid_t gid, gid_t web_gid,
                      struct err *e)
{
    struct sandbox_root root = {.fd = -1, .owner = {uid, gid}};

    if (!host_path || !host_path[0])
        host_path = path;
    if (check_paths(path, host_path, e) < 0)
        return -1;
    if (strlen(secret) < SECRET_MIN)
        return err_set(e, ERR_INVALID, "FILE_SECRET must have at least %d characters", SECRET_MIN);
    root.fd = open_root_dir(path, web_gid, e);
    if (root.fd < 0)
        return -1;
    root.path = without_trailing_slashes(path);
    root.host_path = without_trailing_slashes(host_path);
    root.base_url = without_trailing_slashes(base_url);
    if (link_key_derive(secret, &root.link_keys.now, e) < 0 ||
        file_key_derive(secret, &root.file_keys.now, e) < 0 || make_own_dirs(&root, e) < 0 ||
        probe_root(&root, e) < 0 || read_name_secret(&root, e) < 0) {
        sandbox_root_close(&root);
        return -1;
    }
    if (!root.name_secret)
        root.name_secret = mem_strdup(secret);
    user_quota_detect(&root);
    *out = root;
    return 0;
}

/* Another process may do the same at the same time: the first one's is everybody's. */
static int write_name_secret(struct sandbox_root *root, const char *secret, struct err *e)
{
    AUTO_STAGED struct staged file = STAGED_INIT;
    AUTO_FD int fd = staging_create_file(root, &file);

    if (fd < 0)
        return err_errno(e, NAME_SECRET " cannot be made");
    if (fdio_write_all(fd, secret, strlen(secret), e) < 0)
        return err_wrap(e, NAME_SECRET);
    if (fsync(fd) < 0 ||
        (staged_move(&file, root->fd, NAME_SECRET, STAGED_MOVE_FREE) < 0 && errno != EEXIST))
        return err_errno(e, NAME_SECRET " cannot be made");
    return read_name_secret(root, e);
}

int sandbox_root_keep_old(struct sandbox_root *root, const char *old_secret, int64_t until,
                          struct err *e)
{
    if (faccessat(root->fd, NAME_SECRET, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
        write_name_secret(root, old_secret, e) < 0)
        return -1;
    if (link_key_derive(old_secret, &root->link_keys.old, e) < 0 ||
        file_key_derive(old_secret, &root->file_keys.old, e) < 0)
        return -1;
    root->link_keys.old_until = root->file_keys.old_until = until;
    return 0;
}

void sandbox_root_close(struct sandbox_root *root)
{
    forget_name_secret(root);
    explicit_bzero(&root->link_keys, sizeof(root->link_keys));
    explicit_bzero(&root->file_keys, sizeof(root->file_keys));
    auto_close_fd(&root->fd);
    free(root->path);
    free(root->host_path);
    free(root->base_url);
    *root = (struct sandbox_root){.fd = -1};
}
