#include "config.h"

#include "common/sandbox/state/quota.h"

#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
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

/* Some file systems have no fixed number of inodes. */
struct usage disk_free_on(int fd)
{
    struct usage free = {.bytes = UINT64_MAX, .files = UINT64_MAX};
    struct statvfs fs;

    if (fstatvfs(fd, &fs) < 0)
        return free;
    free.bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (fs.f_files > 0)
        free.files = (uint64_t)fs.f_favail;
    return free;
}

/* What can be added before the reserve is touched; UINT64_MAX: unknown, or no reserve. */
static uint64_t above(uint64_t free, uint64_t reserve)
{
    if (reserve == 0 || free == UINT64_MAX)
        return UINT64_MAX;
    return free > reserve ? free - reserve : 0;
}

static struct usage disk_left(int fd, const struct sandbox_bounds *b)
{
    const struct usage free = disk_free_on(fd);

    return (struct usage){.bytes = above(free.bytes, b->reserve),
                          .files = above(free.files, b->reserve_files)};
}

static bool is_read_only(int fd)
{
    struct statvfs fs;

    return fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

/* promised: of what is left, to others. */
static int check_disk(int fd, const struct sandbox_bounds *b, uint64_t promised,
                      uint64_t more_bytes, struct err *e)
{
    const bool read_only = is_read_only(fd);
    struct usage left = disk_left(fd, b);

    if (left.bytes != UINT64_MAX)
        left.bytes -= promised < left.bytes ? promised : left.bytes;

    if (read_only)
        err_set(e, ERR_LIMIT, "the server's disk is read-only");
    else if (left.files == 0)
        err_set(e, ERR_LIMIT,
                "the server's disk has too few free inodes: %" PRIu64
                " are kept free (SANDBOX_FILES_RESERVE)",
                b->reserve_files);
    else if (left.bytes == 0 || more_bytes > left.bytes)
        err_set(e, ERR_LIMIT,
                "the server's disk is nearly full: %.1f MiB can still be written and %.1f MiB "
                "are kept free (SANDBOX_DISK_RESERVE)",
                mib(left.bytes), mib(b->reserve));
    else
        return 0;
    e->sys = read_only ? EROFS : ENOSPC; /* the reader's remedy hangs on it */
    return -1;
}

int quota_check_disk(int fd, const struct sandbox_bounds *b, uint64_t more_bytes, struct err *e)
{
    return check_disk(fd, b, 0, more_bytes, e);
}

int quota_check_piece(int fd, const struct sandbox_bounds *b, uint64_t written, uint64_t piece,
                      struct err *e)
{
    if ((written + piece) / QUOTA_LOOK_BYTES == written / QUOTA_LOOK_BYTES)
        return 0;
    return quota_check_disk(fd, b, piece, e);
}

static int check_files(const struct sandbox_bounds *b, const struct usage *now, uint64_t more,
                       struct err *e)
{
    if (b->files == 0 || now->files + more <= b->files)
        return 0;
    return err_set(e, ERR_LIMIT,
                   "the conversation has %s%" PRIu64 " files and folders; the limit is %" PRIu64
                   " (SANDBOX_FILES)",
                   now->partial ? "at least " : "", now->files, b->files);
}

/* What else is on its way, as a part of a sentence. */
struct coming_text {
    char text[48];
};

static struct coming_text coming_text(uint64_t bytes)
{
    struct coming_text t = {""};

    if (bytes > 0)
        snprintf(t.text, sizeof t.text, ", %.1f MiB are on their way", mib(bytes));
    return t;
}

static int check_bytes(const struct sandbox *sb, const struct usage *now, uint64_t more,
                       struct err *e)
{
    const uint64_t limit = sb->root->bounds.bytes, coming = sb->coming.conversation;
    const uint64_t total = now->bytes + coming;

    if (limit == 0 || (total <= limit && more <= limit - total))
        return 0;
    if (now->bytes > limit)
        return err_set(e, ERR_LIMIT,
                       "the conversation's files take %s%.1f MiB; the limit is %.1f MiB "
                       "(SANDBOX_QUOTA)",
                       now->partial ? "at least " : "", mib(now->bytes), mib(limit));
    return err_set(e, ERR_LIMIT,
                   "the conversation's files take %.1f MiB%s; %.1f MiB more would pass the limit "
                   "of %.1f MiB (SANDBOX_QUOTA)",
                   mib(now->bytes), coming_text(coming).text, mib(more), mib(limit));
}

uint64_t quota_bytes(const struct sandbox *sb)
{
    uint64_t bound = sb->root->bounds.bytes, limit = sb->tenant_bytes;
    uint64_t rest = limit > sb->others_bytes ? limit - sb->others_bytes : 1; /* 0 is no bound */

    return limit > 0 && (bound == 0 || rest < bound) ? rest : bound;
}

static bool is_bounded(const struct sandbox *sb)
{
    return quota_bytes(sb) > 0 || sb->root->bounds.files > 0;
}

static int check_tenant(const struct sandbox *sb, const struct usage *now, uint64_t more,
                        struct err *e)
{
    const uint64_t limit = sb->tenant_bytes, total = sb->others_bytes + now->bytes;
    const uint64_t coming = sb->coming.tenant;

    if (limit == 0 || (total + coming <= limit && more <= limit - total - coming))
        return 0;
    if (total > limit)
        return err_set(e, ERR_LIMIT,
                       "the files of all your conversations take %s%.1f MiB, of this one %.1f MiB; "
                       "the limit is %.1f MiB (bytes)",
                       now->partial ? "at least " : "", mib(total), mib(now->bytes), mib(limit));
    return err_set(e, ERR_LIMIT,
                   "the files of all your conversations take %.1f MiB%s; %.1f MiB more would pass "
                   "the limit of %.1f MiB (bytes)",
                   mib(total), coming_text(coming).text, mib(more), mib(limit));
}

/* What could not be counted is too much: a program made it so. */
static int check_depth(const struct sandbox *sb, const struct usage *now, struct err *e)
{
    if (!now->partial || !is_bounded(sb))
        return 0;
    return err_set(e, ERR_LIMIT,
                   "the conversation's files cannot be counted (SANDBOX_QUOTA): folders are more "
                   "than %d deep",
                   USAGE_DEPTH_MAX);
}

static int check(const struct sandbox *sb, const struct usage *now, uint64_t bytes, uint64_t files,
                 struct err *e)
{
    const struct sandbox_bounds *b = &sb->root->bounds;

    if (check_files(b, now, files, e) == 0 && check_bytes(sb, now, bytes, e) == 0 &&
        check_tenant(sb, now, bytes, e) == 0 && check_depth(sb, now, e) == 0)
        return 0;
    return err_set(e, ERR_LIMIT, "%s: " ADVICE, e->text);
}

int quota_check_usage(const struct sandbox *sb, const struct usage *now, uint64_t more_bytes,
                      struct err *e)
{
    if (check(sb, now, more_bytes, more_bytes > 0, e) < 0)
        return -1;
    return quota_check_disk(sb->root->fd, &sb->root->bounds, more_bytes, e);
}

int quota_check_coming(const struct sandbox *sb, const struct usage *now, uint64_t bytes,
                       uint64_t there, struct err *e)
{
    if (check(sb, now, bytes, bytes > 0, e) < 0)
        return -1;
    return check_disk(sb->root->fd, &sb->root->bounds, sb->coming.disk,
                      bytes > there ? bytes - there : 0, e);
}

/* ---- what has to go ---- */

/* What must be free again before others can work. */
static uint64_t wanted(uint64_t reserve)
{
    return reserve + reserve / 8;
}

/* The most that the sandbox may take of bytes or inodes: with the reserve broken, it gives back
 * what it took since then, unless that is a small part of what is gone or of the reserve: then
 * something else has filled the disk. */
static uint64_t most_of(uint64_t bound, uint64_t reserve, uint64_t used_then, uint64_t used,
                        uint64_t free_then, uint64_t free)
{
    uint64_t most = bound > 0 ? bound : UINT64_MAX;
    uint64_t grown = used > used_then ? used - used_then : 0;
    uint64_t gone = free_then > free ? free_then - free : 0;

    if (reserve == 0 || free > reserve || grown == 0 || grown < gone / QUOTA_BLAME_SHARE ||
        grown < reserve / QUOTA_BLAME_SHARE)
        return most;
    uint64_t missing = wanted(reserve) - free;
    uint64_t kept = used - (grown < missing ? grown : missing);
    return kept < most ? kept : most;
}

bool quota_over(const struct sandbox *sb, const struct disk_mark *then, const struct usage *now,
                struct usage *most, struct err *why)
{
    const struct sandbox_bounds *b = &sb->root->bounds;
    const struct usage free = disk_free_on(sb->root->fd);

    most->bytes = most_of(quota_bytes(sb), b->reserve, then->used.bytes, now->bytes,
                          then->free.bytes, free.bytes);
    most->files = most_of(b->files, b->reserve_files, then->used.files, now->files,
                          then->free.files, free.files);
    if (check_files(b, now, 0, why) < 0 || check_bytes(sb, now, 0, why) < 0 ||
        check_tenant(sb, now, 0, why) < 0 || check_depth(sb, now, why) < 0)
        return true;
    if (now->bytes > most->bytes)
        err_set(why, ERR_LIMIT,
                "the server's disk is nearly full: %.1f MiB are kept free (SANDBOX_DISK_RESERVE)",
                mib(b->reserve));
    else if (now->files > most->files)
        err_set(why, ERR_LIMIT,
                "the server's disk has too few free inodes: %" PRIu64
                " are kept free (SANDBOX_FILES_RESERVE)",
                b->reserve_files);
    return now->bytes > most->bytes || now->files > most->files;
}

int quota_measure(const struct sandbox *sb, struct usage *out, struct err *e)
{
    const struct sandbox_bounds *b = &sb->root->bounds;
    const uint64_t bytes = quota_bytes(sb);
    const struct usage enough = {.bytes = bytes ? bytes : UINT64_MAX,
                                 .files = b->files ? b->files : UINT64_MAX};

    return usage_measure(sb, &enough, out, e);
}

int quota_count(const struct sandbox *sb, struct usage *out, struct err *e)
{
    *out = (struct usage){0};
    return sb->fd < 0 || !is_bounded(sb) ? 0 : quota_measure(sb, out, e);
}

int quota_check(const struct sandbox *sb, uint64_t more_bytes, struct err *e)
{
    struct usage now;

    if (quota_count(sb, &now, e) < 0)
        return -1;
    return quota_check_usage(sb, &now, more_bytes, e);
}

int quota_check_arrived(const struct sandbox *sb, uint64_t bytes, struct err *e)
{
    struct usage now;

    if (quota_count(sb, &now, e) < 0 || check(sb, &now, bytes, bytes > 0, e) < 0)
        return -1;
    return quota_check_disk(sb->root->fd, &sb->root->bounds, 0, e);
}

static uint64_t left_of(uint64_t bound, uint64_t used)
{
    return bound == 0 ? UINT64_MAX : bound - used;
}

int quota_left(const struct sandbox *sb, struct usage *out, struct err *e)
{
    const struct sandbox_bounds *b = &sb->root->bounds;
    const struct usage disk = disk_left(sb->root->fd, b);
    struct usage now;

    if (quota_count(sb, &now, e) < 0 || quota_check_usage(sb, &now, 0, e) < 0)
        return -1;
    *out = (struct usage){.bytes = left_of(quota_bytes(sb), now.bytes),
                          .files = left_of(b->files, now.files)};
    if (disk.bytes < out->bytes)
        out->bytes = disk.bytes;
    if (disk.files < out->files)
        out->files = disk.files;
    return 0;
}
