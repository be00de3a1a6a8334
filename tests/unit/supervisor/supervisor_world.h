/* A supervisor in a process of its own with the engine of fake_container.h; the test is its main
 * process and its clients. */
#pragma once

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/protocol/run_body.h"
#include "common/records/run_lock.h"
#include "common/records/run_record.h"
#include "common/rpc/json.h"
#include "common/sandbox/warm_dir.h"
#include "common/supervisor/supervisor.h"
#include "tests/fakes/fake_container.h"
#include "tests/unit/sandbox/sandbox_fixture.h"
#include "tests/unit/unit.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define WORLD_RUN_ID "0123456789abcdef01234567"
#define WORLD_LONG   20000 /* ms: what should come comes within this */

struct world {
    struct fixture *f;
    struct broker_config config;
    struct engine_runner items[2]; /* python and bash, of one image */
    struct engine_runners runners;
    struct supervisor_start start;
    json_t *head; /* start.call.head; NULL: a warm container */
    char warm_dir[WARM_DIR_NAME_LEN + 1];
    char sandbox_dir[SANDBOX_NAME_LEN + 1]; /* of head's conversation */
    const char *run_id, *image_id;          /* of the next claim, and of get_run and cancel_run */
    pid_t pid;
    int channel; /* the main process's end */
    int client;  /* the caller's end of start.call.connection, which the child must not hold; -1:
                    none */
    bool full_disk, tells_leaks;
};

/* A message with the descriptors that ride along, up to out->max. */
static inline json_t *world_hear_with_fds(int fd, struct fds *out)
{
    struct sock_inbox inbox = SOCK_INBOX_INIT(WIRE_MESSAGE_MAX);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct err e = ERR_INIT;
    int came = 0;

    inbox.passed.max = out->max;
    while (came == 0 && poll(&p, 1, WORLD_LONG) > 0)
        came = sock_inbox_take(&inbox, fd, &e);
    assert_int_equal(came, 1);
    fds_move(out, &inbox.passed);
    json_t *message = wire_parse(&inbox.message, &e);
    sock_inbox_clear(&inbox);
    return message;
}

static inline void world_open(struct world *w, struct fixture *f)
{
    fake_container_reset();
    *w = (struct world){
        .f = f, .run_id = WORLD_RUN_ID, .image_id = "sha256:1", .channel = -1, .client = -1};
    w->config = (struct broker_config){.instance = "test", .runtime = ""};
    w->config.limits = (struct broker_limits){.timeout_ms = 60000,
                                              .timeout_max_ms = 60000,
                                              .code_max = 4096,
                                              .stdin_max = 4096,
                                              .env_max = 1024,
                                              .output_keep = 65536,
                                              .result_ttl_ms = 3600 * 1000};
    w->config.sandbox_uid = fixture_uid();
    w->config.sandbox_gid = fixture_gid();
    w->items[0] = w->items[1] = (struct engine_runner){.language = (char *)(uintptr_t) "python",
                                                       .image = (char *)(uintptr_t) "runner:latest",
                                                       .image_id = (char *)(uintptr_t) "sha256:1",
                                                       .protocol = 2,
                                                       .preload = (char *)(uintptr_t) "numpy",
                                                       .warm = true};
    w->items[1].language = (char *)(uintptr_t) "bash";
    w->items[1].preload = (char *)(uintptr_t) "";
    w->runners = (struct engine_runners){.items = w->items, .n = ARRAY_LEN(w->items)};
    w->start = (struct supervisor_start){.config = &w->config,
                                         .root = &f->root,
                                         .runner = &w->items[0],
                                         .runners = &w->runners,
                                         .call = {.connection = -1, .image_id = "sha256:1"}};
    memcpy(w->start.container_id, WORLD_RUN_ID, sizeof w->start.container_id);
}

static inline void world_be_supervisor(struct world *w)
{
    struct rlimit none = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if (w->full_disk)
        setrlimit(RLIMIT_FSIZE, &none);
    int fds = unit_count_fds();
    supervisor_main(&w->start);
    /* The channel and the connection are gone; a sanitizer tells leaks of memory at exit(). */
    if (w->tells_leaks)
        exit(unit_count_fds() != fds - 2);
    _exit(0);
}

/* The name of the sandbox that the main process would tell with this head. */
static inline const char *world_sandbox_dir(struct world *w, const json_t *head)
{
    const char *conversation = json_get_string(head, "conversationId");
    struct err e = ERR_INIT;

    assert_works(sandbox_name(&w->f->root, json_get_string(head, "tenant"),
                              conversation ? conversation : "chat", w->sandbox_dir, &e),
                 e);
    return w->sandbox_dir;
}

/* Forks it; what start says besides channel is the test's. */
static inline void world_go(struct world *w)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    if (w->head)
        w->start.call.sandbox_dir = world_sandbox_dir(w, w->head);
    fflush(NULL);
    w->pid = fork();
    if (w->pid == 0) {
        close(pair[0]);
        auto_close_fd(&w->client);
        w->start.channel = pair[1];
        w->start.call.head = w->head;
        world_be_supervisor(w);
    }
    close(pair[1]);
    w->channel = pair[0];
    auto_close_fd(&w->start.call.connection);
    json_decref(TAKE_PTR(w->head));
    w->start.call.head = NULL;
}

/* It ends by itself within ms, in good order; nothing is left. */
static inline void world_expect_end(struct world *w, int ms)
{
    struct deadline end = deadline_in_ms(ms);
    int status = -1;
    pid_t pid = 0;

    while ((pid = waitpid(w->pid, &status, WNOHANG)) == 0 && !deadline_passed(end))
        usleep(5000);
    if (pid == 0)
        kill(w->pid, SIGKILL);
    assert_int_equal(pid, w->pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    auto_close_fd(&w->channel);
    assert_int_equal(fake_container->alive, 0);
    assert_false(run_lock_reap(w->f->root.fd, WORLD_RUN_ID));
}

static inline void world_send_body(int fd, const char *code)
{
    const struct run_request request = {.code = {code, strlen(code)}};
    AUTO_BUF struct buf body = BUF_INIT(WIRE_MESSAGE_MAX);
    struct err e = ERR_INIT;

    assert_works(run_body_write(&request, NULL, &body, &e), e);
    assert_int_equal(write(fd, body.data, body.len), body.len);
}

/* A run's two messages; more is merged into the head. The client's end is returned, the other goes
 * to *out_theirs. */
static inline int world_ask(const char *code, json_t *take_more, json_t **out_head, int *out_theirs)
{
    int pair[2];
    const struct run_request request = {
        .tenant = "ann", .conversation = "chat", .language = "python"};
    const struct run_options options = {0};
    json_t *head = wire_run_head_new(&request, &options);
    json_auto_t *more = take_more;

    if (more)
        json_object_update(head, more);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    world_send_body(pair[0], code);
    *out_head = head;
    *out_theirs = pair[1];
    return pair[0];
}

/* A supervisor that is forked for a run. */
static inline int world_cold(struct world *w, const char *code, json_t *take_more)
{
    w->client = world_ask(code, take_more, &w->head, &w->start.call.connection);
    world_go(w);
    return TAKE_FD(w->client);
}

static inline void world_pass(struct world *w, json_t *take_head, int take_theirs)
{
    struct err e = ERR_INIT;
    const char *sandbox_dir = world_sandbox_dir(w, take_head);
    json_auto_t *message = json_pack("{s:s, s:o, s:i, s:s, s:s, s:s}", "do", "hand", "head",
                                     take_head, "queueMs", 7, "runId", w->run_id, "imageId",
                                     w->image_id, "sandboxDir", sandbox_dir);

    assert_works(wire_send(w->channel, message, take_theirs, &e), e);
    close(take_theirs);
}

/* A run for a warm container's supervisor. */
static inline int world_claim(struct world *w, const char *code, json_t *take_more)
{
    json_t *head;
    int theirs;
    int client = world_ask(code, take_more, &head, &theirs);

    world_pass(w, head, theirs);
    return client;
}

/* A get_run or cancel_run that is handed over; more is merged into its head. */
static inline int world_hand(struct world *w, const char *op, json_t *take_more)
{
    json_t *head = json_pack("{s:s, s:s, s:s}", "op", op, "tenant", "ann", "runId", w->run_id);
    json_auto_t *more = take_more;
    static const int little = 4096; /* so that long messages do not go at once */
    int pair[2];

    if (more)
        json_object_update(head, more);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    world_pass(w, head, pair[1]);
    return pair[0];
}

/* The next message; NULL at the end of the connection. */
static inline json_t *world_hear(int fd)
{
    struct err e = ERR_INIT;
    json_t *message = wire_recv(fd, NULL, deadline_in_ms(WORLD_LONG), &e);

    if (!message && e.kind != ERR_CANCELLED)
        fail_msg("no message: %s", e.text);
    return message;
}

/* {"is":…} from the channel; that its container is up is passed over. */
static inline void world_expect_is(struct world *w, const char *is, const char *tier)
{
    json_auto_t *message = world_hear(w->channel);

    assert_non_null(message);
    if (strcmp(json_get_string(message, "is"), "started") == 0) {
        world_expect_is(w, is, tier);
        return;
    }
    assert_string_equal(json_get_string(message, "is"), is);
    if (tier)
        assert_string_equal(json_get_string(message, "tier"), tier);
}

/* The last message's result, with that status; what comes before it is passed over. Closes fd. */
static inline json_t *world_result(int fd, const char *status)
{
    for (;;) {
        json_auto_t *message = world_hear(fd);
        assert_non_null(message);
        if (json_object_get(message, "error"))
            fail_msg("an error: %s", json_get_string(json_object_get(message, "error"), "text"));
        json_t *result = json_object_get(message, "result");
        if (!result)
            continue;
        assert_string_equal(json_get_string(result, "status"), status);
        assert_null(world_hear(fd));
        close(fd);
        return json_incref(result); /* the message goes */
    }
}

static inline void world_expect_error(int fd, enum err_kind kind, const char *part)
{
    json_auto_t *message = world_hear(fd);
    const json_t *error = json_object_get(message, "error");

    assert_non_null(error);
    assert_int_equal(err_kind_parse(json_get_string(error, "kind")), kind);
    assert_contains(json_get_string(error, "text"), part);
    close(fd);
}

static inline void world_expect_text(const json_t *result, const char *name, const char *text)
{
    assert_string_equal(json_string_value(json_object_get(result, name)), text);
}

static inline void world_say_cancel(int fd)
{
    struct err e = ERR_INIT;
    json_auto_t *word = json_pack("{s:b}", "cancel", 1);

    assert_works(wire_send(fd, word, -1, &e), e);
}

/* What is on the shelf for the run: its result (new reference), NULL: a record without one. */
static inline json_t *world_record(struct world *w)
{
    AUTO_RUN_RECORD struct run_record r = {0};
    struct err e = ERR_INIT;
    json_t *result = NULL;

    assert_works(run_record_read(&w->f->root, w->run_id, "ann", &r, &result, &e), e);
    return result;
}

static inline bool world_has_record(struct world *w)
{
    char name[RUN_RECORD_NAME_LEN + 1];

    run_record_name(w->run_id, "ann", name);
    AUTO_FREE char *path = mem_printf("%s/" RUN_RECORDS_DIR "/%s", w->f->path, name);
    return access(path, F_OK) == 0;
}
