#include "config.h"

#include "common/index/proxy.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/privsep.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The arguments of the new process. */
struct order {
    struct index_source source;
    bool private_ok;
    pid_t caller;
};

/* Its descriptors, besides standard error. */
enum { LISTEN_FD = STDIN_FILENO, ORDER_FD = STDOUT_FILENO };

struct proxy {
    int listen_fd, signal_fd;
    const struct index_rules *rules;
    struct index_budget *budget;
    size_t tunnels;
};

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
        privsep_die_with(self);
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

int index_proxy_main(void)
{
    static const struct privsep_limit no_files = {RLIMIT_FSIZE, 0};
    struct order order;
    struct index_rules rules = {.source = &order.source};
    struct proxy p = {.listen_fd = LISTEN_FD, .rules = &rules};

    if (read(ORDER_FD, &order, sizeof order) != (ssize_t)sizeof order ||
        privsep_drop_rights() < 0 || privsep_bound(&no_files, 1) < 0)
        return 1;
    privsep_die_with(order.caller);
    rules.private_ok = order.private_ok;
    p.signal_fd = open_signals();
    p.budget = mmap(NULL, sizeof *p.budget, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                    0);
    if (p.signal_fd < 0 || p.budget == MAP_FAILED)
        return 1;
    *p.budget = (struct index_budget){.down = INDEX_DOWN_MAX, .up = INDEX_UP_MAX};
    serve(&p);
}

/* ---- from outside ---- */

static int order_fd(const struct index_rules *rules, struct err *e)
{
    const struct order order = {*rules->source, rules->private_ok, getpid()};
    AUTO_FD int fd = memfd_create("index", MFD_CLOEXEC);

    if (fd < 0 || fdio_write_all(fd, &order, sizeof order, e) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_errno(e, "the rules of the index's proxy");
    return TAKE_FD(fd);
}

pid_t index_proxy_start(int listen_fd, const struct index_rules *rules, struct err *e)
{
    AUTO_FD int order = order_fd(rules, e);
    const int fds[] = {
        [LISTEN_FD] = listen_fd, [ORDER_FD] = order, [STDERR_FILENO] = STDERR_FILENO};

    return order < 0 ? -1 : privsep_start(INDEX_PROXY_COMMAND, fds, ARRAY_LEN(fds), e);
}
