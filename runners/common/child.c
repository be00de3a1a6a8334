#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* The pipe for an exec failure, behind the program's own descriptors. */
#define FAILURE_FD (HOOK_FD + 1)
/* A child that is stopped by another process before exec does not stop us. */
#define EXEC_MS 10000

enum step { STEP_DESCRIPTORS, STEP_DIRECTORY, STEP_EXEC, STEP_N };

static const char *const step_names[STEP_N] = {
    [STEP_DESCRIPTORS] = "descriptors for",
    [STEP_DIRECTORY] = "entering the working directory of",
    [STEP_EXEC] = "starting",
};

/* What the child sends instead of becoming the program. Other processes of the container may have
 * changed it. */
struct exec_failure {
    int err;
    unsigned step;
};

/* The program's share of a shortage of memory: it is chosen before us, and before a template, which
 * has less to give. */
#define CHILD_OOM_SCORE    "1000"
#define TEMPLATE_OOM_SCORE "500"

/*
 * Raising one's own score needs no privilege, but our /proc files belong to root as long as we
 * cannot be dumped. A process that attaches now finds nothing but what the program gets, too.
 */
static void offer_to_oom_killer(const char *score)
{
    int fd;

    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* the run is no worse for it */
    write_all(fd, score, strlen(score));
    close(fd);
}

static void reset_signals(void)
{
    static const uint64_t default_action[4]; /* the kernel's struct, all zero: SIG_DFL, no flags */
    sigset_t none;

    /* Past the C library, which keeps two signals for itself: those may be ignored, too. */
    for (int sig = 1; sig < _NSIG; sig++)
        syscall(SYS_rt_sigaction, sig, &default_action, NULL, sizeof(uint64_t));
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* What the child becomes, and with which descriptors. */
struct becoming {
    const struct child_plan *plan;
    char **env;
    int out, err;
    int failure_fd; /* in the end FAILURE_FD */
};

/* Leaves the program's descriptors and failure_fd. No source has one of the fixed numbers, unless
 * it belongs there. */
static bool take_descriptors(struct becoming *b)
{
    const struct child_plan *plan = b->plan;
    int hook = plan->hook_fd < 0 ? -1 : fcntl(plan->hook_fd, F_DUPFD_CLOEXEC, FAILURE_FD + 1);

    if (dup2(plan->input_fd, 0) < 0 || dup2(b->out, 1) < 0 || dup2(b->err, 2) < 0 ||
        (plan->hook_fd >= 0 && dup2(hook, HOOK_FD) < 0) ||
        dup3(b->failure_fd, FAILURE_FD, O_CLOEXEC) < 0)
        return false;
    b->failure_fd = FAILURE_FD;
    if (plan->hook_fd < 0)
        close(HOOK_FD);
    if (syscall(SYS_close_range, FAILURE_FD + 1, ~0U, 0) != 0)
        for (int fd = FAILURE_FD + 1; fd < 1024; fd++)
            close(fd);
    return true;
}

/* In the child: returns only on failure, with errno set, the failing step. */
static enum step become(struct becoming *b)
{
    const struct child_plan *plan = b->plan;

    setsid();
    if (!take_descriptors(b))
        return STEP_DESCRIPTORS;
    if (chdir(plan->cwd) != 0)
        return STEP_DIRECTORY;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    offer_to_oom_killer(plan->template ? TEMPLATE_OOM_SCORE : CHILD_OOM_SCORE);
    reset_signals();
    execvpe(plan->argv[0], plan->argv, b->env);
    if (errno == ENOENT && strcmp(plan->argv[0], "bash") == 0) { /* not every image has it */
        *(const char **)(uintptr_t)plan->argv = "sh";
        execvpe("sh", plan->argv, b->env);
    }
    return STEP_EXEC;
}

/* In the child: becomes it, or sends why not. */
__attribute__((noreturn)) static void become_or_fail(struct becoming *b)
{
    struct exec_failure failure;

    b->failure_fd = fcntl(b->failure_fd, F_DUPFD_CLOEXEC, FAILURE_FD + 1);
    failure.step = become(b);
    failure.err = errno;
    write_all(b->failure_fd, &failure, sizeof(failure));
    _exit(ENTRY_FAILED);
}

char **argv_new(char *const *command, char *option, char *const *args, size_t n)
{
    size_t len = 0, at = 0;
    char **argv;

    while (command[len])
        len++;
    argv = calloc(len + n + 2, sizeof(*argv));
    if (!argv)
        return NULL;
    argv[at++] = command[0];
    if (option)
        argv[at++] = option;
    memcpy(argv + at, command + 1, (len - 1) * sizeof(*argv));
    if (n > 0)
        memcpy(argv + at + len - 1, args, n * sizeof(*argv));
    return argv;
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
        size_t at = 0, name = strcspn(env[i], "=");

        while (at < n && (strcspn(all[at], "=") != name || memcmp(all[at], env[i], name) != 0))
            at++;
        all[at] = env[i];
        if (at == n)
            n++;
    }
    return all;
}

/* Waits for exec: nothing in the pipe means that it worked. Else why says what did not. */
static int await_exec(int fd, const char *program, char *why)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct exec_failure failure;
    ssize_t n = -1;

    if (poll(&p, 1, EXEC_MS) > 0)
        n = read(fd, &failure, sizeof(failure));
    close(fd);
    if (n == 0)
        return 0;
    if (n == (ssize_t)sizeof(failure) && failure.step < STEP_N)
        snprintf(why, CHILD_WHY_MAX, "%s %.100s: %s", step_names[failure.step], program,
                 strerror(failure.err));
    else
        snprintf(why, CHILD_WHY_MAX, "starting %.100s failed", program);
    return -1;
}

static void close_pair(const int pair[2])
{
    if (pair[0] < 0)
        return;
    close(pair[0]);
    close(pair[1]);
}

/* The child's ends are its own: ours are read from. */
static void keep_ours(struct child *c, const int out[2], const int err[2])
{
    close(out[1]);
    close(err[1]);
    c->out_fd = out[0];
    c->err_fd = err[0];
    fcntl(c->out_fd, F_SETFL, O_NONBLOCK);
    fcntl(c->err_fd, F_SETFL, O_NONBLOCK);
}

int child_start(struct child *c, const struct child_plan *plan, char *why)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, failed[2] = {-1, -1};
    char **env = join_env(plan->env, plan->n_env);

    c->pid = -1;
    if (!env || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 ||
        pipe2(failed, O_CLOEXEC) != 0 || (c->pid = fork()) < 0) {
        snprintf(why, CHILD_WHY_MAX, "preparing %.100s: %s", plan->argv[0], strerror(errno));
        close_pair(out);
        close_pair(err);
        close_pair(failed);
        free(env);
        return -1;
    }
    if (c->pid == 0)
        become_or_fail(&(struct becoming){
            .plan = plan, .env = env, .out = out[1], .err = err[1], .failure_fd = failed[1]});
    keep_ours(c, out, err);
    close(failed[1]);
    free(env);
    if (await_exec(failed[0], plan->argv[0], why) == 0)
        return 0;
    kill(c->pid, SIGKILL);
    close(c->out_fd);
    close(c->err_fd);
    return -1;
}

/* ---- interpreters that wait ---- */

/* LD_PRELOAD with the object, to be freed; what the image preloads stays, behind it. NULL: none. */
static char *preload_of(const char *object)
{
    const char *old = getenv("LD_PRELOAD");
    char *entry = NULL;

    if (object && asprintf(&entry, "LD_PRELOAD=%s%s%s", object, old ? ":" : "", old ? old : "") < 0)
        return NULL;
    return entry;
}

int child_prestart(struct child *c, const struct options *o, int input_fd)
{
    char *preload = preload_of(o->object), *env[2];
    char **argv = argv_new(o->command, o->option, NULL, 0);
    struct child_plan plan = {
        .argv = argv, .env = env, .cwd = o->cwd, .input_fd = input_fd, .template = o->template};
    char why[CHILD_WHY_MAX] = "no memory, or descriptors, for an interpreter";
    int pair[2] = {-1, -1};

    if (preload)
        env[plan.n_env++] = preload;
    if (o->extra)
        env[plan.n_env++] = o->extra;
    if (argv && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
        plan.hook_fd = pair[1];
        if (child_start(c, &plan, why) != 0) {
            close(pair[0]);
            pair[0] = -1;
        }
        close(pair[1]);
    }
    if (pair[0] < 0) {
        entry_error(0, "%s", why);
        *c = (struct child){0};
    }
    free(argv);
    free(preload);
    return pair[0];
}

/* Sends the letter and the descriptors. */
static bool ask_fork(int template_fd, char letter, const int (*fds)[FORK_FDS])
{
    union {
        struct cmsghdr head; /* for its alignment */
        char room[CMSG_SPACE(sizeof(*fds))];
    } control = {0};
    struct msghdr message = {.msg_iov = &(struct iovec){&letter, 1},
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(*fds));
    memcpy(CMSG_DATA(rights), fds, sizeof(*fds));
    return sendmsg(template_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

int child_fork(struct child *c, int template_fd, char letter, int input_fd)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, hook[2] = {-1, -1};

    *c = (struct child){0};
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, hook) != 0 ||
        !ask_fork(template_fd, letter, &(int[FORK_FDS]){input_fd, out[1], err[1], hook[1]})) {
        close_pair(out);
        close_pair(err);
        close_pair(hook);
        return -1;
    }
    keep_ours(c, out, err);
    close(hook[1]);
    return hook[0];
}

/* ---- those that are not needed any more ---- */

/* Killed and not reaped yet: interpreters that got no program, a template that loads. */
static pid_t dropped[8];

void child_drop(struct child *c, bool ended)
{
    if (c->out_fd > 0) {
        close(c->out_fd);
        close(c->err_fd);
    }
    if (c->pid > 0 && !ended) {
        kill(c->pid, SIGKILL);
        for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
            if (dropped[i] == 0) {
                dropped[i] = c->pid;
                break;
            }
        }
    }
    *c = (struct child){0};
}

bool child_was_dropped(pid_t pid)
{
    for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
        if (dropped[i] == pid) {
            dropped[i] = 0;
            return true;
        }
    }
    return false;
}
