#include "config.h"

#include "common/sandbox/state/user_quota.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/metrics.h"

#include <errno.h>
#include <linux/dqblk_xfs.h>
#include <string.h>
#include <sys/quota.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCK   1024 /* the unit of limits */
#define START_S 10

/* By the directory: the device's name may be unknown here. */
static int call(const struct sandbox_root *root, unsigned cmd, uid_t uid, void *arg)
{
#ifdef SYS_quotactl_fd
    return (int)syscall(SYS_quotactl_fd, root->fd, QCMD(cmd, USRQUOTA), uid, arg);
#else
    errno = ENOSYS;
    return -1;
#endif
}

/* NULL: they are enforced, and this process may set them. */
static const char *what_lacks(const struct sandbox_root *root)
{
    struct fs_quota_statv state = {.qs_version = FS_QSTATV_VERSION1};
    struct dqblk limits;

    if (root->owner.uid)
        return "SANDBOX_USER is one user for all";
    if (call(root, Q_XGETQSTATV, 0, &state) < 0 && errno != EPERM)
        return errno == ENOSYS ? "its file system or the kernel (before Linux 5.14) has none"
                               : "its file system is mounted without usrquota";
    /* Another user's limits are shown to those that may set them; XFS has none of a new user. */
    if (call(root, Q_GETQUOTA, root->last_uid, &limits) < 0 && errno != ENOENT)
        return errno == EPERM ? "this process has no right to set them"
                              : "its file system is mounted without usrquota";
    return state.qs_flags & FS_QUOTA_UDQ_ENFD ? NULL
                                              : "its file system is mounted without usrquota";
}

/* Once for each server, not at each reload and each request of CGI. */
static enum log_level level_of_start(void)
{
    const int64_t started = (int64_t)metrics_get(METRIC_STARTED_BOOT);

    return started && clock_boot_s() - started < START_S ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG;
}

void user_quota_detect(struct sandbox_root *root)
{
    const char *lacks = what_lacks(root);

    root->user_quotas = !lacks;
    if (lacks)
        log_at(level_of_start(),
               "SANDBOX_ROOT has no disk quotas of the kernel: %s; programs that pass "
               "SANDBOX_QUOTA or SANDBOX_FILES are ended",
               lacks);
    else
        log_at(level_of_start(),
               "SANDBOX_ROOT has disk quotas of the kernel for SANDBOX_QUOTA and SANDBOX_FILES");
}

static void set(const struct sandbox_root *root, uid_t uid, uint64_t bytes, uint64_t files)
{
    struct dqblk limits = {.dqb_bhardlimit = bytes / BLOCK + (bytes % BLOCK > 0),
                           .dqb_ihardlimit = files,
                           .dqb_valid = QIF_LIMITS};
    struct dqblk now = {0};

    if (!root->user_quotas || uid < root->first_uid || uid > root->last_uid)
        return;
    if ((call(root, Q_GETQUOTA, uid, &now) == 0 || errno == ENOENT) &&
        now.dqb_bhardlimit == limits.dqb_bhardlimit && now.dqb_ihardlimit == limits.dqb_ihardlimit)
        return;
    if (call(root, Q_SETQUOTA, uid, &limits) < 0)
        log_warn("the disk quota of a conversation's user %u cannot be set: %s", uid,
                 strerror(errno));
}

void user_quota_set(const struct sandbox_root *root, uid_t uid)
{
    const struct sandbox_bounds *b = &root->bounds;

    /* The directory itself is not one of its files. */
    set(root, uid, b->bytes, b->files > 0 ? b->files + 1 : 0);
}

void user_quota_drop(const struct sandbox_root *root, uid_t uid)
{
    set(root, uid, 0, 0);
}

bool user_quota_has_files(const struct sandbox_root *root, uid_t uid)
{
    struct dqblk now = {0};

    return root->user_quotas && call(root, Q_GETQUOTA, uid, &now) == 0 && now.dqb_curinodes > 0;
}
