#include "runners/common/entry.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define USAGE                                                                                      \
    "usage: entry [-C DIRECTORY] [-w [-p] [-e NAMES] [-f FILES] [-l OBJECT] [-m MODULES] "         \
    "[-o OPTION] [-s WORDS] [-t] [-x NAME=VALUE]] SCRIPT PROGRAM [ARGUMENT…]"

/* False when it makes no sense, which has been reported. */
static bool options_parse(struct options *o, int argc, char **argv)
{
    const struct {
        char letter;
        char **value;
    } texts[] = {{'C', &o->cwd},     {'e', &o->variables}, {'f', &o->files}, {'l', &o->object},
                 {'m', &o->modules}, {'o', &o->option},    {'s', &o->words}, {'x', &o->extra}};
    int letter;

    opterr = 0;
    while ((letter = getopt(argc, argv, "+C:e:f:l:m:o:ps:twx:")) != -1 && letter != '?') {
        o->warm |= letter == 'w';
        o->template |= letter == 't';
        o->place |= letter == 'p';
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
            if (texts[i].letter == letter)
                *texts[i].value = optarg;
        }
    }
    if (letter == '?' || argc - optind < 2 || (o->extra && !strchr(o->extra, '='))) {
        entry_error(0, USAGE);
        return false;
    }
    o->script = argv[optind];
    o->command = argv + optind + 1;
    return true;
}

/* PID 1 ignores signals without a handler; ours are events of the poll loops. */
static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
    static char data[] = "/data";
    struct options o = {.cwd = data};
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
    if ((argc != 2 || strcmp(argv[1], "serve") != 0) && !options_parse(&o, argc, argv))
        return ENTRY_FAILED;
    signal_fd = open_signals();
    if (signal_fd < 0) {
        entry_error(errno, "signals");
        return ENTRY_FAILED;
    }
    return serve_run(&o, signal_fd);
}
