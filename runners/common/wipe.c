/* What a run leaves outside of its working directory is removed. A directory is emptied only if it
 * was empty when the container began, so nothing is removed that no run has made. */
#include "runners/common/entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The places besides the working directory where programs can leave something. Podman mounts /run
 * and /var/tmp although the root is read-only. */
static struct place {
    const char *path;
    bool open; /* it exists, and programs can write to it */
    struct stat was;
    struct statvfs space;
} places[] = {{.path = "/tmp"},
              {.path = "/dev/shm"},
              {.path = "/dev/mqueue"},
              {.path = "/run"},
              {.path = "/var/tmp"}};

#define N_PLACES (sizeof(places) / sizeof(places[0]))

/* Why this container cannot be wiped; "" = it can. */
static char unfit[CHILD_WHY_MAX];

/* ---- System V objects ---- */

/* Room for what the calls below tell. */
union ipc_info {
    struct shmid_ds shm;
    struct semid_ds sem;
    struct msqid_ds msg;
    struct shminfo shm_most;
    struct seminfo sem_most;
    struct msginfo msg_most;
};

static int shm_do(int id, int what, union ipc_info *info)
{
    return shmctl(id, what, &info->shm);
}

static int sem_do(int id, int what, union ipc_info *info)
{
    return semctl(id, 0, what, info);
}

static int msg_do(int id, int what, union ipc_info *info)
{
    return msgctl(id, what, &info->msg);
}

/* Not /proc/sysvipc, which some kernels do not have; STAT_ANY tells of objects of mode 0, too. */
static const struct {
    int (*ask)(int id, int what, union ipc_info *info);
    int last, stat; /* the highest index; the id of an index */
} kinds[] = {{shm_do, SHM_INFO, SHM_STAT_ANY},
             {sem_do, SEM_INFO, SEM_STAT_ANY},
             {msg_do, MSG_INFO, MSG_STAT_ANY}};

/* How many objects there are, or were before they were removed. */
static int ipc_count(bool removes)
{
    union ipc_info info;
    int n = 0;

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        int last = kinds[k].ask(0, kinds[k].last, &info);

        for (int i = 0; i <= last; i++) {
            int id = kinds[k].ask(i, kinds[k].stat, &info);

            n += id >= 0;
            if (id >= 0 && removes)
                kinds[k].ask(id, IPC_RMID, &info);
        }
    }
    return n;
}

/* ---- directories ---- */

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool is_empty(const char *path)
{
    const struct dirent *d;
    DIR *dir = opendir(path);
    bool found = !dir;

    while (!found && (d = readdir(dir)))
        found = !is_dots(d->d_name);
    if (dir)
        closedir(dir);
    return !found;
}

/* Moves a directory up under a name that is free. */
static bool move_up(int from, const char *name, int top)
{
    static unsigned number;
    char free_name[16];

    do {
        snprintf(free_name, sizeof(free_name), "%u", number++);
        if (renameat2(from, name, top, free_name, RENAME_NOREPLACE) == 0)
            return true;
    } while (errno == EEXIST);
    return false;
}

static bool sweep_below(int top, const char *name, bool *found, int64_t until_ms);

/*
 * Removes what dir holds; no link is followed. Directories that are not empty are moved up to top,
 * whose own are swept at once: so depth costs neither memory nor descriptors. No process is left
 * that could exchange one name for another meanwhile.
 */
static bool sweep(DIR *dir, int top, bool *found, int64_t until_ms)
{
    int from = dirfd(dir);
    const struct dirent *d;

    while ((d = readdir(dir))) {
        if (is_dots(d->d_name))
            continue;
        *found = true;
        if (clock_ms() >= until_ms)
            return false;
        if (unlinkat(from, d->d_name, 0) == 0 || unlinkat(from, d->d_name, AT_REMOVEDIR) == 0)
            continue;
        if ((errno != ENOTEMPTY && errno != EEXIST) || fchmodat(from, d->d_name, 0700, 0) != 0)
            return false;
        if (from == top ? !sweep_below(top, d->d_name, found, until_ms)
                        : !move_up(from, d->d_name, top))
            return false;
    }
    return true;
}

static bool sweep_below(int top, const char *name, bool *found, int64_t until_ms)
{
    int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    bool done = dir && sweep(dir, top, found, until_ms);

    if (dir)
        closedir(dir);
    return done && unlinkat(top, name, AT_REMOVEDIR) == 0;
}

/* What was moved up while the directory was read may not have been met: it is read until nothing is
 * found. */
static bool make_empty(const char *path, int64_t until_ms)
{
    bool found = true, done = true;
    DIR *dir = opendir(path);

    while (dir && done && found) {
        found = false;
        rewinddir(dir);
        done = sweep(dir, dirfd(dir), &found, until_ms);
    }
    if (dir)
        closedir(dir);
    return dir && done;
}

static bool as_it_was(const struct place *p)
{
    struct stat now;
    struct statvfs space;

    return stat(p->path, &now) == 0 && statvfs(p->path, &space) == 0 &&
           now.st_mode == p->was.st_mode && now.st_uid == p->was.st_uid &&
           now.st_gid == p->was.st_gid && now.st_dev == p->was.st_dev &&
           space.f_bfree == p->space.f_bfree && space.f_ffree == p->space.f_ffree;
}

/* ---- the container's shape ---- */

static bool is_place(const char *path)
{
    for (size_t i = 0; i < N_PLACES; i++) {
        if (strcmp(path, places[i].path) == 0)
            return true;
    }
    return false;
}

/* A file system, not one of ours, in which a program could leave something. False: there is none.
 */
static bool find_writable(const char *cwd, char *path, size_t size)
{
    FILE *f = setmntent("/proc/self/mounts", "re");
    const struct mntent *m;
    bool found = !f;
    struct stat st;

    snprintf(path, size, "an unknown file system");
    while (!found && (m = getmntent(f))) {
        /* What is in /proc belongs to processes; a device keeps nothing. */
        if (hasmntopt(m, "ro") || strcmp(m->mnt_type, "proc") == 0 ||
            strcmp(m->mnt_dir, cwd) == 0 || is_place(m->mnt_dir) ||
            (stat(m->mnt_dir, &st) == 0 && S_ISCHR(st.st_mode)))
            continue;
        found = strcmp(m->mnt_dir, "/") == 0 || access(m->mnt_dir, W_OK) == 0;
        if (found)
            snprintf(path, size, "%s", m->mnt_dir);
    }
    if (f)
        endmntent(f);
    return found;
}

void wipe_note(const char *cwd)
{
    char path[CHILD_WHY_MAX / 2];

    if (getpid() != 1)
        snprintf(unfit, sizeof(unfit), "the entry program is not PID 1");
    else if (find_writable(cwd, path, sizeof(path)))
        snprintf(unfit, sizeof(unfit), "programs can write to %s", path);
    else if (ipc_count(false) > 0)
        snprintf(unfit, sizeof(unfit), "there were System V objects at the start");
    for (size_t i = 0; i < N_PLACES; i++) {
        struct place *p = &places[i];
        const bool writable = access(p->path, W_OK) == 0 && stat(p->path, &p->was) == 0 &&
                              statvfs(p->path, &p->space) == 0;

        p->open = writable && is_empty(p->path);
        if (writable && !p->open && !unfit[0])
            snprintf(unfit, sizeof(unfit), "%s was not empty at the start", p->path);
    }
}

void wipe_look(char text[LEFT_MAX])
{
    struct left left = {.text = text};

    for (size_t i = 0; i < N_PLACES; i++) {
        if (places[i].open)
            left_in(places[i].path, &left);
    }
    left_end(&left);
}

bool wipe(int64_t until_ms, char *why)
{
    snprintf(why, CHILD_WHY_MAX, "%s", unfit);
    for (size_t i = 0; !why[0] && i < N_PLACES; i++) {
        if (!places[i].open)
            continue;
        if (!make_empty(places[i].path, until_ms))
            snprintf(why, CHILD_WHY_MAX, "%s cannot be emptied", places[i].path);
        else if (!as_it_was(&places[i]))
            snprintf(why, CHILD_WHY_MAX, "%s is not as it was", places[i].path);
    }
    if (!why[0] && ipc_count(true) > 0 && ipc_count(false) > 0)
        snprintf(why, CHILD_WHY_MAX, "System V objects cannot be removed");
    return !why[0];
}
