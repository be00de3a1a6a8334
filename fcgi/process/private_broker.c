#include "config.h"

#include "fcgi/process/private_broker.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/protocol/client_runs.h"
#include "fcgi/process/broker_config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t broker_pid;
static char socket_dir[] = "/tmp/sandcgi-XXXXXX";
static char *socket_path, *events_path;

/* Standard output belongs to the protocol: the broker must not hold it open, nor read our input. */
static void leave_standard_io(void)
{
    AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
    }
}

static void broker_life(const struct settings *s, int listen_fd, pid_t parent)
{
    struct err e = ERR_INIT;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(0);
    leave_standard_io();
    log_set_role("broker");
    const struct broker_config config = broker_config_of(s, geteuid());
    if (broker_serve(&config, listen_fd, &e) == 0)
        _exit(0);
    log_error("%s", e.text);
    _exit(1);
}

/* What changes here concerns this process alone, not the hub of a running server. */
static void redirect_events(struct settings *s)
{
    events_path = mem_printf("%s/events.sock", socket_dir);
    free(s->events);
    s->events = mem_strdup(events_path);
}

static int start(struct settings *s, struct err *e)
{
    if (!mkdtemp(socket_dir))
        return err_errno(e, "cannot make a directory under /tmp");
    socket_path = mem_printf("%s/broker.sock", socket_dir);
    AUTO_FD int fd = sock_listen(socket_path, NULL, e);
    if (fd < 0)
        return -1;
    redirect_events(s);
    pid_t parent = getpid();
    broker_pid = fork();
    if (broker_pid < 0)
        return err_errno(e, "fork");
    if (broker_pid == 0)
        broker_life(s, fd, parent);
    free(s->broker);
    s->broker = mem_strdup(socket_path);
    return 0;
}

int private_broker_ensure(struct settings *s, struct err *e)
{
    const struct broker_client client = {.path = s->broker, .cancel_fd = -1, .leave_fd = -1};
    struct err nobody = ERR_INIT;
    if (broker_ping(&client, &nobody) == 0)
        return 0;
    return start(s, e);
}

bool private_broker_is_ours(void)
{
    return broker_pid > 0;
}

void private_broker_end(void)
{
    if (broker_pid > 0) {
        kill(broker_pid, SIGTERM);
        waitpid(broker_pid, NULL, 0);
    }
    if (socket_path) {
        unlink(socket_path);
        if (events_path)
            unlink(events_path);
        rmdir(socket_dir);
        free(TAKE_PTR(socket_path));
        free(TAKE_PTR(events_path));
    }
}
