#include "config.h"

#include "common/base/auto.h"
#include "common/records/run_lock.h"
#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define RUNS ".runs"

/* Run ids are ours, but the label that carries one back comes from the engine: never a path. */
static bool id_ok(const char *run_id)
{
    size_t len = strspn(run_id, "0123456789abcdef");
    return len > 0 && len <= 64 && run_id[len] == '\0';
}

static void lock_path(char out[80], const char *run_id)
{
    snprintf(out, 80, RUNS "/%s", run_id);
}

/* The file is ours alone, but whoever looks for orphans may hold its lock for a moment and take it
 * for a dead one's: false then, and the file is gone. */
static bool lock_new(int fd)
{
    struct stat st;

    while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
        ;
    return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

int run_lock_take(int root_fd, const char *run_id, struct err *e)
{
    char path[80];
    lock_path(path, run_id);
    for (int tries = 0; tries < 10; tries++) {
        AUTO_FD int fd = openat(root_fd, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                                0600);
        if (fd < 0)
            return err_errno(e, "cannot create %s under SANDBOX_ROOT", path);
        if (lock_new(fd))
            return TAKE_FD(fd);
    }
    return err_set(e, ERR_IO, "cannot lock %s under SANDBOX_ROOT", path);
}

void run_lock_remove(int root_fd, const char *run_id)
{
    char path[80];
    lock_path(path, run_id);
    unlinkat(root_fd, path, 0);
}

bool run_lock_reap(int root_fd, const char *run_id)
{
    if (!id_ok(run_id))
        return false;
    char path[80];
    lock_path(path, run_id);
    AUTO_FD int fd = openat(root_fd, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno != ENOENT; /* unreadable is not dead: leave it to its deadline */
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return true;
    run_lock_remove(root_fd, run_id);
    return false;
}

void run_lock_sweep(int root_fd)
{
    AUTO_DIR DIR *dir = beneath_open_dir(root_fd, RUNS);

    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (id_ok(entry->d_name))
            run_lock_reap(root_fd, entry->d_name);
}
