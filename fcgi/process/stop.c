#include "config.h"

#include "fcgi/process/stop.h"

static volatile sig_atomic_t requested;

static void on_stop(int sig)
{
    (void)sig;
    requested = 1;
}

bool stop_requested(void)
{
    return requested;
}

int stop_prepare(sigset_t *while_waiting, struct err *e)
{
    sigset_t blocked;
    struct sigaction stop = {.sa_handler = on_stop};
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    if (sigprocmask(SIG_BLOCK, &blocked, while_waiting) < 0)
        return err_errno(e, "sigprocmask");
    sigdelset(while_waiting, SIGTERM);
    sigaddset(while_waiting, SIGINT);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGUSR1, &ignore, NULL);
    return 0;
}
