#include "config.h"

#include "common/sandbox/files/files.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/base/utf8.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/staging.h"
#include "common/sandbox/files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COPY_CHUNK 65536
#define DELETE_MS  30000
#define TRIES_MAX  8 /* walks of a path that a program changes */

/* The byte at s, decoding one %XX; *step: the characters read. */
static char decode_at(const char *s, size_t *step)
{
    int byte = parse_percent(s, strnlen(s, 3));

    *step = byte < 0 ? 1 : 3;
    return byte < 0 ? s[0] : (char)byte;
}

/* Is name another path when it is decoded once more? */
static bool hides_path(const char *name)
{
    size_t dots = 0, others = 0, step;

    for (const char *p = name;; p += step) {
        char c = decode_at(p, &step);
        if (step == 3 && (c == '/' || c == '\0'))
            return true;
        if (c == '.') {
            dots++;
        } else if (c != '/' && c != '\0') {
            others++;
        } else {
            if (others == 0 && (dots == 1 || dots == 2))
                return true;
            if (c == '\0')
                return false;
            dots = others = 0;
        }
    }
}

static int check_components(const char *field, const char *name, struct err *e)
{
    char part[FILES_COMPONENT_MAX + 1];
    int depth = 0;

    while (name) {
        name = beneath_component(name, part);
        if (!part[0])
            return err_set(
                e, ERR_INVALID,
                "%s must be a path below /data whose parts are 1 to %d bytes long and not "
                "\".\" or \"..\"",
                field, FILES_COMPONENT_MAX);
        if (++depth > FILES_DEPTH_MAX)
            return err_set(e, ERR_INVALID, "%s must not be more than %d folders deep", field,
                           FILES_DEPTH_MAX - 1);
    }
    return 0;
}

int files_check_name(const char *field, const char *name, size_t len, struct err *e)
{
    if (len == 0 || len > FILES_NAME_MAX)
        return err_set(e, ERR_INVALID, "%s must be 1 to %d bytes long", field, FILES_NAME_MAX);
    if (!utf8_valid(name, len) || memchr(name, '\0', len))
        return err_set(e, ERR_INVALID, "%s must be UTF-8 text without NUL characters", field);
    if (check_components(field, name, e) < 0)
        return -1;
    if (hides_path(name))
        return err_set(e, ERR_INVALID, "%s must not contain percent-encoded dots or slashes",
                       field);
    return 0;
}

int files_open(const struct sandbox *sb, const char *name, struct stat *out, struct err *e)
{
    struct stat st;

    /* O_NONBLOCK: the open of a FIFO would wait for a writer. */
    AUTO_FD int fd = beneath_open(sb->fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && beneath_system_failed(errno))
        return err_errno(e, "the file cannot be opened");
    if (fd < 0 && errno == EWOULDBLOCK) /* the kernel takes it away after fs.lease-break-time */
        return err_set(e, ERR_BUSY, "a running program has a lease on the file; try again later");
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_NOT_FOUND, "there is no such file");
    *out = st;
    return TAKE_FD(fd);
}

static int copy_exactly(int from_fd, int to_fd, uint64_t size, struct err *e)
{
    char chunk[COPY_CHUNK];

    while (size > 0) {
        size_t want = size < sizeof(chunk) ? (size_t)size : sizeof(chunk);
        ssize_t got = read(from_fd, chunk, want);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(e, "the file's content cannot be read");
        if (got == 0)
            return err_set(e, ERR_IO, "the file's content ended early");
        if (fdio_write_all(to_fd, chunk, (size_t)got, e) < 0)
            return err_wrap(e, "the file cannot be written");
        size -= (uint64_t)got;
    }
    return 0;
}

static int give(const struct sandbox *sb, int fd, struct err *e)
{
    if (fchown(fd, sb->owner.uid, sb->owner.gid) < 0)
        return err_errno(e, "the file cannot be given to the sandbox's user");
    if (fchmod(fd, 0644) < 0)
        return err_errno(e, "the file's mode cannot be set");
    return 0;
}

static int stage_content(const struct sandbox *sb, int from_fd, uint64_t size, struct staged *out,
                         struct err *e)
{
    AUTO_FD int fd = staging_create_file(sb->root, out);
    if (fd < 0)
        return err_errno(e, "the file cannot be made");
    if (copy_exactly(from_fd, fd, size, e) < 0 || give(sb, fd, e) < 0)
        return -1;
    /* Network file systems report a full disk only here. */
    if (close(TAKE_FD(fd)) < 0)
        return err_errno(e, "the file cannot be written");
    return 0;
}

/* ---- the folder that holds a name's last part, reached by going down only ---- */

struct path_walk {
    int fd; /* of the folder, O_PATH */
    char last[FILES_COMPONENT_MAX + 1];
    struct made_folder {
        int parent_fd;
        char name[FILES_COMPONENT_MAX + 1];
    } made[FILES_DEPTH_MAX];
    int n_made;
};

#define PATH_WALK_INIT ((struct path_walk){.fd = -1})
#define AUTO_PATH_WALK AUTO(path_walk_clear)

/* The folders that were made stay; otherwise path_walk_clear removes those that are empty. */
static void path_walk_keep(struct path_walk *w)
{
    while (w->n_made > 0)
        auto_close_fd(&w->made[--w->n_made].parent_fd);
}

/* Keeps errno. */
static void path_walk_clear(struct path_walk *w)
{
    int saved = errno;

    /* Removes empty folders only: files that a program has put there meanwhile stay. */
    for (int i = w->n_made - 1; i >= 0; i--)
        unlinkat(w->made[i].parent_fd, w->made[i].name, AT_REMOVEDIR);
    path_walk_keep(w);
    auto_close_fd(&w->fd);
    errno = saved;
}

/* Makes the folder w->last in w->fd, by renaming in one with the right owner. When a program has
 * made the name meanwhile, the rename fails or replaces an empty folder; the open that follows
 * decides. */
static int path_walk_make(const struct sandbox *sb, struct path_walk *w)
{
    AUTO_STAGED struct staged folder = STAGED_INIT;

    if (w->n_made == FILES_DEPTH_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (staging_create_folder(sb->root, sb->owner, &folder) < 0)
        return -1;
    AUTO_FD int parent = fcntl(w->fd, F_DUPFD_CLOEXEC, 3);
    if (parent < 0)
        return -1;
    if (staged_move(&folder, w->fd, w->last, STAGED_MOVE_REPLACE) < 0)
        return errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR ? 0 : -1;
    struct made_folder *made = &w->made[w->n_made++];
    made->parent_fd = TAKE_FD(parent);
    memcpy(made->name, w->last, sizeof(made->name));
    return 0;
}

/* Goes into the folder w->last. */
static int path_walk_enter(const struct sandbox *sb, bool make, struct path_walk *w)
{
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int next = openat(w->fd, w->last, flags);

    if (next < 0 && errno == ENOENT && make) {
        if (path_walk_make(sb, w) < 0)
            return -1;
        next = openat(w->fd, w->last, flags);
    }
    if (next < 0)
        return -1;
    auto_close_fd(&w->fd);
    w->fd = next;
    return 0;
}

/* Descends to name; with make missing folders are made (owned by the sandbox's user, 0755). 0, or
 * -1 with errno; *out is to be cleared in either case. */
static int path_walk_go(const struct sandbox *sb, const char *name, bool make,
                        struct path_walk *out)
{
    out->fd = fcntl(sb->fd, F_DUPFD_CLOEXEC, 3);
    if (out->fd < 0)
        return -1;
    for (;;) {
        name = beneath_component(name, out->last);
        if (!out->last[0])
            return -1;
        if (!name)
            return 0;
        if (path_walk_enter(sb, make, out) < 0)
            return -1;
    }
}

int files_make_folder(const struct sandbox *sb, const char *name, struct err *e)
{
    AUTO_FREE char *inside = mem_printf("%s/x", name);
    AUTO_PATH_WALK struct path_walk walk = PATH_WALK_INIT;

    if (path_walk_go(sb, inside, true, &walk) < 0)
        return err_errno(e, "the folder '%.200s' cannot be made", name);
    path_walk_keep(&walk);
    return 0;
}

/* ---- putting ---- */

/* Moves the file in; 0, or -1 with errno. */
static int put_once(const struct sandbox *sb, const char *name, struct staged *file, bool replace)
{
    AUTO_PATH_WALK struct path_walk walk = PATH_WALK_INIT;

    if (path_walk_go(sb, name, true, &walk) < 0)
        return -1;
    if (staged_move(file, walk.fd, walk.last, replace ? STAGED_MOVE_REPLACE : STAGED_MOVE_FREE) < 0)
        return -1;
    path_walk_keep(&walk);
    return 0;
}

static int put_error(int error, struct err *e)
{
    errno = error;
    switch (error) {
    case ENOTDIR:
    case ELOOP:
        return err_set(e, ERR_INVALID,
                       "a folder of the file's name is not a folder in the sandbox");
    case EISDIR:
        return err_set(e, ERR_INVALID, "the file's name is that of a folder in the sandbox");
    case EEXIST:
        return err_set(e, ERR_EXISTS, "there is something of that name already");
    case EINVAL:
        return err_set(e, ERR_INVALID, "the file's name cannot be used");
    case ENOENT:
        return err_set(e, ERR_IO, "a running program keeps removing the file's folder");
    default:
        return err_errno(e, "the file cannot be moved into the sandbox");
    }
}

static int move_in(const struct sandbox *sb, const char *name, struct staged *file, bool replace,
                   struct err *e)
{
    int error = ENOENT;

    /* ENOENT: a program removed a folder between its opening and the rename. */
    for (int i = 0; i < TRIES_MAX && error == ENOENT; i++) {
        if (put_once(sb, name, file, replace) == 0)
            return 0;
        error = errno;
    }
    return put_error(error, e);
}

int files_put(const struct sandbox *sb, const char *name, int from_fd, uint64_t size, bool replace,
              struct err *e)
{
    AUTO_STAGED struct staged file = STAGED_INIT;

    if (stage_content(sb, from_fd, size, &file, e) < 0)
        return -1;
    return move_in(sb, name, &file, replace, e);
}

int files_put_staged(const struct sandbox *sb, const char *name, struct staged *file, int fd,
                     struct err *e)
{
    if (give(sb, fd, e) < 0)
        return -1;
    return move_in(sb, name, file, true, e);
}

/* ---- moving and deleting ---- */

int files_look(const struct sandbox *sb, const char *name, struct stat *out, struct err *e)
{
    AUTO_PATH_WALK struct path_walk walk = PATH_WALK_INIT;

    if (path_walk_go(sb, name, false, &walk) == 0 &&
        fstatat(walk.fd, walk.last, out, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (beneath_system_failed(errno))
        return err_errno(e, "the file cannot be looked at");
    return err_set(e, ERR_NOT_FOUND, "there is no such file or folder");
}

/* 0, or -1 with errno. */
static int move_once(const struct sandbox *sb, const char *from, const char *to, bool replace)
{
    AUTO_PATH_WALK struct path_walk source = PATH_WALK_INIT;
    AUTO_PATH_WALK struct path_walk target = PATH_WALK_INIT;

    if (path_walk_go(sb, from, false, &source) < 0 || path_walk_go(sb, to, true, &target) < 0)
        return -1;
    if ((replace ? renameat(source.fd, source.last, target.fd, target.last)
                 : beneath_rename_free(source.fd, source.last, target.fd, target.last)) < 0)
        return -1;
    path_walk_keep(&target);
    return 0;
}

static int move_error(int error, struct err *e)
{
    errno = error;
    switch (error) {
    case EEXIST:
    case ENOTEMPTY:
        return err_set(e, ERR_EXISTS, "there is something of the new name already");
    case EISDIR:
        return err_set(e, ERR_EXISTS, "the new name is that of a folder: a file cannot replace it");
    case ENOTDIR:
    case ELOOP:
        return err_set(e, ERR_INVALID,
                       "the new name leads through, or would replace, what is not a folder");
    case EINVAL:
        return err_set(e, ERR_INVALID, "a folder cannot be moved into itself");
    case ENOENT:
        return err_set(e, ERR_IO, "a running program keeps removing the folder of the new name");
    default:
        return err_errno(e, "the file cannot be moved");
    }
}

int files_move(const struct sandbox *sb, const char *from, const char *to, bool replace,
               struct err *e)
{
    struct stat st;
    int error = ENOENT;

    for (int i = 0; i < TRIES_MAX && error == ENOENT; i++) {
        if (files_look(sb, from, &st, e) < 0)
            return -1;
        if (move_once(sb, from, to, replace) == 0)
            return 0;
        error = errno;
    }
    return move_error(error, e);
}

/* Deletes what unlink refused. */
static int delete_folder(const struct path_walk *walk, const struct tree_bounds *recursive,
                         uint64_t *deleted, struct err *e)
{
    if (recursive)
        return tree_remove(walk->fd, walk->last, *recursive, deleted, e);
    if (unlinkat(walk->fd, walk->last, AT_REMOVEDIR) == 0) {
        ++*deleted;
        return 0;
    }
    if (errno == ENOTEMPTY || errno == EEXIST)
        return err_set(e, ERR_INVALID,
                       "that is a folder with something in it: say recursive to delete it all");
    return beneath_has_changed(errno) ? 0 : tree_cannot("the file", e);
}

/* 0 with nothing deleted: the name has changed its type meanwhile. */
static int delete_once(const struct sandbox *sb, const char *name,
                       const struct tree_bounds *recursive, uint64_t *deleted, struct err *e)
{
    AUTO_PATH_WALK struct path_walk walk = PATH_WALK_INIT;

    if (path_walk_go(sb, name, false, &walk) == 0) {
        if (unlinkat(walk.fd, walk.last, 0) == 0) {
            ++*deleted;
            return 0;
        }
        if (errno == EISDIR || errno == EPERM)
            return delete_folder(&walk, recursive, deleted, e);
    }
    if (beneath_has_changed(errno) || errno == EINVAL)
        return err_set(e, ERR_NOT_FOUND, "there is no such file or folder");
    return tree_cannot("the file", e);
}

int files_delete(const struct sandbox *sb, const char *name, bool recursive,
                 const struct sandbox_watch *watch, uint64_t *out_deleted, struct err *e)
{
    const struct tree_bounds bounds = {
        .watch = watch, .entries = FILES_DELETE_MAX, .end = deadline_in_ms(DELETE_MS)};
    int rc = 0;

    *out_deleted = 0;
    for (int i = 0; i < TRIES_MAX && rc == 0 && *out_deleted == 0; i++)
        rc = delete_once(sb, name, recursive ? &bounds : NULL, out_deleted, e);
    if (rc == 0 && *out_deleted == 0)
        return err_set(e, ERR_LIMIT, "a running program keeps changing what has this name");
    return rc;
}

/* ---- sharing ---- */

/* Adds the mode bits to what flags open, if it lacks them. */
static void add_mode(const struct sandbox *sb, const char *name, int flags, mode_t bits)
{
    struct stat st;
    AUTO_FD int fd = beneath_open(sb->fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags);

    if (fd < 0 || fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return;
    if ((st.st_mode & bits) != bits)
        (void)fchmod(fd, (st.st_mode & 0777) | bits);
}

void files_share(const struct sandbox *sb, const char *name)
{
    char folder[FILES_NAME_MAX + 1];
    size_t len = strlen(name);

    if (len > FILES_NAME_MAX)
        return;
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t n = (size_t)(slash - name);
        memcpy(folder, name, n);
        folder[n] = '\0';
        add_mode(sb, folder, O_DIRECTORY, S_IXGRP | S_IXOTH);
    }
    add_mode(sb, name, 0, S_IRGRP | S_IROTH);
}
