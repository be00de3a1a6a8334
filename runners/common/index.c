#include "runners/common/entry.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Connections at the same time; the listen queue holds more. */
#define TUNNELS_MAX 32

struct index {
    const char *socket;
    int listen_fd, signal_fd;
    pid_t installer;
    size_t tunnels;
};

/* ---- the lock ---- */

/* One installation of a sandbox at a time: the lock ends with our process. */
static bool lock_packages(void)
{
    int fd;

    if (mkdir(PACKAGES, 0755) < 0 && errno != EEXIST) {
        entry_error(errno, "creating " PACKAGES);
        return false;
    }
    fd = open(PACKAGES "/.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0 || flock(fd, LOCK_EX) < 0) {
        entry_error(errno, "locking " PACKAGES);
        return false;
    }
    return true;
}

/* ---- the loopback address ---- */

static int listen_on_loopback(uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, TUNNELS_MAX) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        return -1;
    *port = ntohs(a.sin_port);
    return fd;
}

/* One direction to its end, which is passed on. */
__attribute__((noreturn)) static void carry(int from, int to)
{
    char data[16384];
    ssize_t n;

    while ((n = read(from, data, sizeof(data))) > 0 && write_all(to, data, (size_t)n))
        ;
    shutdown(to, SHUT_WR);
    _exit(n != 0);
}

/* In a process of its own: one connection, a direction in a child each. */
__attribute__((noreturn)) static void tunnel(const struct index *x, int fd)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int there = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof(a.sun_path), "%s", x->socket);
    if (there < 0 || connect(there, (struct sockaddr *)&a, sizeof(a)) < 0)
        _exit(1);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        carry(fd, there);
    }
    carry(there, fd); /* the answer ends last; a request that goes on then has no reader */
}

static void open_tunnel(struct index *x)
{
    int fd = accept4(x->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    pid_t pid = fd < 0 ? -1 : fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        tunnel(x, fd);
    }
    if (pid > 0)
        x->tunnels++;
    if (fd >= 0)
        close(fd);
}

/* ---- the installer ---- */

/* The conversation's home has settings that are none of the installer's. */
static bool set_environment(uint16_t port)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"};
    char url[40];
    bool good = unsetenv("no_proxy") == 0 && unsetenv("NO_PROXY") == 0 &&
                setenv("HOME", "/tmp", 1) == 0;

    snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        good = good && setenv(names[i], url, 1) == 0;
    return good;
}

static pid_t start_installer(char **argv)
{
    pid_t pid = fork();
    sigset_t none;

    if (pid != 0)
        return pid;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execv(argv[0], argv);
    entry_error(errno, "starting %s", argv[0]);
    _exit(ENTRY_FAILED);
}

/* True with its wait status when the installer has ended. */
static bool index_reap(struct index *x, int *status)
{
    struct signalfd_siginfo info;
    bool ended = false;
    pid_t pid;
    int got;

    while (read(x->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
    while ((pid = waitpid(-1, &got, WNOHANG)) > 0) {
        if (pid == x->installer) {
            *status = got;
            ended = true;
        } else {
            x->tunnels--;
        }
    }
    return ended;
}

static int index_serve(struct index *x)
{
    int status = 0;

    for (;;) {
        struct pollfd p[] = {
            {.fd = x->signal_fd, .events = POLLIN},
            {.fd = x->tunnels < TUNNELS_MAX ? x->listen_fd : -1, .events = POLLIN}};

        if (poll(p, 2, -1) < 0)
            continue;
        if (p[0].revents && index_reap(x, &status))
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (p[1].revents)
            open_tunnel(x);
    }
}

int index_main(int argc, char **argv)
{
    struct index x = {0};
    sigset_t set;
    uint16_t port;

    if (argc < 2) {
        entry_error(0, "usage: entry index SOCKET PROGRAM [ARGUMENT…]");
        return ENTRY_FAILED;
    }
    x.socket = argv[0];
    if (!lock_packages())
        return ENTRY_FAILED;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    x.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    x.listen_fd = listen_on_loopback(&port);
    if (x.signal_fd < 0 || x.listen_fd < 0 || !set_environment(port) ||
        (x.installer = start_installer(argv + 1)) < 0) {
        entry_error(errno, "preparing the proxy to the package index");
        return ENTRY_FAILED;
    }
    return index_serve(&x);
}
