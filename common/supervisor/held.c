#include "config.h"

#include "common/supervisor/held.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK      512
#define HELD_MAX   200000 /* descriptors and mappings that are noted */
#define FDINFO_MAX 1024

struct file {
    ino_t ino;
    uint64_t bytes;
};

struct search {
    dev_t dev; /* of the sandbox */
    struct file *items;
    size_t n, room;
    size_t in_flight;
};

static void note(struct search *h, const struct stat *st)
{
    if (!S_ISREG(st->st_mode) || st->st_nlink > 0 || st->st_dev != h->dev || h->n == HELD_MAX)
        return;
    if (h->n == h->room) {
        h->room = h->room ? 2 * h->room : 64;
        h->items = mem_resize(h->items, h->room, sizeof *h->items);
    }
    h->items[h->n++] = (struct file){st->st_ino, (uint64_t)st->st_blocks * BLOCK};
}

/* What a socket's queue holds, as the kernel tells since Linux 5.6: "scm_fds: N". */
static size_t read_in_flight(int task_fd, const char *fd_name)
{
    static const char key[] = "\nscm_fds:";
    char path[280], text[FDINFO_MAX];
    uint64_t n = 0;

    snprintf(path, sizeof path, "fdinfo/%s", fd_name);
    AUTO_FD int fd = openat(task_fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[len < 0 ? 0 : len] = '\0';
    const char *at = strstr(text, key);
    if (at)
        parse_leading_u64(at + strlen(key) + strspn(at + strlen(key), " \t"), &n);
    return (size_t)n;
}

static DIR *open_folder(int at_fd, const char *name)
{
    AUTO_FD int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir)
        (void)TAKE_FD(fd);
    return dir;
}

/* Every entry leads to a file: of fd to an open one, of map_files to a mapped one. */
static void look_at_files(struct search *h, int at_fd, const char *name)
{
    AUTO_DIR DIR *dir = open_folder(at_fd, name);
    const struct dirent *entry;
    struct stat st;

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &st, 0) < 0)
            continue;
        note(h, &st);
        if (S_ISSOCK(st.st_mode))
            h->in_flight += read_in_flight(at_fd, entry->d_name);
    }
}

/* Threads may have descriptors of their own. A process may have unmapped the file that it runs. */
static void look_at_process(struct search *h, int proc_fd)
{
    AUTO_DIR DIR *tasks = open_folder(proc_fd, "task");
    const struct dirent *task;
    struct stat st;

    look_at_files(h, proc_fd, "map_files");
    if (fstatat(proc_fd, "exe", &st, 0) == 0)
        note(h, &st);
    while (tasks && (task = readdir(tasks))) {
        if (!isdigit((unsigned char)task->d_name[0]))
            continue;
        AUTO_FD int fd = openat(dirfd(tasks), task->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            look_at_files(h, fd, "fd");
    }
}

static int compare(const void *left, const void *right)
{
    const struct file *a = left, *b = right;

    return (a->ino > b->ino) - (a->ino < b->ino);
}

static struct usage sum(struct search *h)
{
    struct usage u = {0};

    if (h->n > 0)
        qsort(h->items, h->n, sizeof *h->items, compare);
    for (size_t i = 0; i < h->n; i++)
        if (i == 0 || h->items[i].ino != h->items[i - 1].ino) {
            u.bytes += h->items[i].bytes;
            u.files++;
        }
    return u;
}

struct held held_measure_at(const char *proc_path, const struct sandbox *sb)
{
    AUTO_DIR DIR *proc = opendir(proc_path);
    const struct dirent *entry;
    struct search h = {0};
    struct held out = {0};
    struct stat own, st;

    if (!proc || fstat(sb->fd, &own) < 0)
        return out;
    h.dev = own.st_dev;
    while ((entry = readdir(proc))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        AUTO_FD int fd = openat(dirfd(proc), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstatat(fd, "root/data", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            st.st_ino != own.st_ino || st.st_dev != own.st_dev)
            continue;
        out.seen++;
        look_at_process(&h, fd);
    }
    out.files = sum(&h);
    out.in_flight = h.in_flight;
    free(h.items);
    return out;
}

struct held held_measure(const struct sandbox *sb)
{
    return held_measure_at("/proc", sb);
}
