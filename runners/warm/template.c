/*
 * warm.so: loaded into a template (entry's -l and -t), whose children become programs. A program
 * has the template's user; this keeps it out of the template's memory and of its signal handlers. A
 * signal that it sends stays pending, where the entry program sees it. The template's children are
 * as other processes are.
 */
#include "warm.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Set by warm.py while a fork is to be a template, too. */
#define TEMPLATE "SANDBOX_TEMPLATE"

#define COPY_PAGES   4096         /* at most */
#define SPAN_PAGES   8192         /* of memory that is looked at, in one piece */
#define PAGE_PRESENT (1ull << 63) /* in an entry of /proc/PID/pagemap */

#ifndef MADV_POPULATE_WRITE /* Linux 5.14; before, the fork goes on without it */
#define MADV_POPULATE_WRITE 23
#endif

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

/* Copies those pages between two addresses that there are. */
static void copy_span(int pagemap, unsigned long long from, unsigned long long to)
{
    static uint64_t entries[SPAN_PAGES];
    const unsigned long long page = (unsigned long long)sysconf(_SC_PAGESIZE);
    size_t n = (size_t)((to - from) / page);

    if (n > SPAN_PAGES ||
        pread(pagemap, entries, n * sizeof(*entries), (off_t)(from / page * sizeof(*entries))) !=
            (ssize_t)(n * sizeof(*entries)))
        return;
    for (size_t at = 0, end; at < n; at = end + 1) {
        for (end = at; end < n && entries[end] & PAGE_PRESENT; end++)
            ;
        if (end > at)
            madvise((void *)(uintptr_t)(from + at * page), (end - at) * page, MADV_POPULATE_WRITE);
    }
}

/* Whether the process has little memory that it shares with its template. */
static bool shares_little(void)
{
    long resident = 0, files = LONG_MIN;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%*d %ld %ld", &resident, &files) != 2)
        files = LONG_MIN;
    if (f)
        fclose(f);
    return files >= 0 && resident - files <= COPY_PAGES;
}

/* Copies that memory, if it is little: a short program writes to most of it until its end, with a
 * fault for each page. This is done before it comes. */
static void copy_memory(void)
{
    unsigned long long from, to;
    char mode[5];
    FILE *maps = shares_little() ? fopen("/proc/self/maps", "re") : NULL;
    int pagemap = maps ? open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC) : -1;

    while (pagemap >= 0 && fscanf(maps, "%llx-%llx %4s%*[^\n]", &from, &to, mode) == 3) {
        if (strcmp(mode, "rw-p") == 0)
            copy_span(pagemap, from, to);
    }
    if (pagemap >= 0)
        close(pagemap);
    if (maps)
        fclose(maps);
}

/* In every fork of the process: only a template's own children are different from it. */
static void open_child(void)
{
    static unsigned long long loads;
    sigset_t none;

    if (!template || getenv(TEMPLATE))
        return;
    template = false;
    dl_iterate_phdr(count_loads, &loads);
    on_exit(leave, &loads);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* its files in /proc are its own now */
    copy_memory();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* What a template has frozen (gc.freeze) no collection visits. The program's own names, which are
 * to end as ever, are taken out of that again. The caller has Python's lock. */
static void thaw_main(void)
{
    void *(*add_module)(const char *), *(*get_dict)(void *);
    void (*untrack)(void *), (*track)(void *);
    void *things[2];

    *(void **)&add_module = dlsym(RTLD_DEFAULT, "PyImport_AddModule");
    *(void **)&get_dict = dlsym(RTLD_DEFAULT, "PyModule_GetDict");
    *(void **)&untrack = dlsym(RTLD_DEFAULT, "PyObject_GC_UnTrack");
    *(void **)&track = dlsym(RTLD_DEFAULT, "PyObject_GC_Track");
    if (!add_module || !get_dict || !untrack || !track)
        return;
    things[0] = add_module("__main__");
    things[1] = things[0] ? get_dict(things[0]) : NULL;
    for (int i = 0; i < 2 && things[i]; i++) {
        untrack(things[i]);
        track(things[i]);
    }
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
    thaw_main();
    between = vfork();
    if (between == 0 && plain_fork() != 0)
        _exit(0);
    return between;
}

void template_block_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    sigdelset(&all,
              SIGCHLD); /* it is ignored, and would stay pending for the template's own children */
    sigprocmask(SIG_BLOCK, &all, NULL);
}

__attribute__((constructor)) static void start(void)
{
    struct stat st;

    *(void **)&plain_fork = dlsym(RTLD_NEXT, "fork");
    leave_preload_list();
    if (fstat(HOOK_FD, &st) != 0 || !S_ISSOCK(st.st_mode))
        return;
    template = true;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    template_block_signals();
    pthread_atfork(NULL, NULL, open_child);
}
