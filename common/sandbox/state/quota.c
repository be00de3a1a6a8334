#include "config.h"

#include "common/sandbox/state/quota.h"

#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/statvfs.h>

#define MIB    (1024.0 * 1024.0)
#define ADVICE "delete files that are not needed any more, or the conversation"
#define BLOCK  512 /* the unit of st_blocks on every file system */

struct count {
    const struct usage *enough; /* NULL: count everything */
    struct usage *out;
    struct err *e;
};

uint64_t usage_of(const struct stat *st)
{
    uint64_t bytes = (uint64_t)st->st_blocks * BLOCK;

    return S_ISDIR(st->st_mode) || st->st_nlink == 0 ? bytes : bytes / st->st_nlink;
}

static bool has_enough(const struct count *c)
{
    return c->enough && (c->out->bytes > c->enough->bytes || c->out->files > c->enough->files);
}

/* depth counts the open folders, this one included: it bounds descriptors and stack. */
static int count_dir(struct count *c, int at_fd, const char *name, int depth)
{
    AUTO_DIR DIR *dir = beneath_open_dir(at_fd, name);
    const struct dirent *entry;
    struct stat st;

    if (!dir && beneath_system_failed(errno))
        return err_errno(c->e, "the conversation's files cannot be counted");
    while (dir && (entry = readdir(dir))) {
        if (beneath_is_dot(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        c->out->files++;
        c->out->bytes += usage_of(&st);
        if (has_enough(c)) {
            c->out->partial = true;
            return 0;
        }
        if (!S_ISDIR(st.st_mode))
            continue;
        if (depth == USAGE_DEPTH_MAX)
            c->out->partial = true;
        else if (count_dir(c, dirfd(dir), entry->d_name, depth + 1) < 0)
            return -1;
        if (has_enough(c))
            return 0;
    }
    return 0;
}

int usage_measure(const struct sandbox *sb, const struct usage *enough, struct usage *out,
                  struct err *e)
{
    struct usage total = {0};
    struct count c = {.enough = enough, .out = &total, .e = e};

    if (count_dir(&c, sb->fd, ".", 1) < 0)
        return -1;
    *out = total;
    return 0;
}

/* ---- bounds ---- */

static double mib(uint64_t bytes)
{
    return (double)bytes / MIB;
}

/* Bytes that can be written before the reserve is touched; UINT64_MAX: unknown, or no reserve. */
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
                   "are kept free (SANDBOX_DISK_RESERVE); " ADVICE ", or tell the operator",
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
                   " (SANDBOX_FILES): " ADVICE,
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
                       "(SANDBOX_QUOTA): " ADVICE,
                       now->partial ? "at least " : "", mib(now->bytes), mib(b->bytes));
    return err_set(e, ERR_LIMIT,
                   "the conversation's files take %.1f MiB; %.1f MiB more would pass the limit of "
                   "%.1f MiB (SANDBOX_QUOTA): " ADVICE,
                   mib(now->bytes), mib(more), mib(b->bytes));
}

/* What could not be counted is too much: a program made it so. */
static int check_depth(const struct sandbox_bounds *b, const struct usage *now, struct err *e)
{
    if (!now->partial || (b->bytes == 0 && b->files == 0))
        return 0;
    return err_set(e, ERR_LIMIT,
                   "the conversation's files cannot be counted (SANDBOX_QUOTA): folders are more "
                   "than %d deep; " ADVICE,
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
