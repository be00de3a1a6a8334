#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* How long a server may take to hang up once it has the report. */
#define LINGER_MS 2000

#define USAGE                                                                                      \
    "usage: entry [-C DIRECTORY] [-w [-p] [-e NAMES] [-f FILES] [-l OBJECT] [-o OPTION] "          \
    "[-s WORDS] [-x NAME=VALUE]] SCRIPT PROGRAM [ARGUMENT…]"

/* False when it makes no sense, which has been reported. */
static bool options_parse(struct options *o, int argc, char **argv)
{
    const struct {
        char letter;
        char **value;
    } texts[] = {{'C', &o->cwd},    {'e', &o->variables}, {'f', &o->files}, {'l', &o->object},
                 {'o', &o->option}, {'s', &o->words},     {'x', &o->extra}};
    static char data[] = "/data";
    int letter;

    *o = (struct options){.cwd = data};
    opterr = 0;
    while ((letter = getopt(argc, argv, "+C:e:f:l:o:ps:wx:")) != -1 && letter != '?') {
        o->warm |= letter == 'w';
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

/* Runs the program of the envelope, in the warm interpreter or in a new one. */
static int program_run(struct warm *w, const struct envelope *v)
{
    const struct options *o = w->options;
    struct ending end = {.status = SIGKILL}; /* of a program that we killed and that does not die */
    int64_t hard_at_ms = v->hard_ms ? v->went_at_ms + (int64_t)v->hard_ms : 0;
    bool warm = warm_hand_over(w, v, &end);
    const char *how = warm ? "warm" : "new";

    if (!warm) {
        struct child_plan plan = {.argv = argv_new(o->command, NULL, v->args, v->n_args),
                                  .env = v->env,
                                  .n_env = v->n_env,
                                  .cwd = o->cwd,
                                  .input_fd = w->input->fd,
                                  .hook_fd = -1};
        char why[CHILD_WHY_MAX] = "no memory for arguments";

        if (!plan.argv || child_start(&w->child, &plan, why) != 0) {
            entry_error(0, "%s", why);
            return ENTRY_FAILED;
        }
    }
    close(w->input->fd);
    close(w->input->fill_fd);
    if (!frame_send('S', how, strlen(how)) ||
        relay_run(&w->child, w->signal_fd, hard_at_ms, &end) == RELAY_GONE)
        return ENTRY_FAILED;
    return report_send(&end);
}

/* The server has its report; removing the container can wait until it hangs up. */
static void linger(void)
{
    int64_t left, until_ms = clock_ms() + LINGER_MS;
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

    while ((left = until_ms - clock_ms()) > 0)
        if (poll(&p, 1, (int)left) > 0 && !server_is_there(p.revents))
            return;
}

static int program_main(struct warm *w)
{
    struct envelope v = {0};
    enum envelope_end end;
    int status, fd;

    if (w->options->place) {
        fd = open(w->options->script, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
            entry_error(errno, "creating %s", w->options->script);
        else
            close(fd);
    }
    warm_start(w);
    end = envelope_read(&v, w);
    status = end == ENVELOPE_GO ? program_run(w, &v) : end == ENVELOPE_GONE ? 0 : ENTRY_FAILED;
    if (end == ENVELOPE_GO && status != ENTRY_FAILED)
        linger();
    kill_and_reap_all(clock_ms() + DEATH_MS);
    return status;
}

int main(int argc, char **argv)
{
    struct options o;
    struct input in;
    struct warm w = {.options = &o, .input = &in};
    bool serve = argc == 2 && strcmp(argv[1], "serve") == 0;

    if (argc > 1 && strcmp(argv[1], "index") == 0)
        return index_main(argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], "probe") == 0)
        return probe_main(argc - 2, argv + 2);
    /* The program has our uid: this keeps it out of our memory and of /proc/1/fd, where the
     * server's stream is. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* where we are not PID 1 */
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if (!serve && (!options_parse(&o, argc, argv) || !input_open(&in)))
        return ENTRY_FAILED;
    w.signal_fd = open_signals();
    if (w.signal_fd < 0) {
        entry_error(errno, "signals");
        return ENTRY_FAILED;
    }
    return serve ? serve_run(w.signal_fd) : program_main(&w);
}
