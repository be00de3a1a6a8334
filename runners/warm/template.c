/*
 * warm.so: loaded into a template (entry's -l and -t), whose children become programs. A program
 * has the template's user; this keeps it out of the template's memory and of its signal handlers. A
 * signal that it sends stays pending, where the entry program sees it. The template's children are
 * as other processes are.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* As in runners/common/entry.h. */
#define HOOK_FD 3

static bool template;
static pid_t (*plain_fork)(void); /* the C library's */

/* Our file goes from the list; what the image had behind it stays. */
static void leave_preload_list(void)
{
    const char *list = getenv("LD_PRELOAD");
    const char *rest = list ? strchr(list, ':') : NULL;
    char *copy = rest ? strdup(rest + 1) : NULL;

    if (copy)
        setenv("LD_PRELOAD", copy, 1);
    else
        unsetenv("LD_PRELOAD");
    free(copy);
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
    (void)size;
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1;
}

/* Behind what the program has registered: what the template has loaded does nothing at its end that
 * could be seen, but writes to memory that is then copied. */
static void leave(int status, void *before)
{
    unsigned long long loads = 0;

    dl_iterate_phdr(count_loads, &loads);
    if (loads != *(unsigned long long *)before)
        return; /* of what the program has loaded this is not known */
    fflush(NULL);
    _exit(status);
}

/* In every fork of the process: only a template's own children are different from it. */
static void open_child(void)
{
    static unsigned long long loads;
    sigset_t none;

    if (!template)
        return;
    template = false;
    dl_iterate_phdr(count_loads, &loads);
    on_exit(leave, &loads);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * A template forks grandchildren, which become the entry program's when the process between ends.
 * That one has the template's memory, as the template waits for it: copying it costs as much as a
 * short program does. The pid is that of the process between, which has ended.
 */
pid_t fork(void)
{
    pid_t between;

    if (!template)
        return plain_fork();
    between = vfork();
    if (between == 0 && plain_fork() != 0)
        _exit(0);
    return between;
}

__attribute__((constructor)) static void start(void)
{
    sigset_t all;
    struct stat st;

    *(void **)&plain_fork = dlsym(RTLD_NEXT, "fork");
    leave_preload_list();
    if (fstat(HOOK_FD, &st) != 0 || !S_ISSOCK(st.st_mode))
        return;
    template = true;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    sigfillset(&all);
    sigdelset(&all,
              SIGCHLD); /* it is ignored, and would stay pending for the template's own children */
    sigprocmask(SIG_BLOCK, &all, NULL);
    pthread_atfork(NULL, NULL, open_child);
}
