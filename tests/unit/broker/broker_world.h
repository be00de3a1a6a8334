/*
 * A broker in a process of its own, with supervisors that need no engine (fakes/fake_supervisor.c)
 * and a housekeeper that finds two images. Each test gets one; it must end well, and leave
 * no process.
 */
#pragma once

#include "tests/unit/unit.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/broker/server.h"
#include "common/protocol/client_runs.h"
#include "common/protocol/run_body.h"
#include "common/rpc/json.h"
#include "tests/fakes/fake_engine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct broker_world {
    char folder[PATH_MAX];
    char root[PATH_MAX + 8], socket[PATH_MAX + 8];
    struct broker_config config;
    struct fake_engine *engine;
    int listen_fd, conns[OP_SENDERS][2]; /* conns: pairs, over which connections come as well */
    pid_t pid;
    struct broker_client client;
};

#define BW_IMAGE(id, name, languages)                                                              \
    "{\"Id\":\"sha256:" id "\",\"Created\":1,\"RepoTags\":[\"sandcgi-runner-" name ":latest\"],"   \
    "\"Labels\":{\"sandbox.runner\":\"true\",\"sandbox.language\":\"" languages "\","              \
    "\"sandbox.protocol\":\"3\",\"sandbox.warm\":\"true\"}}"
#define BW_ID_1 "1111111111111111111111111111111111111111111111111111111111111111"
#define BW_ID_2 "2222222222222222222222222222222222222222222222222222222222222222"

/* The rows of an engine that starts no containers, and the end of its table. */
#define BW_REPLIES                                                                                 \
    {.match = "GET /_ping", .status = 200},                                                        \
        {.match = "GET /v1.41/events", .status = 101, .hold_ms = 60000},                           \
        {.match = "GET /v1.41/images/json",                                                        \
         .status = 200,                                                                            \
         .body = "[" BW_IMAGE(BW_ID_1, "python",                                                   \
                              "python typescript") "," BW_IMAGE(BW_ID_2, "bash", "bash") "]"},     \
        {.match = "GET /v1.41/containers/json", .status = 200, .body = "[]"},                      \
    {                                                                                              \
        .match = NULL                                                                              \
    }

static const struct fake_reply bw_replies[] = {BW_REPLIES};

static inline void bw_start_broker(struct broker_world *w)
{
    w->pid = fork();
    assert_true(w->pid >= 0);
    if (w->pid > 0)
        return;
    struct err e = ERR_INIT;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int conns[OP_SENDERS];
    for (size_t i = 0; i < OP_SENDERS; i++)
        conns[i] = w->conns[i][0];
    if (broker_serve(&w->config, w->listen_fd, conns, &e) < 0)
        fprintf(stderr, "%s\n", e.text);
    exit(e.kind != ERR_NONE); /* not _exit: leaks are looked for */
}

/* limits and pool of the configuration may be changed before bw_start_broker. */
static inline void bw_open(struct broker_world *w)
{
    struct err e;
    *w = (struct broker_world){0};
    unit_make_folder(w->folder);
    snprintf(w->root, sizeof w->root, "%s/root", w->folder);
    snprintf(w->socket, sizeof w->socket, "%s/s", w->folder);
    w->engine = fake_engine_start(bw_replies);
    w->config = (struct broker_config){
        .engine = {.host = fake_engine_host(w->engine), .cert_path = ""},
        .limits = {.timeout_ms = 30000,
                   .timeout_max_ms = 60000,
                   .code_max = 100000,
                   .max_runs = 4,
                   .tenant_runs = 4,
                   .conversation_runs = 4,
                   .queue = 8,
                   .background_max = 2,
                   .wait_ms = 50000,
                   .wait_max_ms = 60000,
                   .result_ttl_ms = 60000},
        .pool = {.starts_max = 4, .memory_bytes = 1u << 30, .idle_ms = 60000},
        .allow_images = "sandcgi-runner-*",
        .instance = "test",
        .runtime = "",
        .path = w->socket,
        .root_path = w->root,
        .host_path = "",
        .file_secret = "0123456789abcdef0123456789abcdef",
        .base_url = "https://example.test",
        .sandbox_uid = geteuid(),
        .sandbox_gid = getegid(),
        .client_uid = geteuid()};
    w->listen_fd = sock_listen(w->socket, NULL, &e);
    assert_true(w->listen_fd >= 0);
    for (size_t i = 0; i < OP_SENDERS; i++)
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, w->conns[i]), 0);
    w->client = (struct broker_client){.path = w->socket, .cancel_fd = -1, .leave_fd = -1};
}

/* Before bw_start_broker. */
static inline void bw_use_engine(struct broker_world *w, const struct fake_reply *table)
{
    fake_engine_stop(w->engine);
    w->engine = fake_engine_start(table);
    w->config.engine.host = fake_engine_host(w->engine);
}

static inline const struct broker_client *bw_client(struct broker_world *w, const char *tenant)
{
    w->client.tenant = tenant;
    return &w->client;
}

/* TERM; the broker ends well within 20 s. */
static inline void bw_close(struct broker_world *w)
{
    int status = -1;
    struct deadline d = deadline_in_ms(20000);
    kill(w->pid, SIGTERM);
    while (waitpid(w->pid, &status, WNOHANG) == 0) {
        if (deadline_passed(d)) {
            kill(w->pid, SIGKILL);
            fail_msg("the broker does not end");
        }
        poll(NULL, 0, 10);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fake_engine_stop(w->engine);
    close(w->listen_fd);
    for (size_t i = 0; i < OP_SENDERS; i++) {
        close(w->conns[i][0]);
        close(w->conns[i][1]);
    }
    unit_remove_tree(w->folder);
}

static inline struct run_request bw_request(const char *tenant, const char *conversation,
                                            const char *code)
{
    return (struct run_request){.tenant = tenant,
                                .conversation = conversation,
                                .language = "bash",
                                .code = {code, strlen(code)}};
}

/* The head and the body of a run on a connection of its own: what a worker sends. */
static inline int bw_send_run(struct broker_world *w, const char *tenant, const char *conversation,
                              const char *code, struct run_options options)
{
    struct err e = ERR_INIT;
    struct run_request r = bw_request(tenant, conversation, code);
    json_auto_t *head = wire_run_head_new(&r, &options);
    int fd = sock_connect_unix(w->socket, &e);
    assert_true(fd >= 0);
    /* In one piece: a supervisor may die before it reads the body, but not before the body is
     * there. */
    AUTO_BUF struct buf text = BUF_INIT(2 * WIRE_MESSAGE_MAX);
    assert_works(wire_frame(head, &text, &e), e);
    assert_works(run_body_write(&r, NULL, &text, &e), e);
    for (size_t sent = 0; sent < text.len;) {
        ssize_t n = send(fd, text.data + sent, text.len - sent, MSG_NOSIGNAL);
        if (n < 0)
            break; /* a refused run's body is not waited for */
        sent += (size_t)n;
    }
    return fd;
}

/* The next message within 20 s; NULL: the connection has ended. */
static inline json_t *bw_hear(int fd)
{
    struct err e = ERR_INIT;
    json_t *message = wire_recv(fd, NULL, deadline_in_ms(20000), &e);
    if (!message && e.kind != ERR_CANCELLED)
        fail_msg("%s", e.text);
    return message;
}

/* The result that ends a connection, which is closed; NULL: it ended without one. */
static inline json_t *bw_result(int take_fd)
{
    AUTO_FD int fd = take_fd;
    for (;;) {
        json_auto_t *message = bw_hear(fd);
        if (!message)
            return NULL;
        json_t *result = json_object_get(message, "result");
        if (result)
            return json_incref(result); /* the message goes */
        if (json_object_get(message, "error"))
            fail_msg("%s", json_dumps(message, 0));
    }
}

static inline void bw_expect_error(int take_fd, enum err_kind kind, const char *part)
{
    AUTO_FD int fd = take_fd;
    json_auto_t *message = bw_hear(fd);
    const json_t *error = json_object_get(message, "error");
    assert_non_null(error);
    assert_string_equal(json_get_string(error, "kind"), err_kind_name(kind));
    assert_contains(json_get_string(error, "text"), part);
}

static inline json_t *bw_status(struct broker_world *w)
{
    struct err e = ERR_INIT;
    json_t *status = broker_status(&w->client, &e);
    if (!status)
        fail_msg("%s", e.text);
    return status;
}

/* Waits up to 20 s until a number of the status is that. */
static inline void bw_wait_for(struct broker_world *w, const char *name, json_int_t wanted)
{
    struct deadline d = deadline_in_ms(20000);
    for (;;) {
        json_auto_t *status = bw_status(w);
        if (json_get_integer(status, name, -1) == wanted)
            return;
        if (deadline_passed(d))
            fail_msg("%s is %lld, not %lld", name, (long long)json_get_integer(status, name, -1),
                     (long long)wanted);
        poll(NULL, 0, 10);
    }
}

/* A program "hold NAME" runs now. */
static inline void bw_wait_until_held(struct broker_world *w, const char *name)
{
    AUTO_FREE char *path = mem_printf("%s/%s", w->root, name);
    struct deadline d = deadline_in_ms(20000);
    while (access(path, F_OK) < 0) {
        assert_false(deadline_passed(d));
        poll(NULL, 0, 5);
    }
}

/* Ends it. */
static inline void bw_let_go(struct broker_world *w, const char *name)
{
    AUTO_FREE char *path = mem_printf("%s/%s", w->root, name);
    bw_wait_until_held(w, name);
    assert_int_equal(unlink(path), 0);
}

/* Containers that wait, of the pool's list. */
static inline size_t bw_waiting(struct broker_world *w)
{
    size_t n = 0, i;
    json_t *item;
    json_auto_t *status = bw_status(w);
    json_array_foreach(json_object_get(json_object_get(status, "pool"), "waiting"), i, item)
        n += strcmp(json_get_string(item, "tier"), "none") != 0;
    return n;
}
