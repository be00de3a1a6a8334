#include "config.h"

#include "fcgi/process/guard.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define YOUNG_MS 2000 /* a child that ends younger than this is started again after a pause */
#define PAUSE_MS 100

/* Waits for the end of the child, and passes signals on. Returns its wait status. */
static int wait_for(const struct guard *g, pid_t child, bool *out_asked)
{
    int status;

    *out_asked = false;
    for (;;) {
        struct signalfd_siginfo info;
        struct pollfd p = {.fd = g->signal_fd, .events = POLLIN};
        poll(&p, 1, -1);
        while (read(g->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
            *out_asked |= info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
            if (info.ssi_signo != SIGCHLD)
                kill(child, (int)info.ssi_signo);
        }
        if (waitpid(child, &status, WNOHANG) == child)
            return status;
    }
}

int guard_main(const struct guard *g)
{
    const pid_t guard = getpid();

    for (;;) {
        int64_t started_ms = clock_mono_ms();
        bool asked;
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            if (getppid() == guard)
                g->life(g->ctx);
            return 0;
        }
        if (pid < 0) {
            log_error("fork: %s", strerror(errno));
            return 1;
        }
        int status = wait_for(g, pid, &asked);
        if (asked || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        log_error("master %d ended with %s %d; restarting", (int)pid,
                  WIFSIGNALED(status) ? "signal" : "status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        if (clock_mono_ms() - started_ms < YOUNG_MS)
            poll(NULL, 0, PAUSE_MS);
        g->prepare(g->ctx);
    }
}
