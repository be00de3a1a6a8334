#include "config.h"

#include "common/sandbox/state/quota.h"

#include <inttypes.h>
#include <sys/statvfs.h>

#define MIB     (1024.0 * 1024.0)
#define WAY_OUT "delete files that are not needed any more, or the conversation"

static double mib(uint64_t bytes)
{
    return (double)bytes / MIB;
}

/* Bytes that can be written before the reserve is touched; UINT64_MAX: nobody knows, or no
 * reserve. */
static uint64_t disk_left(int fd, uint64_t reserve)
{
    struct statvfs fs;

    if (reserve == 0 || fstatvfs(fd, &fs) < 0)
        return UINT64_MAX;
    uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    return free_bytes > reserve ? free_bytes - reserve : 0;
}

int quota_check_disk(int fd, uint64_t reserve, uint64_t more_bytes, struct err *e)
{
    uint64_t left = disk_left(fd, reserve);

    if (left > 0 && more_bytes <= left)
        return 0;
    return err_set(e, ERR_LIMIT,
                   "the server's disk is nearly full: %.1f MiB can still be written and %.1f MiB "
                   "are kept free (SANDBOX_DISK_RESERVE); " WAY_OUT ", or tell the operator",
                   mib(left), mib(reserve));
}

int quota_check_piece(int fd, uint64_t reserve, uint64_t written, uint64_t piece, struct err *e)
{
    if ((written + piece) / QUOTA_LOOK_BYTES == written / QUOTA_LOOK_BYTES)
        return 0;
    return quota_check_disk(fd, reserve, piece, e);
}

static int check_files(const struct sandbox_bounds *b, const struct usage *now, uint64_t more,
                       struct err *e)
{
    if (b->files == 0 || now->files + more <= b->files)
        return 0;
    return err_set(e, ERR_LIMIT,
                   "the conversation has %s%" PRIu64 " files and folders; the limit is %" PRIu64
                   " (SANDBOX_FILES): " WAY_OUT,
                   now->partial ? "at least " : "", now->files, b->files);
}

static int check_bytes(const struct sandbox_bounds *b, const struct usage *now, uint64_t more,
                       struct err *e)
{
    if (b->bytes == 0 || (now->bytes <= b->bytes && more <= b->bytes - now->bytes))
        return 0;
    if (now->bytes > b->bytes)
        return err_set(e, ERR_LIMIT,
                       "the conversation's files take %s%.1f MiB; the limit is %.1f MiB "
                       "(SANDBOX_QUOTA): " WAY_OUT,
                       now->partial ? "at least " : "", mib(now->bytes), mib(b->bytes));
    return err_set(e, ERR_LIMIT,
                   "the conversation's files take %.1f MiB; %.1f MiB more would pass the limit of "
                   "%.1f MiB (SANDBOX_QUOTA): " WAY_OUT,
                   mib(now->bytes), mib(more), mib(b->bytes));
}

/* What nobody could count is held to be too much: a program made it so. */
static int check_depth(const struct sandbox_bounds *b, const struct usage *now, struct err *e)
{
    if (!now->partial || (b->bytes == 0 && b->files == 0))
        return 0;
    return err_set(e, ERR_LIMIT,
                   "the conversation's files cannot be counted (SANDBOX_QUOTA): folders are more "
                   "than %d deep; " WAY_OUT,
                   USAGE_DEPTH_MAX);
}

static int check(const struct sandbox_root *root, const struct usage *now, uint64_t bytes,
                 uint64_t files, struct err *e)
{
    const struct sandbox_bounds *b = &root->bounds;

    if (check_files(b, now, files, e) < 0 || check_bytes(b, now, bytes, e) < 0)
        return -1;
    return check_depth(b, now, e);
}

int quota_check_usage(const struct sandbox *sb, const struct usage *now, uint64_t more_bytes,
                      struct err *e)
{
    if (check(sb->root, now, more_bytes, more_bytes > 0, e) < 0)
        return -1;
    return quota_check_disk(sb->root->fd, sb->root->bounds.reserve, more_bytes, e);
}

bool quota_exceeded(const struct sandbox_root *root, const struct usage *now, struct err *e)
{
    return check(root, now, 0, 0, e) < 0;
}

static int measure(const struct sandbox *sb, struct usage *out, struct err *e)
{
    const struct sandbox_bounds *b = &sb->root->bounds;
    const struct usage enough = {.bytes = b->bytes ? b->bytes : UINT64_MAX,
                                 .files = b->files ? b->files : UINT64_MAX};

    *out = (struct usage){0};
    if (sb->fd < 0 || (b->bytes == 0 && b->files == 0))
        return 0;
    return usage_measure(sb, &enough, out, e);
}

int quota_check(const struct sandbox *sb, uint64_t more_bytes, struct err *e)
{
    struct usage now;

    if (measure(sb, &now, e) < 0)
        return -1;
    return quota_check_usage(sb, &now, more_bytes, e);
}

int quota_check_arrived(const struct sandbox *sb, uint64_t bytes, struct err *e)
{
    struct usage now;

    if (measure(sb, &now, e) < 0 || check(sb->root, &now, bytes, bytes > 0, e) < 0)
        return -1;
    return quota_check_disk(sb->root->fd, sb->root->bounds.reserve, 0, e);
}

static uint64_t left_of(uint64_t bound, uint64_t used)
{
    return bound == 0 ? UINT64_MAX : bound - used;
}

int quota_left(const struct sandbox *sb, struct usage *out, struct err *e)
{
    const struct sandbox_bounds *b = &sb->root->bounds;
    uint64_t disk = disk_left(sb->root->fd, b->reserve);
    struct usage now;

    if (measure(sb, &now, e) < 0 || quota_check_usage(sb, &now, 0, e) < 0)
        return -1;
    *out = (struct usage){.bytes = left_of(b->bytes, now.bytes),
                          .files = left_of(b->files, now.files)};
    if (disk < out->bytes)
        out->bytes = disk;
    return 0;
}
