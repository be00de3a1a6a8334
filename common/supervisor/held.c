#include "config.h"

#include "common/supervisor/held.h"

#include "common/base/mem.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define BLOCK    512
#define HELD_MAX 200000 /* descriptors and mappings that are noted */

struct file {
    ino_t ino;
    uint64_t bytes;
};

struct held {
    dev_t dev; /* of the sandbox */
    struct file *items;
    size_t n, room;
};

static void note(struct held *h, const struct stat *st)
{
    if (!S_ISREG(st->st_mode) || st->st_nlink > 0 || st->st_dev != h->dev || h->n == HELD_MAX)
        return;
    if (h->n == h->room) {
        h->room = h->room ? 2 * h->room : 64;
        h->items = mem_resize(h->items, h->room, sizeof *h->items);
    }
    h->items[h->n++] = (struct file){st->st_ino, (uint64_t)st->st_blocks * BLOCK};
}

/* Every entry leads to a file: of fd to an open one, of map_files to a mapped one. */
static void look_at_files(struct held *h, int at_fd, const char *name)
{
    int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_DIR DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    struct stat st;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && fstatat(fd, entry->d_name, &st, 0) == 0)
            note(h, &st);
}

/* Threads may have descriptors of their own. */
static void look_at_process(struct held *h, int proc_fd)
{
    int fd = openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_DIR DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *task;
    char name[280];

    look_at_files(h, proc_fd, "map_files");
    while (tasks && (task = readdir(tasks)))
        if (isdigit((unsigned char)task->d_name[0])) {
            snprintf(name, sizeof name, "%s/fd", task->d_name);
            look_at_files(h, fd, name);
        }
}

static int compare(const void *left, const void *right)
{
    const struct file *a = left, *b = right;

    return (a->ino > b->ino) - (a->ino < b->ino);
}

static struct usage sum(struct held *h)
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

struct usage held_measure(const struct sandbox *sb, size_t *seen)
{
    AUTO_DIR DIR *proc = opendir("/proc");
    const struct dirent *entry;
    struct stat own, st;
    struct held h = {0};

    *seen = 0;
    if (!proc || fstat(sb->fd, &own) < 0)
        return (struct usage){0};
    h.dev = own.st_dev;
    while ((entry = readdir(proc))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        AUTO_FD int fd = openat(dirfd(proc), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstatat(fd, "root/data", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            st.st_ino != own.st_ino || st.st_dev != own.st_dev)
            continue;
        ++*seen;
        look_at_process(&h, fd);
    }
    struct usage u = sum(&h);
    free(h.items);
    return u;
}
