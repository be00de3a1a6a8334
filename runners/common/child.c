#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

extern char **environ;

/* What the child tells us instead of becoming the program. */
struct exec_failure {
    int err;
    const char *step; /* a literal: the same address in both processes */
};

/* The program's share of a shortage of memory: it is chosen before us. */
#define CHILD_OOM_SCORE "1000"

/*
 * Raising one's own score needs no privilege, but our /proc files belong to root as long as we
 * cannot be dumped. No program runs yet that could use the moment.
 */
static void offer_to_oom_killer(void)
{
    int fd;

    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && !write_all(fd, CHILD_OOM_SCORE, strlen(CHILD_OOM_SCORE)))
        entry_say(errno, "oom_score_adj"); /* the run is no worse for it */
    if (fd >= 0)
        close(fd);
}

static void reset_signals(void)
{
    static const uint64_t default_action[4]; /* the kernel's struct, all zero: SIG_DFL, no flags */
    sigset_t none;

    /* Past the C library, which keeps two signals for itself: those may have come to us ignored,
     * too. */
    for (int sig = 1; sig < _NSIG; sig++)
        syscall(SYS_rt_sigaction, sig, &default_action, NULL, sizeof(uint64_t));
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Marks everything from first on to be closed by exec. */
static void drop_descriptors(unsigned first)
{
    if (syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    for (unsigned fd = first; fd < 1024; fd++)
        fcntl((int)fd, F_SETFD, FD_CLOEXEC);
}

/* What the child becomes, and with which descriptors. */
struct becoming {
    const struct child_plan *plan;
    char **env;
    int out, err;
};

/* In the child: returns only on failure, with errno set and the failing step. */
static const char *become(const struct becoming *b)
{
    const struct child_plan *plan = b->plan;
    int hook = plan->hook_fd < 0 ? -1 : fcntl(plan->hook_fd, F_DUPFD_CLOEXEC, HOOK_FD + 1);

    setsid();
    if (dup2(plan->input_fd, 0) < 0 || dup2(b->out, 1) < 0 || dup2(b->err, 2) < 0 ||
        (plan->hook_fd >= 0 && dup2(hook, HOOK_FD) < 0))
        return "descriptors for";
    if (chdir(plan->cwd) != 0)
        return "entering the working directory of";
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    offer_to_oom_killer();
    reset_signals();
    drop_descriptors(plan->hook_fd >= 0 ? HOOK_FD + 1 : HOOK_FD);
    execvpe(plan->argv[0], plan->argv, b->env);
    return "starting";
}

/* In the child: becomes it, or tells on told why not. */
__attribute__((noreturn)) static void become_or_tell(const struct becoming *b, int told)
{
    /* Out of the way of what gets a fixed number. */
    int tell = fcntl(told, F_DUPFD_CLOEXEC, HOOK_FD + 1);
    struct exec_failure failure = {.step = become(b)};

    failure.err = errno;
    write_all(tell, &failure, sizeof(failure));
    _exit(ENTRY_FAILED);
}

static size_t name_len(const char *entry)
{
    return strcspn(entry, "=");
}

static bool same_name(const char *a, const char *b)
{
    size_t len = name_len(a);

    return len == name_len(b) && memcmp(a, b, len) == 0;
}

/* Our environment with env's entries in the place of those of the same name. */
static char **join_env(char *const *env, size_t n_env)
{
    size_t n = 0;
    char **all;

    while (environ[n])
        n++;
    all = calloc(n + n_env + 1, sizeof(*all));
    if (!all)
        return NULL;
    memcpy(all, environ, n * sizeof(*all));
    for (size_t i = 0; i < n_env; i++) {
        size_t at = 0;

        while (at < n && !same_name(all[at], env[i]))
            at++;
        all[at] = env[i];
        if (at == n)
            n++;
    }
    return all;
}

static int read_end(int fd)
{
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* Waits for exec: nothing in the pipe means that it worked. Says what did not. */
static int await_exec(int fd, const char *program)
{
    struct exec_failure failure;
    ssize_t n;

    do {
        n = read(fd, &failure, sizeof(failure));
    } while (n < 0 && errno == EINTR);
    close(fd);
    if (n == 0)
        return 0;
    if (n == (ssize_t)sizeof(failure))
        entry_say(failure.err, "%s %s", failure.step, program);
    else
        entry_say(0, "starting %s failed", program);
    return -1;
}

int child_start(struct child *c, const struct child_plan *plan)
{
    int out[2], err[2], told[2];
    char **env = join_env(plan->env, plan->n_env);

    if (!env || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 ||
        pipe2(told, O_CLOEXEC) != 0 || (c->pid = fork()) < 0) {
        entry_say(errno, "preparing %s", plan->argv[0]);
        return -1;
    }
    if (c->pid == 0)
        become_or_tell(&(struct becoming){.plan = plan, .env = env, .out = out[1], .err = err[1]},
                       told[1]);
    close(out[1]);
    close(err[1]);
    close(told[1]);
    free(env);
    c->out_fd = read_end(out[0]);
    c->err_fd = read_end(err[0]);
    return await_exec(told[0], plan->argv[0]);
}
