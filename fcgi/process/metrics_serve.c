/* The process that answers Prometheus: one connection at a time, over loopback or a Unix socket. */
#include "config.h"

#include "fcgi/commands.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/metrics.h"
#include "common/base/version.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "fcgi/http/http_request.h"
#include "fcgi/process/resources.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define REQUEST_MAX    4096
#define TEXT_MAX       (512u * 1024)
#define ANSWER_MS      3000 /* for the broker */
#define PEER_TIMEOUT_S 2
#define PATH           "/metrics"

/* ---- what the broker knows now ---- */

/* Numbers of the status: a path of members, "a.b", and the metric that it is. */
static const struct status_metric {
    const char *path, *name, *help;
} status_metrics[] = {
    {"running", "runs_running", "Runs that have a place."},
    {"maxRuns", "runs_max", "SANDBOX_MAX_RUNS."},
    {"queued", "runs_queued", "Runs that wait for a place or a container."},
    {"queueMax", "queue_max", "SANDBOX_QUEUE."},
    {"sandboxes", "persistent_sandboxes", "Persistent sandboxes that live."},
    {"pool.usedBytes", "warm_memory_bytes", "Memory of warm containers."},
    {"pool.budgetBytes", "warm_memory_max_bytes", "SANDBOX_WARM_MEMORY."},
    {"pool.starting", "containers_starting", "Containers that are being started."},
    {"pool.doubted", "wipes_failed",
     "Used containers that could not be wiped, since the broker's "
     "start."},
    {"disk.freeBytes", "disk_free_bytes", "Free space on the file system of SANDBOX_ROOT."},
    {"disk.sizeBytes", "disk_size_bytes", "Size of the file system of SANDBOX_ROOT."},
    {"disk.usedBytes", "disk_used_bytes",
     "Size of all conversations' files and kept results, as "
     "last counted."},
    {"disk.limitBytes", "disk_limit_bytes", "SANDBOX_TOTAL_MAX; 0: no limit."},
    {"disk.conversations", "conversations", "Conversations with files, as last counted."},
    {"store.waiting", "store_waiting", "Conversations that the store does not have as they are."},
    {"store.lagSeconds", "store_lag_seconds", "How long the first of them has waited."},
    {"keptResults", "kept_results", "Results of runs that are kept."},
};

static const json_t *member_at(const json_t *object, const char *path)
{
    char name[64];

    for (; object; path += strlen(name) + 1) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "."), path);
        object = json_object_get(object, name);
        if (!path[strlen(name)])
            break;
    }
    return object;
}

/* What status tells of memory, by purpose. */
static void write_memory(const json_t *memory, struct buf *out)
{
    char labels[64];
    const char *purpose;
    const json_t *bytes;

    metrics_write_head(out, "memory_bytes", "gauge",
                       "Memory of containers (with their page cache) and of the server's "
                       "processes (shared pages in parts), by purpose.");
    json_object_foreach((json_t *)(uintptr_t)memory, purpose, bytes)
    {
        snprintf(labels, sizeof labels, "purpose=\"%s\"", purpose);
        metrics_write_number(out, "memory_bytes", labels, (double)json_integer_value(bytes));
    }
}

static void write_status(const struct settings *s, struct buf *out)
{
    const struct broker_client client = {
        .path = s->broker, .cancel_fd = -1, .leave_fd = -1, .limit_ms = ANSWER_MS};
    struct err e = ERR_INIT;
    json_auto_t *status = broker_status(&client, &e);
    const json_t *engine = json_object_get(status, "engine");

    metrics_write_one(out, "up", "gauge", "1: the broker answers.", status ? 1 : 0);
    if (!status)
        return;
    metrics_write_one(out, "engine_up", "gauge", "1: the container engine answers.",
                      json_is_true(json_object_get(engine, "ok")));
    metrics_write_one(out, "runner_images", "gauge", "Languages that an image runs.",
                      (double)json_array_size(json_object_get(status, "runners")));
    for (size_t i = 0; i < ARRAY_LEN(status_metrics); i++) {
        const json_t *number = member_at(status, status_metrics[i].path);
        if (json_is_integer(number))
            metrics_write_one(out, status_metrics[i].name, "gauge", status_metrics[i].help,
                              (double)json_integer_value(number));
    }
    write_memory(json_object_get(status, "memory"), out);
}

static void write_workers(const struct call_place *place, struct buf *out)
{
    size_t n = atomic_load(&place->calls->n_used), busy = 0, lasting = 0;
    int64_t now = clock_mono_ms();

    n = n < place->n ? n : place->n;
    for (size_t i = 0; i < n; i++) {
        enum call_state state = calls_state(place->calls, i, now);
        busy += state != CALL_NONE;
        lasting += state == CALL_LONG;
    }
    metrics_write_one(out, "workers", "gauge", "Worker processes.", (double)n);
    metrics_write_one(out, "workers_busy", "gauge", "Workers that have a call.", (double)busy);
    metrics_write_one(out, "calls_waiting", "gauge", "Calls that last, most of them for a program.",
                      (double)lasting);
    metrics_write_one(out, "calls_max", "gauge", "SANDCGI_MAX_CALLS.", (double)place->max);
}

static void write_all(const struct settings *s, const struct call_place *place, struct buf *out)
{
    buf_addf(out,
             "# HELP sandcgi_build_info The version.\n# TYPE sandcgi_build_info gauge\n"
             "sandcgi_build_info{version=\"%s\"} 1\n",
             sandcgi_version);
    write_status(s, out);
    write_workers(place, out);
    metrics_write(out);
}

/* ---- HTTP/1.0 ---- */

/* Reads until the end of the head. false: it was too long, or did not come. */
static bool read_head(int fd, struct buf *head)
{
    while (!strstr(buf_str(head), "\r\n\r\n") && !strstr(buf_str(head), "\n\n")) {
        char *room = head->len + 1024 <= REQUEST_MAX ? buf_reserve(head, 1024) : NULL;
        ssize_t n = room ? recv(fd, room, 1024, 0) : -1;
        if (n <= 0)
            return false;
        buf_grew(head, (size_t)n);
    }
    return true;
}

static void send_all(int fd, const struct buf *b)
{
    for (size_t at = 0; at < b->len;) {
        ssize_t n = send(fd, b->data + at, b->len - at, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        at += (size_t)n;
    }
}

/* A page of another site whose name leads here (DNS rebinding) reads nothing. */
static bool host_is_known(const struct settings *s, const char *head)
{
    const char *line = strcasestr(head, "\nhost:");
    char host[256];

    if (!line)
        return true;
    line += strlen("\nhost:");
    line += strspn(line, " \t");
    snprintf(host, sizeof host, "%.*s", (int)strcspn(line, " \t\r\n"), line);
    return http_host_is_known(s, host);
}

static void answer(int fd, const struct settings *s, const struct call_place *place)
{
    AUTO_BUF struct buf head = BUF_INIT(REQUEST_MAX);
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    AUTO_BUF struct buf out = BUF_INIT(TEXT_MAX + REQUEST_MAX);

    if (!read_head(fd, &head))
        return;
    size_t path = sizeof "GET " PATH - 1;
    bool found = strncmp(buf_str(&head), "GET " PATH, path) == 0 &&
                 strchr(" ?", buf_str(&head)[path]);
    bool known = host_is_known(s, buf_str(&head));
    if (!known)
        buf_add_str(&text, "Host not allowed (SANDCGI_ALLOWED_HOSTS)\n");
    else if (found)
        write_all(s, place, &text);
    else
        buf_add_str(&text, "GET " PATH "\n");
    buf_addf(&out,
             "HTTP/1.0 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
             "Content-Length: %zu\r\nConnection: close\r\n\r\n",
             !known  ? "403 Forbidden"
             : found ? "200 OK"
                     : "404 Not Found",
             text.len);
    buf_add(&out, text.data, text.len);
    send_all(fd, &out);
}

int metrics_main(const struct settings *s, const struct account *workers,
                 const struct call_place *calls, int listen_fd, int conns_fd, struct err *e)
{
    const struct timeval timeout = {.tv_sec = PEER_TIMEOUT_S};
    sigset_t while_waiting;

    explicit_bzero(s->file_secret, strlen(s->file_secret));
    explicit_bzero(s->old_secret, strlen(s->old_secret));
    explicit_bzero(s->api_token, strlen(s->api_token));
    metrics_read_only();
    client_connect_over(conns_fd);
    json_object_seed(0); /* from a file, which cannot be opened later */
    if (account_become(workers, e) < 0 || front_memory_bound(s, false, e) < 0 ||
        account_confine(-1, false, e) < 0 || stop_prepare(&while_waiting, e) < 0)
        return -1;
    while (!stop_requested()) {
        struct pollfd p = {.fd = listen_fd, .events = POLLIN};
        if (ppoll(&p, 1, NULL, &while_waiting) <= 0)
            continue;
        AUTO_FD int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
        answer(fd, s, calls);
    }
    return 0;
}
