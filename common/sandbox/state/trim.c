#include "config.h"

#include "common/sandbox/state/trim.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/tree.h"
#include "common/sandbox/state/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB        (1024.0 * 1024.0)
#define FEW_FILES  500         /* far less than folders that are too deep */
#define ROUNDS_MAX 4           /* a file of several names is gone with the last of them */
#define DEEP_MS    5000        /* to remove a folder that is too deep to be counted */
#define SIZES      65          /* classes of entries by the power of two of their bytes */
#define RANKS      (2 * SIZES) /* older files in the first half, new entries in the second */

struct trim {
    const struct sandbox *sb;
    const struct snapshot *before;
    const struct snapshot_entry **known; /* before's entries by inode */
    struct usage now;                    /* as far as this round has counted */
    struct usage ranks[RANKS];
    int least;         /* rank from which on entries are removed; RANKS: none, count */
    struct usage most; /* that may stay */
    struct usage gone;
    uint64_t largest; /* of what is gone */
    char name[FILES_COMPONENT_MAX + 1];
};

/* ---- what is new ---- */

static bool earlier(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

static int compare_inodes(const void *left, const void *right)
{
    const struct snapshot_entry *a = *(const struct snapshot_entry *const *)left;
    const struct snapshot_entry *b = *(const struct snapshot_entry *const *)right;

    return (a->ino > b->ino) - (a->ino < b->ino);
}

static const struct snapshot_entry *find_known(const struct trim *t, const struct stat *st)
{
    const struct snapshot_entry key = {.ino = st->st_ino}, *at = &key;
    const struct snapshot_entry **found = t->before->n == 0
                                              ? NULL
                                              : bsearch(&at, t->known, t->before->n,
                                                        sizeof(*t->known), compare_inodes);

    return found && (*found)->dev == st->st_dev ? *found : NULL;
}

/* When it was made, which no program can set; its last change where that is not kept. */
static struct timespec born(int dir_fd, const char *name, const struct stat *st)
{
    struct statx x;

    if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &x) < 0 ||
        !(x.stx_mask & STATX_BTIME))
        return st->st_ctim;
    return (struct timespec){.tv_sec = x.stx_btime.tv_sec, .tv_nsec = x.stx_btime.tv_nsec};
}

static int size_class(uint64_t bytes)
{
    return bytes == 0 ? 0 : 64 - __builtin_clzll(bytes);
}

/* The larger, the sooner it is removed; -1: never. *known: the older file, if its size is known. */
static int rank_of(const struct trim *t, int dir_fd, const char *name, const struct stat *st,
                   const struct snapshot_entry **known)
{
    const struct timespec since = t->before->taken;

    *known = NULL;
    if (earlier(st->st_ctim, since))
        return -1;
    struct timespec made = born(dir_fd, name, st);
    *known = find_known(t, st);
    if (*known && earlier((*known)->ctime, made)) /* its inode is another file's now */
        *known = NULL;
    if (!*known && !earlier(made, since))
        return SIZES + size_class(usage_of(st));
    if (!S_ISREG(st->st_mode) || (*known && usage_of(st) <= (*known)->bytes))
        return -1;
    return size_class(usage_of(st));
}

/* ---- removing ---- */

static void note_gone(struct trim *t, const char *name, uint64_t bytes, uint64_t files)
{
    t->gone.bytes += bytes;
    t->gone.files += files;
    t->now.bytes -= bytes < t->now.bytes ? bytes : t->now.bytes; /* programs may write meanwhile */
    t->now.files -= files < t->now.files ? files : t->now.files;
    if (bytes < t->largest)
        return;
    t->largest = bytes;
    snprintf(t->name, sizeof(t->name), "%s", name);
}

/* true: the file is as long as it was. */
static bool cut(struct trim *t, int dir_fd, const char *name, const struct snapshot_entry *known,
                uint64_t bytes)
{
    AUTO_FD int fd = beneath_open(dir_fd, name, O_WRONLY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != known->ino || !S_ISREG(st.st_mode) ||
        (uint64_t)st.st_size <= known->size || ftruncate(fd, (off_t)known->size) < 0 ||
        fstat(fd, &st) < 0)
        return false;
    if (usage_of(&st) < bytes)
        note_gone(t, name, bytes - usage_of(&st), 0);
    return true;
}

static void remove_one(struct trim *t, int dir_fd, const char *name, const struct stat *st,
                       const struct snapshot_entry *known)
{
    uint64_t bytes = usage_of(st);

    if (known && cut(t, dir_fd, name, known, bytes))
        return;
    if (unlinkat(dir_fd, name, S_ISDIR(st->st_mode) ? AT_REMOVEDIR : 0) == 0)
        note_gone(t, name, bytes, 1);
}

/* Below it nothing is counted, so it goes as a whole; what takes too long to .trash. */
static void remove_deep(struct trim *t, int dir_fd, const char *name)
{
    const struct tree_bounds bounds = {.entries = UINT64_MAX, .end = deadline_in_ms(DEEP_MS)};
    char trash[TRASH_NAME_LEN + 1];
    struct err why = ERR_INIT;
    uint64_t gone = 0;

    if (tree_remove(dir_fd, name, bounds, &gone, &why) < 0)
        gone += trash_take(t->sb->root, dir_fd, name, trash, &why) == 0;
    note_gone(t, name, 0, gone);
}

static bool is_enough(const struct trim *t)
{
    return t->now.bytes <= t->most.bytes && t->now.files <= t->most.files;
}

/* ---- the way ---- */

/* Counts, or removes as t->least says: then t->now is what is left. */
static void visit_dir(struct trim *t, int at_fd, const char *name, int depth)
{
    AUTO_DIR DIR *dir = beneath_open_dir(at_fd, name);
    const struct snapshot_entry *known;
    const struct dirent *entry;
    struct stat st;

    while (dir && (entry = readdir(dir))) {
        if (beneath_is_dot(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        int rank = rank_of(t, dirfd(dir), entry->d_name, &st, &known);
        bool deep = S_ISDIR(st.st_mode) && depth == USAGE_DEPTH_MAX;
        if (deep && t->least < RANKS && rank >= 0)
            remove_deep(t, dirfd(dir), entry->d_name);
        else if (S_ISDIR(st.st_mode) && !deep)
            visit_dir(t, dirfd(dir), entry->d_name, depth + 1);
        if (t->least == RANKS) {
            t->now.partial |= deep;
            t->now.bytes += usage_of(&st);
            t->now.files++;
            if (rank >= 0) {
                t->ranks[rank].bytes += usage_of(&st);
                t->ranks[rank].files++;
            }
        } else if (rank >= t->least && !is_enough(t)) {
            remove_one(t, dirfd(dir), entry->d_name, &st, known);
        }
    }
}

/* The highest rank from which on enough goes. */
static int least_rank(const struct trim *t)
{
    struct usage left = t->now;
    int rank = RANKS;

    while (rank > 0 && (left.bytes > t->most.bytes || left.files > t->most.files)) {
        const struct usage *class = &t->ranks[--rank];
        left.bytes -= class->bytes;
        left.files -= class->files;
    }
    return rank == RANKS ? RANKS - 1 : rank; /* folders that are too deep go in any case */
}

static void trim_round(struct trim *t)
{
    t->now = (struct usage){0};
    memset(t->ranks, 0, sizeof(t->ranks));
    t->least = RANKS;
    visit_dir(t, t->sb->fd, ".", 1);
    if (is_enough(t) && !t->now.partial)
        return;
    t->least = least_rank(t);
    visit_dir(t, t->sb->fd, ".", 1);
}

static void trim(const struct sandbox *sb, const struct snapshot *before, struct usage most,
                 struct err *over)
{
    struct trim *t = mem_alloc(sizeof *t); /* ranks are too much for the stack */
    AUTO_FREE const struct snapshot_entry **known = mem_array(before->n + 1, sizeof *known);
    struct usage gone;

    *t = (struct trim){.sb = sb, .before = before, .known = known, .most = most};
    for (size_t i = 0; i < before->n; i++)
        known[i] = &before->items[i];
    qsort(known, before->n, sizeof *known, compare_inodes);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        gone = t->gone;
        trim_round(t);
        if (t->gone.files == gone.files && t->gone.bytes == gone.bytes)
            break;
    }
    if (t->gone.files == 0 && t->gone.bytes == 0)
        err_set(over, ERR_LIMIT, "%s; nothing was removed", over->text);
    else
        err_set(over, ERR_LIMIT,
                "%s; of what was new, %" PRIu64 " %s removed (%.1f MiB), the largest is \"%s\"",
                over->text, t->gone.files,
                t->gone.files == 1 ? "file or folder is" : "files and folders are",
                (double)t->gone.bytes / MIB, t->name);
    free(t);
}

static bool has_room(uint64_t bound, uint64_t reserve, uint64_t used_then, uint64_t free_then,
                     uint64_t free)
{
    uint64_t gone = free_then > free ? free_then - free : 0;

    return (bound == 0 || used_then + gone <= bound) && (reserve == 0 || free > reserve);
}

/* A listing that was cut has not counted all. Counting takes long, so the disk tells whether there
 * can be too much: but for folders too deep, which few programs make, and of which it tells nothing
 * while others give room back. */
static bool needs_count(const struct sandbox *sb, const struct disk_mark *then,
                        const struct snapshot *after)
{
    const struct sandbox_bounds *b = &sb->root->bounds;
    const struct usage *free = &after->free;

    return after->too_deep || free->files == UINT64_MAX ||
           then->free.files > free->files + FEW_FILES ||
           !has_room(quota_bytes(sb), b->reserve, then->used.bytes, then->free.bytes,
                     free->bytes) ||
           !has_room(b->files, b->reserve_files, then->used.files, then->free.files, free->files);
}

int trim_after(const struct sandbox *sb, const struct snapshot *before, bool whole,
               struct snapshot *after, struct err *over, struct err *e)
{
    const struct disk_mark then = {before->usage, before->free};
    struct err why = ERR_INIT;
    struct usage most;

    if (snapshot_take(sb, after, e) < 0)
        return -1;
    if (after->usage.partial && !needs_count(sb, &then, after))
        return 0;
    if (after->usage.partial && usage_measure(sb, NULL, &after->usage, e) < 0)
        return -1;
    if (!quota_over(sb, &then, &after->usage, &most, &why))
        return 0;
    *over = why;
    trim(sb, before, whole ? (struct usage){0} : most, over);
    snapshot_clear(after);
    return snapshot_take(sb, after, e);
}
