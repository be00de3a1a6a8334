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

/* Marks everything above 2 to be closed by exec. */
static void drop_descriptors(void)
{
    if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    for (int fd = 3; fd < 1024; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* In the child: returns only on failure, with errno set and the failing step. */
static const char *become(char *const *argv, char **env, int in, int out, int err, const char *cwd)
{
    setsid();
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        return "descriptors for";
    if (chdir(cwd) != 0)
        return "entering the working directory of";
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    offer_to_oom_killer();
    reset_signals();
    drop_descriptors();
    execvpe(argv[0], argv, env);
    return "starting";
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

int child_start(struct child *c, char *const *argv, char *const *env, size_t n_env, int input_fd,
                const char *cwd)
{
    int out[2], err[2], told[2];
    int in = input_fd >= 0 ? input_fd : open("/dev/null", O_RDONLY | O_CLOEXEC);
    char **all = join_env(env, n_env);

    if (in < 0 || !all || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 ||
        pipe2(told, O_CLOEXEC) != 0 || (c->pid = fork()) < 0) {
        entry_say(errno, "preparing %s", argv[0]);
        return -1;
    }
    if (c->pid == 0) {
        struct exec_failure failure = {.step = become(argv, all, in, out[1], err[1], cwd)};

        failure.err = errno;
        write_all(told[1], &failure, sizeof(failure));
        _exit(ENTRY_FAILED);
    }
    close(out[1]);
    close(err[1]);
    close(told[1]);
    if (in != input_fd)
        close(in);
    free(all);
    c->out_fd = read_end(out[0]);
    c->err_fd = read_end(err[0]);
    return await_exec(told[0], argv[0]);
}

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

void child_bury_all(int64_t until_ms)
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
