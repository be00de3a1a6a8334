#include "config.h"

#include "common/index/proxy.h"

#include "common/base/auto.h"
#include "common/base/cage.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct proxy {
    int listen_fd, signal_fd;
    const struct index_rules *rules;
    struct index_budget *budget;
    size_t tunnels;
};

static bool drop_rights(int listen_fd)
{
    static const struct cage_limit no_files = {RLIMIT_FSIZE, 0};
    const int fds[] = {listen_fd, STDERR_FILENO, STDERR_FILENO};

    return cage_keep_fds(fds, ARRAY_LEN(fds)) == 0 && cage_drop_rights() == 0 &&
           cage_bound(&no_files, 1) == 0;
}

static void reap(struct proxy *p)
{
    struct signalfd_siginfo info;

    while (read(p->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        ;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        p->tunnels--;
}

static void open_tunnel(struct proxy *p)
{
    pid_t self = getpid();
    AUTO_FD int fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    pid_t pid = fd < 0 ? -1 : fork();

    if (pid == 0) {
        cage_die_with(self);
        close(p->listen_fd);
        index_tunnel_serve(fd, p->rules, p->budget);
        _exit(0);
    }
    if (pid > 0)
        p->tunnels++;
}

__attribute__((noreturn)) static void serve(struct proxy *p)
{
    for (;;) {
        struct pollfd fds[] = {
            {.fd = p->signal_fd, .events = POLLIN},
            {.fd = p->tunnels < INDEX_TUNNELS_MAX ? p->listen_fd : -1, .events = POLLIN}};

        if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
            _exit(1);
        if (fds[0].revents)
            reap(p);
        if (fds[1].revents)
            open_tunnel(p);
    }
}

/* Signals act as usual but for the end of children, which is an event. */
static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    sigprocmask(SIG_SETMASK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

__attribute__((noreturn)) static void be_proxy(int listen_fd, const struct index_rules *rules,
                                               pid_t parent)
{
    struct proxy p = {.listen_fd = STDIN_FILENO, .rules = rules};

    if (!drop_rights(listen_fd))
        _exit(1);
    cage_die_with(parent);
    p.signal_fd = open_signals();
    p.budget = mmap(NULL, sizeof *p.budget, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                    0);
    if (p.signal_fd < 0 || p.budget == MAP_FAILED)
        _exit(1);
    *p.budget = (struct index_budget){.down = INDEX_DOWN_MAX, .up = INDEX_UP_MAX};
    serve(&p);
}

pid_t index_proxy_start(int listen_fd, const struct index_rules *rules, struct err *e)
{
    pid_t self = getpid();
    pid_t pid = fork();

    if (pid == 0)
        be_proxy(listen_fd, rules, self);
    if (pid < 0)
        return err_errno(e, "fork");
    return pid;
}
