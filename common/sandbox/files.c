#include "config.h"

#include "common/sandbox/files.h"

#include "common/base/fdio.h"
#include "common/sandbox/beneath.h"
#include "common/sandbox/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#define COPY_CHUNK 65536
/* How often the way is walked anew when a program changes it under our feet. */
#define PUT_TRIES 8

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte at s, decoding one %XX; *step is how many characters that were. */
static char decode_at(const char *s, size_t *step)
{
    *step = 1;
    if (s[0] != '%' || hex_digit(s[1]) < 0 || hex_digit(s[2]) < 0)
        return s[0];
    *step = 3;
    return (char)(hex_digit(s[1]) * 16 + hex_digit(s[2]));
}

/* Would name, decoded once more, be another path than it says? */
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
            return err_set(e, ERR_INVALID,
                           "%s must be a relative path whose parts are 1 to %d bytes long and not "
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
    if (!sandbox_text_ok(name, len))
        return err_set(e, ERR_INVALID, "%s must be UTF-8 text without control characters", field);
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

    /* O_NONBLOCK: a FIFO would hold us until somebody writes to it. */
    AUTO_FD int fd = beneath_open(sb->fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && beneath_system_failed(errno))
        return err_errno(e, "the file cannot be opened");
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

static int give(const struct sandbox_root *root, int fd, struct err *e)
{
    if (fchown(fd, root->uid, root->gid) < 0)
        return err_errno(e, "the file cannot be given to the sandbox's user");
    if (fchmod(fd, 0644) < 0)
        return err_errno(e, "the file's mode cannot be set");
    return 0;
}

static int stage_content(const struct sandbox_root *root, int from_fd, uint64_t size,
                         struct staged *out, struct err *e)
{
    AUTO_FD int fd = staging_create_file(root, out);
    if (fd < 0)
        return err_errno(e, "the file cannot be made");
    if (copy_exactly(from_fd, fd, size, e) < 0 || give(root, fd, e) < 0)
        return -1;
    /* Network file systems tell of a full disk only here. */
    if (close(TAKE_FD(fd)) < 0)
        return err_errno(e, "the file cannot be written");
    return 0;
}

/* Folders that one attempt has made, deepest last, so that a failure can take them back. */
struct made {
    int parent_fds[FILES_DEPTH_MAX];
    char names[FILES_DEPTH_MAX][FILES_COMPONENT_MAX + 1];
    int n;
};

static void made_keep(struct made *m)
{
    while (m->n > 0)
        auto_close_fd(&m->parent_fds[--m->n]);
}

static void made_undo(struct made *m)
{
    int saved = errno;

    /* Only empty folders go: what a program has put there meanwhile stays. */
    for (int i = m->n - 1; i >= 0; i--)
        unlinkat(m->parent_fds[i], m->names[i], AT_REMOVEDIR);
    made_keep(m);
    errno = saved;
}

/*
 * Makes the folder name in at_fd: with its owner already right, by renaming it in. When a program
 * put something there in the meantime, the rename fails or replaces an empty folder by another one;
 * the open that follows decides.
 */
static int make_folder(const struct sandbox_root *root, int at_fd, const char *name, struct made *m)
{
    AUTO_STAGED struct staged folder = STAGED_INIT;

    if (staging_create_folder(root, &folder) < 0)
        return -1;
    AUTO_FD int parent = fcntl(at_fd, F_DUPFD_CLOEXEC, 3);
    if (parent < 0)
        return -1;
    if (staged_move(&folder, at_fd, name) < 0)
        return errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR ? 0 : -1;
    m->parent_fds[m->n] = TAKE_FD(parent);
    memcpy(m->names[m->n], name, strlen(name) + 1);
    m->n++;
    return 0;
}

static int open_folder(int at_fd, const char *name)
{
    return openat(at_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Goes down the folders of name, making those that are missing, and moves the file in. 0, or -1
 * with errno. */
static int put_once(const struct sandbox *sb, const char *name, struct staged *file, struct made *m)
{
    AUTO_FD int held = -1;
    char part[FILES_COMPONENT_MAX + 1];
    int at = sb->fd;

    for (;;) {
        name = beneath_component(name, part);
        if (!part[0])
            return -1;
        if (!name)
            return staged_move(file, at, part);
        int next = open_folder(at, part);
        if (next < 0 && errno == ENOENT) {
            if (m->n == FILES_DEPTH_MAX) {
                errno = EINVAL;
                return -1;
            }
            if (make_folder(sb->root, at, part, m) < 0)
                return -1;
            next = open_folder(at, part);
        }
        if (next < 0)
            return -1;
        auto_close_fd(&held);
        at = held = next;
    }
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
    case EINVAL:
        return err_set(e, ERR_INVALID, "the file's name cannot be used");
    case ENOENT:
        return err_set(e, ERR_IO, "a running program keeps removing the file's folder");
    default:
        return err_errno(e, "the file cannot be moved into the sandbox");
    }
}

static int move_in(const struct sandbox *sb, const char *name, struct staged *file, struct err *e)
{
    struct made made = {.n = 0};
    int error = ENOENT;

    /* ENOENT: a program removed a folder between our opening it and the rename. */
    for (int i = 0; i < PUT_TRIES && error == ENOENT; i++) {
        if (put_once(sb, name, file, &made) == 0) {
            made_keep(&made);
            return 0;
        }
        error = errno;
        made_undo(&made);
    }
    return put_error(error, e);
}

int files_put(const struct sandbox *sb, const char *name, int from_fd, uint64_t size, struct err *e)
{
    AUTO_STAGED struct staged file = STAGED_INIT;

    if (stage_content(sb->root, from_fd, size, &file, e) < 0)
        return -1;
    return move_in(sb, name, &file, e);
}

int files_put_staged(const struct sandbox *sb, const char *name, struct staged *file, int fd,
                     struct err *e)
{
    if (give(sb->root, fd, e) < 0)
        return -1;
    return move_in(sb, name, file, e);
}

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
