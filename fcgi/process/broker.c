#include "config.h"

#include "fcgi/commands.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/node.h"
#include "common/base/sock.h"
#include "common/mcp/server.h"
#include "common/protocol/client_runs.h"
#include "common/tools/files/content.h"
#include "fcgi/hub/events.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- configuration ---- */

/* In the broker's main process, which must not wait. Rare enough for a socket of its own. */
static bool on_runners_changed(void *ctx)
{
    const struct settings *s = ctx;
    const struct mcp_event event = {.kind = MCP_EVENT_TOOLS};
    struct event_sender sender;

    event_sender_init(&sender, s->events, 0);
    bool sent = event_sender_try(&sender, &event);
    event_sender_clear(&sender);
    return sent;
}

/* In the run's supervisor: announces the task's end and the files that the run has changed. */
static void on_run_ended(void *ctx, const struct broker_run_news *news)
{
    const struct settings *s = ctx;
    struct event_sender sender;
    const struct mcp_server server = {.publish = event_sender_publish, .publish_ctx = &sender};
    const struct changes changes = {&server, news->tenant, news->conversation};
    char task[RUN_ID_LEN + NODE_NAME_MAX + 2];
    const struct mcp_event ended = {.kind = MCP_EVENT_TASK, .tenant = news->tenant, .task = task};

    node_set(s->node);
    node_add(news->run_id, task, sizeof task);
    event_sender_init(&sender, s->events, EVENTS_TIMEOUT_MS);
    mcp_publish(&server, &ended);
    changes_publish(&changes, news->files);
    event_sender_clear(&sender);
}

struct broker_config broker_config_of(const struct settings *s, uid_t client_uid)
{
    struct broker_config config = {
        .engine = s->engine,
        .container = s->container,
        .memory_reserve = s->memory_reserve,
        .limits = s->limits,
        .bounds = s->bounds,
        .pool = s->pool,
        .tenants = &s->tenants,
        .index = &s->index,
        .index_ca = s->ca,
        .network_dns = s->network_dns,
        .limits_check = (enum limits_check)s->limits_check,
        .allow_images = s->images,
        .instance = s->instance_id,
        .runtime = s->runtime,
        .path = s->broker,
        .root_path = s->sandbox_root,
        .host_path = s->sandbox_host_path,
        .file_secret = s->file_secret,
        .old_secret = s->old_secret,
        .old_secret_until = s->old_secret_until,
        .base_url = s->links_url,
        .store = s->store,
        .url_ttl_s = (int64_t)((s->url_ttl_ms + 999) / 1000),
        .sandbox_uid = s->sandbox_uid,
        .sandbox_gid = s->sandbox_gid,
        .web_gid = s->web_gid,
        .client_uid = client_uid,
        .is_node = *s->edge_secret != '\0',
        .runners_changed = on_runners_changed,
        .runners_changed_ctx = (void *)(uintptr_t)s,
        .run_ended = on_run_ended,
        .run_ended_ctx = (void *)(uintptr_t)s,
    };

    return config;
}

/* ---- a private broker ---- */

static pid_t broker_pid;
static char socket_dir[] = "/tmp/sandcgi-XXXXXX";
static char *socket_path, *events_path;
static int broker_said = -1; /* what a CGI program's broker logs */

static void remove_sockets(void)
{
    unlink(socket_path);
    unlink(events_path);
    rmdir(socket_dir);
}

/* said_fd: its standard error; -1: ours. */
static void broker_main(const struct settings *s, int listen_fd, int said_fd, pid_t parent)
{
    struct err e = ERR_INIT;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        remove_sockets();
        _exit(0);
    }
    /* Standard input and output carry the protocol: the broker must not hold them open. */
    AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0)
        dup2(null, STDOUT_FILENO);
    if (said_fd >= 0)
        dup2(said_fd, STDERR_FILENO);
    log_set_role("broker");
    struct broker_config config = broker_config_of(s, geteuid());
    if (config.limits.tenant_runs == 0) /* there is one tenant */
        config.limits.tenant_runs = config.limits.max_runs;
    config.path = socket_path;
    int rc = broker_serve(&config, listen_fd, NULL, &e);
    remove_sockets(); /* our parent may have been killed */
    if (rc < 0)
        log_error("%s", e.text);
    _exit(rc < 0);
}

/* A broker's signal may come before it can take it. */
static void hold_signals(int how)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigprocmask(how, &ends, NULL);
}

int private_broker_ensure(struct settings *s, bool http, struct err *e)
{
    const struct broker_client client = {.path = s->broker, .cancel_fd = -1, .leave_fd = -1};
    struct err none = ERR_INIT;
    int said[2] = {-1, -1};

    if (broker_ping(&client, &none) == 0)
        return 0;
    hold_signals(SIG_BLOCK);
    if (!mkdtemp(socket_dir))
        return err_errno(e, "cannot create a directory under /tmp");
    socket_path = mem_printf("%s/broker.sock", socket_dir);
    events_path = mem_printf("%s/events.sock", socket_dir);
    AUTO_FD int fd = sock_listen(socket_path, NULL, e);
    if (fd < 0)
        return -1;
    /* Events of this broker concern this process alone, not the hub of a running server. */
    free(s->events);
    s->events = mem_strdup(events_path);
    pid_t parent = getpid();
    /* What has no room is lost: nothing may wait for the web server. */
    if (http && pipe2(said, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_errno(e, "pipe");
    broker_pid = fork();
    if (broker_pid == 0)
        broker_main(s, fd, said[1], parent);
    hold_signals(SIG_UNBLOCK);
    if (http)
        close(said[1]);
    broker_said = said[0];
    if (broker_pid < 0)
        return err_errno(e, "fork");
    free(s->broker);
    s->broker = mem_strdup(socket_path);
    return 0;
}

bool private_broker_is_ours(void)
{
    return broker_pid > 0;
}

void private_broker_let_go(void)
{
    AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char text[4096];
    struct err e = ERR_INIT;

    if (broker_pid > 0)
        kill(broker_pid, SIGTERM);
    for (ssize_t n; broker_said >= 0 && (n = read(broker_said, text, sizeof text)) > 0;)
        (void)fdio_write_all(STDERR_FILENO, text, (size_t)n, &e);
    /* With which web servers end a program that has answered. */
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0) {
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
    }
}

void private_broker_end(void)
{
    if (broker_pid > 0) {
        kill(broker_pid, SIGTERM);
        waitpid(broker_pid, NULL, 0);
    }
    if (!socket_path)
        return;
    remove_sockets();
    auto_close_fd(&broker_said);
    free(TAKE_PTR(socket_path));
    free(TAKE_PTR(events_path));
}
