#include "runners/common/entry.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

void child_adopt_orphans(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* Where we are not PID 1 (an engine's own init in front of us, tests), -1 would reach strangers:
 * only our children, whose own children then become ours (child_adopt_orphans) and are met in the
 * next round of the caller's reaping. */
static void kill_children(void)
{
    FILE *f = fopen("/proc/thread-self/children", "re");
    int pid;

    if (!f)
        return;
    while (fscanf(f, "%d", &pid) == 1)
        kill(pid, SIGKILL);
    fclose(f);
}

void child_kill_all(void)
{
    if (getpid() == 1)
        kill(-1, SIGKILL);
    else
        kill_children();
}

/* The number that a name in /proc stands for; 0 = none. */
static pid_t pid_of(const char *name)
{
    pid_t pid = 0;

    for (; *name; name++) {
        if (*name < '0' || *name > '9')
            return 0;
        pid = pid * 10 + (*name - '0');
    }
    return pid;
}

/* As PID 1: /proc shows whom we have to do with. */
static bool others_in_container(pid_t besides)
{
    const struct dirent *d;
    bool found = false;
    DIR *dir = opendir("/proc");

    if (!dir)
        return true;
    while (!found && (d = readdir(dir))) {
        pid_t pid = pid_of(d->d_name);

        found = pid > 1 && pid != besides;
    }
    closedir(dir);
    return found;
}

static bool other_children(pid_t besides)
{
    FILE *f = fopen("/proc/thread-self/children", "re");
    bool found = false;
    pid_t pid;

    if (!f)
        return true;
    while (!found && fscanf(f, "%d", &pid) == 1)
        found = pid != besides;
    fclose(f);
    return found;
}

bool child_others_left(pid_t besides)
{
    return getpid() == 1 ? others_in_container(besides) : other_children(besides);
}

void child_reap_all(int64_t until_ms)
{
    struct timespec pause = {.tv_nsec = 1000000};

    child_kill_all();
    if (getpid() == 1)
        return; /* whoever is left dies with us */
    do {
        pid_t pid;

        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (pid < 0)
            return;
        nanosleep(&pause, NULL);
        child_kill_all();
    } while (clock_ms() < until_ms);
}
