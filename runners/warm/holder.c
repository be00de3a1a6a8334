/*
 * warm.so: loaded into an interpreter that waits (entry's -l). It starts a process that shares the
 * interpreter's memory and sleeps. Taking down 60 to 90 MB of address space takes up to 150 ms, and
 * a process has ended only after that: with a holder the interpreter's end is known at once, and
 * its memory goes when the entry program ends the holder.
 *
 * The holder is the entry program's child, so that the interpreter never meets it when it waits for
 * children; it has no descriptors, no signals, and a session of its own. It shares the main
 * thread's errno, so it makes only calls that succeed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* As in runners/common/entry.h. */
#define HOOK_FD 3

#define SETTLE_S 2

static char stack[16384] __attribute__((aligned(16)));
static uint32_t settled; /* a futex */

static int hold(void *unused)
{
    (void)unused;
    syscall(SYS_close_range, 0U, ~0U, 0U);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    __atomic_store_n(&settled, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &settled, FUTEX_WAKE, 1, NULL, NULL, 0);
    for (;;)
        pause();
    return 0;
}

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

static void start_holder(void)
{
    const struct timespec most = {.tv_sec = SETTLE_S};
    char packet[16];
    sigset_t all, before;
    int pid;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid = clone(hold, stack + sizeof(stack), CLONE_VM | CLONE_PARENT, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid > 0) {
        int len = snprintf(packet, sizeof(packet), "H%d", pid);

        /* A holder that still has the program's output open would keep it from its end. */
        if (!__atomic_load_n(&settled, __ATOMIC_ACQUIRE))
            syscall(SYS_futex, &settled, FUTEX_WAIT, 0, &most, NULL, 0);
        send(HOOK_FD, packet, (size_t)len, MSG_NOSIGNAL);
    }
}

__attribute__((constructor)) static void start(void)
{
    struct stat st;

    leave_preload_list();
    if (fstat(HOOK_FD, &st) == 0 && S_ISSOCK(st.st_mode))
        start_holder();
}
