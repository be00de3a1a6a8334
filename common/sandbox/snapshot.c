#include "config.h"

#include "common/sandbox/snapshot.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/state/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct walk {
    struct snapshot *out;
    size_t cap; /* of out->items */
    size_t steps, steps_max;
    bool (*leaves_out)(const char *name); /* names at the top; NULL: none */
    size_t left_out;                      /* entries below them, which are not among the steps */
    char path[FILES_NAME_MAX + 1]; /* of the folder being read, with its slash; "" at the top */
    struct err *e;
};

/* Room was made by the caller: one component more than a name may have is cut before it gets here.
 */
static void add_file(struct walk *w, const char *name, const struct stat *st)
{
    struct snapshot *s = w->out;

    if (s->n == SNAPSHOT_ENTRIES_MAX) {
        s->cut = true;
        return;
    }
    if (s->n == w->cap) {
        w->cap = w->cap ? 2 * w->cap : 64;
        s->items = mem_resize(s->items, w->cap, sizeof(*s->items));
    }
    s->items[s->n++] = (struct snapshot_entry){
        .name = mem_printf("%s%s", w->path, name),
        .size = (uint64_t)st->st_size,
        .bytes = usage_of(st),
        .dev = st->st_dev,
        .ino = st->st_ino,
        .ctime = st->st_ctim,
        .mtime = st->st_mtim,
    };
}

static int walk_dir(struct walk *w, int at_fd, const char *name, int depth);

/*
 * One entry of a folder. Its type is what fstatat or the open says, not what readdir said a moment
 * ago; readdir's word is only used to pass over what is certainly of no interest.
 */
static int walk_entry(struct walk *w, int dir_fd, const struct dirent *entry, int depth)
{
    size_t path_len = strlen(w->path);
    size_t name_len = strlen(entry->d_name);
    struct stat st;

    if (entry->d_type != DT_REG && entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
        return 0;
    if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    w->out->usage.bytes += usage_of(&st);
    if ((!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) ||
        (depth == 1 && w->leaves_out && snapshot_is_program(entry->d_name, &st)))
        return 0;
    bool is_dir = S_ISDIR(st.st_mode);
    /* A folder also needs its slash and one byte of a name behind it. */
    if (path_len + name_len + (is_dir ? 2 : 0) > FILES_NAME_MAX ||
        (is_dir && depth == FILES_DEPTH_MAX)) {
        w->out->cut = true;
        w->out->too_deep |= is_dir;
        return 0;
    }
    if (!is_dir) {
        add_file(w, entry->d_name, &st);
        return 0;
    }
    memcpy(w->path + path_len, entry->d_name, name_len);
    memcpy(w->path + path_len + name_len, "/", 2);
    int rc = walk_dir(w, dir_fd, entry->d_name, depth + 1);
    w->path[path_len] = '\0';
    return rc;
}

/* Files that are left out of the list still take room. Those of a folder are counted apart: they
 * do not cut the list, unless that has to be quick. */
static int count_left_out(struct walk *w, int at_fd, const char *name)
{
    const struct usage enough = {.bytes = UINT64_MAX, .files = w->steps_max - w->left_out};
    AUTO_SANDBOX struct sandbox folder = SANDBOX_INIT;
    struct usage *sum = &w->out->usage, found = {0};
    struct stat st;

    if (fstatat(at_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    sum->bytes += usage_of(&st);
    if (!S_ISDIR(st.st_mode))
        return 0;
    folder.fd = beneath_open(at_fd, name, O_RDONLY | O_DIRECTORY);
    if (folder.fd < 0)
        return 0;
    if (usage_measure(&folder, &enough, &found, w->e) < 0)
        return -1;
    sum->bytes += found.bytes;
    sum->files += found.files;
    sum->partial |= found.partial;
    w->left_out += found.files < enough.files ? found.files : enough.files;
    if (found.partial && w->steps_max < SNAPSHOT_STEPS_MAX)
        w->steps = w->steps_max + 1;
    return 0;
}

/* depth counts components: files directly in the sandbox are at 1. */
static int walk_dir(struct walk *w, int at_fd, const char *name, int depth)
{
    AUTO_DIR DIR *dir = beneath_open_dir(at_fd, name);
    const struct dirent *entry;

    if (!dir && beneath_system_failed(errno))
        return err_errno(w->e, "the sandbox's files cannot be listed");
    if (!dir)
        return 0;
    while ((entry = readdir(dir))) {
        if (beneath_is_dot(entry->d_name))
            continue;
        bool left_out = w->leaves_out && depth == 1 && w->leaves_out(entry->d_name);
        if (++w->steps > w->steps_max || (!left_out && w->out->n == SNAPSHOT_ENTRIES_MAX)) {
            w->out->cut = true;
            return 0;
        }
        if ((left_out ? count_left_out(w, dirfd(dir), entry->d_name)
                      : walk_entry(w, dirfd(dir), entry, depth)) < 0)
            return -1;
    }
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct snapshot_entry *)a)->name,
                  ((const struct snapshot_entry *)b)->name);
}

/*
 * The same file can be met twice when it is renamed during the way, and a name twice when two
 * files swap: one entry per name is kept.
 */
static void sort_unique(struct snapshot *s)
{
    size_t kept = 0;

    if (s->n == 0)
        return;
    qsort(s->items, s->n, sizeof(*s->items), compare_names);
    for (size_t i = 1; i < s->n; i++) {
        if (strcmp(s->items[kept].name, s->items[i].name) == 0)
            free(s->items[i].name);
        else
            s->items[++kept] = s->items[i];
    }
    s->n = kept + 1;
}

void snapshot_take_empty(const struct sandbox *sb, struct snapshot *out)
{
    *out = (struct snapshot){.free = disk_free_on(sb->fd)};
    /* The kernel stamps files with the coarse clock; the fine one would be ahead of them. */
    clock_gettime(CLOCK_REALTIME_COARSE, &out->taken);
}

bool snapshot_is_hidden(const char *name)
{
    return name[0] == '.';
}

bool snapshot_is_program(const char *name, const struct stat *st)
{
    static const char *const beginnings[] = {".script.", ".script-", ".cell-"};
    bool named = false;

    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
        named |= strncmp(name, beginnings[i], strlen(beginnings[i])) == 0;
    return named && S_ISREG(st->st_mode) && (st->st_mode & 07777) == (S_ISVTX | 0600);
}

static bool is_packages(const char *name)
{
    return strcmp(name, SNAPSHOT_PACKAGES) == 0;
}

/* 1: there is more than steps_max. */
static int take(const struct sandbox *sb, size_t steps_max, bool (*leaves_out)(const char *name),
                struct snapshot *out, struct err *e)
{
    AUTO_SNAPSHOT struct snapshot s = {0};
    struct walk w = {.out = &s, .steps_max = steps_max, .leaves_out = leaves_out, .e = e};

    snapshot_take_empty(sb, &s);
    if (walk_dir(&w, sb->fd, ".", 1) < 0)
        return -1;
    if (w.steps > steps_max && steps_max < SNAPSHOT_STEPS_MAX)
        return 1;
    sort_unique(&s);
    s.usage.files += w.steps;
    s.usage.partial |= s.cut;
    *out = s;
    s = (struct snapshot){0};
    return 0;
}

int snapshot_take(const struct sandbox *sb, struct snapshot *out, struct err *e)
{
    return take(sb, SNAPSHOT_STEPS_MAX, snapshot_is_hidden, out, e);
}

int snapshot_take_small(const struct sandbox *sb, size_t steps_max, struct snapshot *out,
                        struct err *e)
{
    return take(sb, steps_max, snapshot_is_hidden, out, e);
}

int snapshot_take_all(const struct sandbox *sb, struct snapshot *out, struct err *e)
{
    return take(sb, SNAPSHOT_STEPS_MAX, is_packages, out, e);
}

int snapshot_take_folder(const struct sandbox *folder, struct snapshot *out, struct err *e)
{
    return take(folder, SNAPSHOT_STEPS_MAX, NULL, out, e);
}

void snapshot_clear(struct snapshot *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->items[i].name);
    free(s->items);
    *s = (struct snapshot){0};
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool earlier(struct timespec a, struct timespec b)
{
    return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

static bool same_file(const struct snapshot_entry *a, const struct snapshot_entry *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           same_time(a->ctime, b->ctime);
}

void snapshot_diff(const struct snapshot *before, const struct snapshot *after,
                   void (*each)(void *ctx, const struct snapshot_entry *entry,
                                enum snapshot_change change),
                   void *ctx)
{
    size_t i = 0, j = 0;

    while (i < before->n || j < after->n) {
        const struct snapshot_entry *old = i < before->n ? &before->items[i] : NULL;
        const struct snapshot_entry *new = j < after->n ? &after->items[j] : NULL;
        int order = !old ? 1 : !new ? -1 : strcmp(old->name, new->name);

        if (order == 0 && !same_file(old, new))
            each(ctx, new, SNAPSHOT_MODIFIED);
        else if (order < 0 && !after->cut)
            each(ctx, old, SNAPSHOT_DELETED);
        else if (order > 0 && (!before->cut || !earlier(new->ctime, before->taken)))
            each(ctx, new, SNAPSHOT_CREATED);
        i += order <= 0;
        j += order >= 0;
    }
}

const char *snapshot_change_name(enum snapshot_change c)
{
    switch (c) {
    case SNAPSHOT_CREATED:
        return "created";
    case SNAPSHOT_MODIFIED:
        return "modified";
    case SNAPSHOT_DELETED:
        return "deleted";
    }
    return "";
}
