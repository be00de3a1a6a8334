#include "config.h"

#include "common/sandbox/state/unsaved.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_LEN   (64 + SANDBOX_NAME_LEN)
#define AGAIN_SIZE 1 /* bytes of a note that says "again" */

static const char *path_of(const char *dir, const char *name, char out[PATH_LEN])
{
    snprintf(out, PATH_LEN, "%.40s/%.*s", dir, SANDBOX_NAME_LEN, name);
    return out;
}

static void note(const struct sandbox_root *root, const char *name, off_t size)
{
    char path[PATH_LEN];
    AUTO_FD int fd = openat(root->fd, path_of(UNSAVED_DIR, name, path),
                            O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return; /* there is no store */
    if (fd < 0 || fstat(fd, &st) < 0)
        log_warn("changed files were not noted for the store: %s", strerror(errno));
    else if (st.st_size != size && ftruncate(fd, size) < 0)
        log_debug("a note for the store stays as it is: %s", strerror(errno));
}

void unsaved_note(const struct sandbox_root *root, const char *name)
{
    note(root, name, 0);
}

void unsaved_note_again(const struct sandbox_root *root, const char *name)
{
    char path[PATH_LEN];

    /* A change was noted meanwhile: that is more. */
    if (faccessat(root->fd, path_of(UNSAVED_DIR, name, path), F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        note(root, name, AGAIN_SIZE);
}

/* Calls each for every name in a folder of the root that could be a sandbox's. */
static int each_name(const struct sandbox_root *root, const char *dir,
                     void (*each)(const struct sandbox_root *, const char *, void *), void *ctx)
{
    AUTO_DIR DIR *d = beneath_open_dir(root->fd, dir);

    if (!d)
        return -1;
    for (const struct dirent *entry; (entry = readdir(d));)
        if (state_name_ok(entry->d_name))
            each(root, entry->d_name, ctx);
    return 0;
}

static void note_unknown(const struct sandbox_root *root, const char *name, void *no_ctx)
{
    char path[PATH_LEN];

    (void)no_ctx;
    if (faccessat(root->fd, path_of(SAVED_DIR, name, path), F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        unsaved_note(root, name);
}

static void put_back_one(const struct sandbox_root *root, const char *name, void *no_ctx)
{
    (void)no_ctx;
    unsaved_put_back(root, name);
}

int unsaved_begin(const struct sandbox_root *root, struct err *e)
{
    static const char *const folders[] = {SAVED_DIR, SAVING_DIR, UNSAVED_DIR};

    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (mkdirat(root->fd, folders[i], 0700) < 0 && errno != EEXIST)
            return err_errno(e, "SANDBOX_ROOT/%s cannot be made", folders[i]);
    if (each_name(root, ".", note_unknown, NULL) < 0 ||
        each_name(root, SAVING_DIR, put_back_one, NULL) < 0)
        return err_errno(e, "SANDBOX_ROOT or " SAVING_DIR " in it cannot be listed");
    return 0;
}

static void remove_one(const struct sandbox_root *root, const char *name, void *dir)
{
    char path[PATH_LEN];

    unlinkat(root->fd, path_of(dir, name, path), 0);
}

void unsaved_end(const struct sandbox_root *root)
{
    static char folders[][sizeof UNSAVED_DIR] = {UNSAVED_DIR, SAVING_DIR, SAVED_DIR};

    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (each_name(root, folders[i], remove_one, folders[i]) == 0 &&
            unlinkat(root->fd, folders[i], AT_REMOVEDIR) < 0)
            log_warn("SANDBOX_ROOT/%s cannot be removed: %s", folders[i], strerror(errno));
}

/* ---- the list ---- */

static void list_one(const struct sandbox_root *root, const char *dir, const char *name,
                     struct unsaved *list)
{
    char path[PATH_LEN];
    struct stat st;

    if (fstatat(root->fd, path_of(dir, name, path), &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if ((list->n & (list->n - 1)) == 0) /* full: it doubles */
        list->items = mem_resize(list->items, list->n ? 2 * list->n : 1, sizeof *list->items);
    struct unsaved_item *item = &list->items[list->n++];
    memcpy(item->name, name, sizeof item->name);
    item->since_ms = clock_ns_of(st.st_mtim) / 1000000;
    item->again = st.st_size == AGAIN_SIZE;
}

static void list_noted(const struct sandbox_root *root, const char *name, void *list)
{
    list_one(root, UNSAVED_DIR, name, list);
}

static void list_taken(const struct sandbox_root *root, const char *name, void *list)
{
    list_one(root, SAVING_DIR, name, list);
}

static int compare(const void *a, const void *b)
{
    const struct unsaved_item *left = a, *right = b;

    if (left->since_ms != right->since_ms)
        return left->since_ms < right->since_ms ? -1 : 1;
    return strcmp(left->name, right->name);
}

int unsaved_list(const struct sandbox_root *root, bool with_taken, struct unsaved *out,
                 struct err *e)
{
    *out = (struct unsaved){0};
    /* In this order: a note goes from the first to the second. */
    if ((each_name(root, UNSAVED_DIR, list_noted, out) < 0 ||
         (with_taken && each_name(root, SAVING_DIR, list_taken, out) < 0)) &&
        errno != ENOENT)
        return err_errno(e, "SANDBOX_ROOT/" UNSAVED_DIR " or " SAVING_DIR " cannot be listed");
    if (out->n > 0)
        qsort(out->items, out->n, sizeof *out->items, compare);
    return 0;
}

void unsaved_clear(struct unsaved *u)
{
    free(u->items);
    *u = (struct unsaved){0};
}

/* ---- one of them ---- */

bool unsaved_has(const struct sandbox_root *root, const char *name)
{
    char path[PATH_LEN];

    /* In this order: a note goes from the first to the second. */
    return faccessat(root->fd, path_of(UNSAVED_DIR, name, path), F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
           faccessat(root->fd, path_of(SAVING_DIR, name, path), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool unsaved_take(const struct sandbox_root *root, const char *name)
{
    char from[PATH_LEN], to[PATH_LEN];

    return renameat(root->fd, path_of(UNSAVED_DIR, name, from), root->fd,
                    path_of(SAVING_DIR, name, to)) == 0;
}

void unsaved_done(const struct sandbox_root *root, const char *name)
{
    char path[PATH_LEN];

    unlinkat(root->fd, path_of(SAVING_DIR, name, path), 0);
}

void unsaved_put_back(const struct sandbox_root *root, const char *name)
{
    char from[PATH_LEN], to[PATH_LEN];

    if (renameat(root->fd, path_of(SAVING_DIR, name, from), root->fd,
                 path_of(UNSAVED_DIR, name, to)) < 0)
        log_warn("changed files are no longer noted for the store: %s", strerror(errno));
}
