#include "config.h"

#include "fcgi/process/takeover.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/protocol/client_runs.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define READY_MS       120000 /* for programs to run, before the sockets are taken over */
#define READY_ASK_MS   5000
#define READY_PAUSE_MS 100

/* 0: they can. */
static int wait_until_ready(const struct settings *s, int conns_fd, const sigset_t *mask)
{
    const struct broker_client client = {
        .path = s->broker, .cancel_fd = -1, .leave_fd = -1, .limit_ms = READY_ASK_MS};
    const struct deadline end = deadline_in_ms(READY_MS);
    struct err e = ERR_INIT;

    sigprocmask(SIG_SETMASK, mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    client_connect_over(conns_fd);
    while (broker_ready(&client, &e) < 0) {
        if (deadline_passed(end)) {
            log_error("no program can run here after %d s: %s", READY_MS / 1000, e.text);
            return 1;
        }
        poll(NULL, 0, READY_PAUSE_MS);
    }
    return 0;
}

pid_t takeover_wait(const struct settings *s, int conns_fd, int lock_fd, const sigset_t *mask)
{
    pid_t pid = fork();

    if (pid == 0) {
        auto_close_fd(&lock_fd);
        _exit(wait_until_ready(s, conns_fd, mask));
    }
    if (pid < 0)
        log_error("fork: %s", strerror(errno));
    return pid < 0 ? 0 : pid;
}
