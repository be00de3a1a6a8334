#include "config.h"

#include "common/base/privsep.h"

#include "common/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

/* ---- from outside ---- */

__attribute__((noreturn)) static void child_exec(const char *command, const int *fds, size_t n)
{
    char *argv[] = {(char *)(uintptr_t) "sandcgi", (char *)(uintptr_t)command, NULL};
    char *envp[] = {NULL};

    /* Our processes ignore SIGPIPE; a program starts with its default. */
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    if (privsep_keep_fds(fds, n) == 0)
        execve("/proc/self/exe", argv, envp);
    _exit(127);
}

pid_t privsep_start(const char *command, const int *fds, size_t n, struct err *e)
{
    pid_t pid = fork();

    if (pid == 0)
        child_exec(command, fds, n);
    return pid < 0 ? err_errno(e, "fork") : pid;
}

void privsep_end(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* ---- from inside ---- */

/* Copies to high numbers first: dup2 may replace a descriptor of fds. */
int privsep_keep_fds(const int *fds, size_t n)
{
    int high[PRIVSEP_FDS_MAX];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (n > ARRAY_LEN(high))
        return -1;
    for (size_t i = 0; i < n; i++)
        if ((high[i] = fcntl(fds[i] < 0 ? null : fds[i], F_DUPFD_CLOEXEC, (int)n)) < 0)
            return -1;
    for (size_t i = 0; i < n; i++)
        if (dup2(high[i], (int)i) < 0)
            return -1;
    return close_range((unsigned)n, ~0u, 0);
}

int privsep_drop_rights(void)
{
    static const struct privsep_limit no_dump = {RLIMIT_CORE, 0};

    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) < 0))
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        privsep_bound(&no_dump, 1) < 0)
        return -1;
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* last: another account forgets it */
}

static bool is_left_out(const struct privsep_limit *limit)
{
#ifdef WITH_SANITIZER
    return limit->resource == RLIMIT_AS;
#else
    (void)limit;
    return false;
#endif
}

int privsep_bound(const struct privsep_limit *limits, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct rlimit limit = {.rlim_cur = limits[i].max, .rlim_max = limits[i].max};
        if (!is_left_out(&limits[i]) && setrlimit(limits[i].resource, &limit) < 0)
            return -1;
    }
    return 0;
}

void privsep_die_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(0);
}
