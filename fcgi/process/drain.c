/* "sandcgi drain": ends the server when no program runs. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/sock.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "fcgi/commands.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_MS   250
#define ANSWER_MS 5000

pid_t guard_find(const char *socket, struct err *e)
{
    AUTO_FD int fd = sock_connect_unix(socket, e);
    pid_t pid = 0;

    if (fd < 0 || sock_peer(fd, NULL, &pid, e) < 0)
        return -1;
    if (pid > 0)
        return pid;
    return err_set(e, ERR_NOT_FOUND, "the server that listens at %s runs in another container",
                   socket);
}

static int send_signal(pid_t guard, int sig, struct err *e)
{
    return kill(guard, sig) < 0 ? err_errno(e, "cannot signal the server, process %d", (int)guard)
                                : 0;
}

/* Programs that run or wait; 0 also when the server does not tell. */
static json_int_t count_runs(const struct settings *s)
{
    const struct broker_client client = {
        .path = s->broker, .cancel_fd = -1, .leave_fd = -1, .limit_ms = ANSWER_MS};
    struct err none = ERR_INIT;
    json_auto_t *status = broker_status(&client, &none);

    return json_get_integer(status, "running", 0) + json_get_integer(status, "queued", 0);
}

static bool has_ended(int pidfd, int timeout_ms)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    return poll(&p, 1, timeout_ms) > 0;
}

static int drain(const struct settings *s, uint64_t wait_ms, struct err *e)
{
    const struct deadline end = deadline_in_ms((int64_t)wait_ms);
    pid_t guard = guard_find(s->broker, e);

    if (guard < 0)
        return -1;
    AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, guard, 0);
    if (pidfd < 0)
        return err_errno(e, "process %d", (int)guard);
    if (send_signal(guard, SIGURG, e) < 0) /* what an older server ignores */
        return -1;
    while (count_runs(s) > 0 && !deadline_passed(end))
        if (has_ended(pidfd, LOOK_MS))
            return 0;
    if (send_signal(guard, SIGTERM, e) < 0)
        return -1;
    has_ended(pidfd, -1);
    return 0;
}

int drain_run(const struct settings *s, uint64_t wait_ms)
{
    struct err e = ERR_INIT;

    if (drain(s, wait_ms, &e) == 0)
        return 0;
    fprintf(stderr, "sandcgi: %s\n", e.text);
    return 1;
}
