/*
 * Where a run's program lies. A SCRIPT with a hidden name in the working directory is beside the
 * program's files, where other containers may have programs at the same time: each is a new file,
 * locked by the entry program that made it. A file without a lock is what a killed container
 * left. The sticky bit, which means nothing for a file, tells them from a user's own.
 */
#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OWN_MODE    (S_IRUSR | S_IWUSR)
#define SHARED_MODE (S_ISVTX | OWN_MODE)
/* Programs in one working directory at the same time; further ones are in /tmp. */
#define NAMES_TRIED 8
/* For an interpreter to open its program. */
#define STARTS_S 10

static struct {
    int fd; /* 0: there is none */
    size_t len;
    char *code; /* read from fd; NULL: not yet */
    char path[PATH_MAX];
} self;

/* One that was placed for an interpreter that comes up. */
static struct {
    char path[PATH_MAX]; /* "": none */
    struct stat was;
} placed;

/* The name of a SCRIPT behind the working directory's and its slash, if it is hidden; NULL. */
static const char *hidden_name(const struct options *o)
{
    size_t len = strlen(o->cwd);
    const char *name = o->script + len + 1;

    return strncmp(o->script, o->cwd, len) == 0 && o->script[len] == '/' && name[0] == '.' &&
                   !strchr(name, '/')
               ? name
               : NULL;
}

/* A number of a file that has gone is soon another's. */
static bool is_at(const struct stat *st, const char *path)
{
    struct stat now;

    return lstat(path, &now) == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino &&
           now.st_ctim.tv_sec == st->st_ctim.tv_sec && now.st_ctim.tv_nsec == st->st_ctim.tv_nsec;
}

/* Whether a killed container has left it, with that many bytes. The first who opens a new one is
 * taken for its interpreter (script_hide). */
static bool may_be_left(const char *path, off_t least, struct stat *st)
{
    return lstat(path, st) == 0 && S_ISREG(st->st_mode) && st->st_mode & S_ISVTX &&
           st->st_size >= least && time(NULL) - st->st_mtim.tv_sec > STARTS_S;
}

/* Removes what is left there. */
static bool reclaim(const char *path, off_t least)
{
    struct stat st;
    int fd = may_be_left(path, least, &st)
                 ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                 : -1;
    bool gone = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_at(&st, path) &&
                unlink(path) == 0;

    if (fd >= 0)
        close(fd);
    return gone;
}

/* Between its birth and its lock it may be taken for a left one. */
static bool lock(int fd)
{
    struct stat st;

    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/* Makes a new file at self.path; errno is EEXIST when that is another's. */
static bool make_new(bool shared)
{
    const int how = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const mode_t mode = shared ? SHARED_MODE : OWN_MODE;

    if (!shared)
        unlink(self.path);
    self.fd = open(self.path, how, mode);
    if (self.fd < 0 && errno == EEXIST) {
        if (reclaim(self.path, 0))
            self.fd = open(self.path, how, mode);
        else
            errno = EEXIST;
    }
    if (self.fd < 0 || !shared || lock(self.fd))
        return self.fd >= 0;
    close(self.fd);
    self.fd = -1;
    errno = EEXIST;
    return false;
}

/* In a place that no other container has. */
static bool make_apart(const char *name)
{
    snprintf(self.path, sizeof(self.path), "/tmp/%s", name + 1);
    return make_new(false);
}

void script_place(const struct options *o)
{
    int fd = open(o->script, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  hidden_name(o) ? SHARED_MODE : OWN_MODE);

    if (fd < 0)
        return;
    snprintf(placed.path, sizeof(placed.path), "%s", o->script);
    fstat(fd, &placed.was);
    close(fd);
}

/* The interpreter may be at reading where it lies: with another file there it would not find it. */
static bool take_placed(const struct options *o)
{
    struct stat st;

    if (strcmp(placed.path, o->script) != 0 || !is_at(&placed.was, placed.path))
        return false;
    self.fd = open(placed.path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (self.fd >= 0 && fstat(self.fd, &st) == 0 && st.st_ino == placed.was.st_ino &&
        st.st_size == 0 && lock(self.fd)) {
        placed.path[0] = '\0';
        return true;
    }
    if (self.fd >= 0)
        close(self.fd);
    self.fd = 0;
    return false;
}

void script_unplace(void)
{
    if (placed.path[0] && is_at(&placed.was, placed.path))
        unlink(placed.path);
    placed.path[0] = '\0';
}

/* Of an empty one another container's interpreter may come up. */
void script_sweep(const struct languages *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->items[i].script && hidden_name(&l->items[i]))
            reclaim(l->items[i].script, 1);
    }
}

bool script_open(const struct options *o)
{
    const char *name = hidden_name(o), *end = name ? strrchr(name + 1, '.') : NULL;
    const int stem = (int)(end ? end - o->script : (ptrdiff_t)strlen(o->script));

    self.len = 0;
    snprintf(self.path, sizeof(self.path), "%s", o->script);
    if (take_placed(o))
        return true;
    script_unplace();
    if (make_new(name != NULL))
        return true;
    for (int i = 2; name && errno == EEXIST && i <= NAMES_TRIED; i++) {
        snprintf(self.path, sizeof(self.path), "%.*s-%d%s", stem, o->script, i, end ? end : "");
        if (make_new(true))
            return true;
    }
    return name && make_apart(name);
}

/* The working directory has no room for it. */
static bool move_apart(const struct options *o)
{
    const char *name = hidden_name(o);
    char old_path[PATH_MAX], data[4096];
    const int old = self.fd;
    bool moved;

    if (!name)
        return false;
    memcpy(old_path, self.path, sizeof(old_path));
    moved = make_apart(name);
    for (size_t at = 0, n; moved && at < self.len; at += n) {
        n = self.len - at < sizeof(data) ? self.len - at : sizeof(data);
        moved = pread(old, data, n, (off_t)at) == (ssize_t)n && write_all(self.fd, data, n);
    }
    unlink(old_path);
    close(old);
    return moved;
}

bool script_add(const struct options *o, const char *data, size_t len)
{
    bool added = write_all(self.fd, data, len) || (move_apart(o) && write_all(self.fd, data, len));

    self.len += len;
    return added;
}

const char *script_path(void)
{
    return self.path;
}

bool script_is_open(void)
{
    return self.fd > 0;
}

/* Not by its path, which others can put anything at. */
struct code script_code(void)
{
    if (!self.code && self.len > 0 && (self.code = malloc(self.len)) &&
        pread(self.fd, self.code, self.len, 0) != (ssize_t)self.len) {
        free(self.code);
        self.code = NULL;
    }
    return (struct code){self.code, self.code ? self.len : 0};
}

bool script_is_chosen(const struct options *o)
{
    return o->chooser && o->chosen && code_has(script_code(), o->chosen);
}

/* The path with a letter behind it, where an interpreter keeps the file while another one is in its
 * place (workbench/python/program.py). */
static void beside(char letter, char path[PATH_MAX + 1])
{
    snprintf(path, PATH_MAX + 1, "%s%c", self.path, letter);
}

static void take_name(void)
{
    char aside[PATH_MAX + 1], other[PATH_MAX + 1];
    struct stat st;

    if (self.fd <= 0 || fstat(self.fd, &st) != 0)
        return;
    beside('~', aside);
    beside('c', other);
    if (is_at(&st, aside)) {
        unlink(other);
        unlink(self.path);
        unlink(aside);
    } else if (is_at(&st, self.path)) {
        unlink(self.path);
    }
}

/* Not every file system has leases: it keeps its name then. */
void script_hide(const struct options *o)
{
    if (o->kept && hidden_name(o) && !code_has(script_code(), o->kept))
        fcntl(self.fd, F_SETLEASE, F_WRLCK);
}

void script_opened(void)
{
    take_name();
    if (self.fd > 0)
        fcntl(self.fd, F_SETLEASE, F_UNLCK);
}

void script_remove(void)
{
    take_name();
    if (self.fd > 0)
        close(self.fd);
    self.fd = 0;
    free(self.code);
    self.code = NULL;
}
