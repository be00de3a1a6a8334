#include "config.h"

#include "common/sandbox/files/owner.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/state/user_quota.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIVE_DEPTH_MAX 800 /* folders open at once */
#define GIVE_MS        60000

/* Ids that no account has. The first are those that systemd's list of ids leaves unused; the
 * others are for a user namespace, which seldom has more than 65536. */
static const struct {
    uid_t first, last;
} ranges[] = {{1879048192, 2013265919}, {30000, 59999}};

int owners_choose(struct sandbox_root *root, int fd, struct err *e)
{
    const uid_t uid = geteuid();
    const gid_t gid = getegid();

    if (root->owner.uid) {
        if (fchown(fd, root->owner.uid, root->owner.gid) == 0)
            return 0;
        return err_set(e, ERR_INVALID,
                       "SANDBOX_USER: files cannot be given to %u:%u by this account: start as "
                       "root, or set SANDBOX_USER=%u:%u",
                       root->owner.uid, root->owner.gid, uid, gid);
    }
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        if (fchown(fd, ranges[i].last, ranges[i].last) < 0)
            continue;
        root->first_uid = ranges[i].first;
        root->last_uid = ranges[i].last;
        if (i > 0)
            log_warn("SANDBOX_USER=auto: this user namespace ends below %u: programs run as %u to "
                     "%u, which other accounts may have",
                     ranges[0].last, ranges[i].first, ranges[i].last);
        return 0;
    }
    if (uid == 0)
        return err_set(e, ERR_INVALID,
                       "SANDBOX_USER: SANDBOX_ROOT %s does not let files be given to %u (%s): use "
                       "another directory, or set SANDBOX_USER=UID:GID",
                       root->path, ranges[0].last, strerror(errno));
    log_warn("SANDBOX_USER=auto needs root: all programs run as %u:%u, which shares its limits and "
             "can reach them",
             uid, gid);
    root->owner = (struct sandbox_owner){uid, gid};
    return 0;
}

struct sandbox_owner owner_new(const struct sandbox_root *root)
{
    if (root->owner.uid)
        return root->owner;
    const uid_t n = root->last_uid - root->first_uid + 1;
    uid_t uid;

    do
        uid = root->first_uid + crypto_random_u32() % n;
    while (user_quota_has_files(root, uid)); /* seldom: they are far more than sandboxes */
    return (struct sandbox_owner){uid, uid};
}

bool owner_is_right(const struct sandbox_root *root, const struct stat *st)
{
    if (root->owner.uid)
        return st->st_uid == root->owner.uid && st->st_gid == root->owner.gid;
    return st->st_uid >= root->first_uid && st->st_uid <= root->last_uid &&
           st->st_gid == st->st_uid;
}

/* ---- a tree of another owner ---- */

struct giving {
    struct sandbox_owner to;
    struct deadline end;
    struct err *e;
};

static int give_dir(const struct giving *g, int at_fd, const char *name, int depth)
{
    AUTO_DIR DIR *dir = beneath_open_dir(at_fd, name);

    if (!dir && beneath_system_failed(errno))
        return err_errno(g->e, "the conversation's files cannot be given to its user");
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (beneath_is_dot(entry->d_name))
            continue;
        if (deadline_passed(g->end))
            return err_set(g->e, ERR_BUSY,
                           "the conversation's files are being given to a user of its own; "
                           "try again");
        if (depth < GIVE_DEPTH_MAX && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
            give_dir(g, dirfd(dir), entry->d_name, depth + 1) < 0)
            return -1;
        if (fchownat(dirfd(dir), entry->d_name, g->to.uid, g->to.gid, AT_SYMLINK_NOFOLLOW) < 0 &&
            errno != EPERM && !beneath_has_changed(errno))
            return err_errno(g->e, "the conversation's files cannot be given to its user");
    }
    return 0;
}

int owner_give_tree(int fd, struct sandbox_owner owner, struct err *e)
{
    const struct giving g = {.to = owner, .end = deadline_in_ms(GIVE_MS), .e = e};

    if (give_dir(&g, fd, ".", 1) < 0)
        return -1;
    if (fchown(fd, owner.uid, owner.gid) < 0)
        return err_errno(e, "the sandbox's directory cannot be given to its user");
    return 0;
}

int owner_open_dir(int root_fd, const char *name)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(root_fd, name, flags);

    if (fd < 0 && errno == EACCES && fchmodat(root_fd, name, SANDBOX_MODE, 0) == 0)
        fd = openat(root_fd, name, flags);
    return fd;
}
