#include "config.h"

#include "common/sandbox/warm_dir.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/owner.h"
#include "common/sandbox/files/staging.h"
#include "common/sandbox/files/tree.h"
#include "common/sandbox/state/sizes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int warm_dirs_open(const struct sandbox_root *root)
{
    return openat(root->fd, WARM_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool warm_dir_name_ok(const char *name)
{
    return strspn(name, "0123456789abcdef") == WARM_DIR_NAME_LEN && name[WARM_DIR_NAME_LEN] == '\0';
}

int warm_dir_make(const struct sandbox_root *root, char out_name[WARM_DIR_NAME_LEN + 1],
                  struct err *e)
{
    AUTO_STAGED struct staged folder = STAGED_INIT;
    char name[WARM_DIR_NAME_LEN + 1];

    AUTO_FD int pool = warm_dirs_open(root);
    if (pool < 0)
        return err_errno(e, "SANDBOX_ROOT/" WARM_DIR " cannot be opened");
    crypto_random_hex(WARM_DIR_NAME_LEN / 2, name);
    /* A file system without this kind of rename is found here, not when a run needs the directory.
     */
    if (staging_create_folder(root, owner_new(root), &folder) < 0 ||
        staged_move(&folder, pool, name, STAGED_MOVE_NEW) < 0)
        return err_errno(e, "no warm directory could be made in SANDBOX_ROOT/" WARM_DIR);
    memcpy(out_name, name, sizeof(name));
    return 0;
}

bool warm_dir_stat(const struct sandbox_root *root, const char *name, struct stat *out)
{
    AUTO_FD int pool = warm_dirs_open(root);

    return pool >= 0 && fstatat(pool, name, out, AT_SYMLINK_NOFOLLOW) == 0;
}

char *warm_dir_host_path(const struct sandbox_root *root, const char *name)
{
    return mem_printf("%s/" WARM_DIR "/%s", root->host_path, name);
}

static int warm_dir_rename(const struct sandbox_root *root, const char *name,
                           const char *sandbox_dir, struct err *e)
{
    AUTO_FD int pool = warm_dirs_open(root);

    if (pool < 0)
        return err_errno(e, "SANDBOX_ROOT/" WARM_DIR " cannot be opened");
    if (renameat2(pool, name, root->fd, sandbox_dir, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno == EEXIST)
        return err_set(e, ERR_EXISTS, "that sandbox exists already");
    if (errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "there is no such warm directory");
    return err_errno(e, "a warm directory could not become a sandbox");
}

int warm_dir_adopt(const struct sandbox_root *root, const char *name, const char *sandbox_dir,
                   const char *tenant, struct sandbox *out, struct err *e)
{
    if (!warm_dir_name_ok(name))
        return err_set(e, ERR_NOT_FOUND, "there is no such warm directory");
    if (warm_dir_rename(root, name, sandbox_dir, e) < 0 ||
        sandbox_find_named(root, sandbox_dir, out, e) < 0)
        return -1;
    out->made = true;
    sizes_count_others(out, tenant);
    return 0;
}

/* It is empty unless a program ran in it. */
static void warm_dir_remove_at(const struct sandbox_root *root, int pool, const char *name)
{
    char trash[TRASH_NAME_LEN + 1];
    struct err e = ERR_INIT;

    if (unlinkat(pool, name, AT_REMOVEDIR) < 0 && errno == ENOTEMPTY &&
        trash_take(root, pool, name, trash, &e) < 0)
        log_warn("a warm directory cannot be removed: %s", e.text);
}

void warm_dir_remove(const struct sandbox_root *root, const char *name)
{
    AUTO_FD int pool = warm_dirs_open(root);

    if (pool >= 0 && warm_dir_name_ok(name))
        warm_dir_remove_at(root, pool, name);
}

void warm_dir_sweep(const struct sandbox_root *root, int64_t min_age_s)
{
    AUTO_DIR DIR *dir = beneath_open_dir(root->fd, WARM_DIR);
    struct stat st;

    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!warm_dir_name_ok(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            st.st_ctim.tv_sec > clock_unix_s() - min_age_s)
            continue;
        warm_dir_remove_at(root, dirfd(dir), entry->d_name);
    }
}
