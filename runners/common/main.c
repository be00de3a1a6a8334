#include "runners/common/entry.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* PID 1 ignores signals without a handler; ours are events of the poll loops. */
static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGIO); /* script.c */
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
    static char data[] = "/data";
    static struct languages l = {.items = {{.cwd = data}}, .n = 1};
    int signal_fd;

    if (argc > 1 && strcmp(argv[1], "index") == 0)
        return index_main(argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], "probe") == 0)
        return probe_main(argc - 2, argv + 2);
    /* The program has our uid: this keeps it out of our memory and of /proc/1/fd, where the
     * server's stream is. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* where we are not PID 1 */
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if ((argc != 2 || strcmp(argv[1], "serve") != 0) && !languages_read(&l, argc, argv))
        return ENTRY_FAILED;
    if (!calls_confine()) {
        entry_error(errno, "the filter of system calls");
        return ENTRY_FAILED;
    }
    signal_fd = open_signals();
    if (signal_fd < 0) {
        entry_error(errno, "signals");
        return ENTRY_FAILED;
    }
    return serve_run(&l, signal_fd);
}
