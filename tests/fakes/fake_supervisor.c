/*
 * Supervisors without an engine: the place of common/supervisor/supervisor_main.c in tests of the
 * broker's main process. A run's code says how it goes:
 *
 *   out TEXT   answers TEXT;
 *   sleep MS   answers after that time, or as soon as it is cancelled (status "cancelled");
 *   hold NAME  makes the file NAME in SANDBOX_ROOT, and answers when the test has removed it;
 *   crash      dies after it has taken the run up;
 *   doubt      cannot be wiped: with SANDBOX_REUSE the others wait for further runs.
 *
 * A file crash-once in SANDBOX_ROOT kills the supervisor that finds it before it reads its run.
 *
 * A persistent sandbox answers its creator with its id, everything that is handed over with
 * {"by": its id, "op": …, "pid"}, and ends with close_psandbox or when it is told to; in the
 * conversation "lingers" not without a main process. In "busy" what it was handed never ends.
 */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/base/sock.h"
#include "common/protocol/entry_record.h"
#include "common/protocol/run_body.h"
#include "common/protocol/run_id.h"
#include "common/rpc/json.h"
#include "common/supervisor/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define START_MS 20    /* a container's start */
#define NEXT_MS  5000  /* for the broker to say whether it serves again */
#define LONG_MS  20000 /* what is on its way arrives within this */

struct fake {
    const struct supervisor_start *start;
    char run_id[RUN_ID_LEN + 1];
    int channel, caller, reader; /* reader: a get_run that waits for the end */
    json_t *head;
    int64_t queue_ms;
    struct deadline end; /* of the program */
    const char *status;
    bool prestarted;
    bool doubt, next;
    bool adopted;     /* by a broker that does not let it serve again */
    const char *held; /* a file: the program goes on while it is there */
};

static void say(const struct fake *f, const char *word)
{
    struct err e = ERR_INIT;
    json_auto_t *message = json_pack("{s:s, s:s, s:b}", "is", word, "tier", "started", "reusable",
                                     f->start->config->pool.reuse);
    if (f->channel >= 0)
        wire_post(f->channel, message, -1, &e);
}

static void answer(int *take_fd, json_t *take_result)
{
    struct err e = ERR_INIT;
    json_auto_t *reply = wire_result_new(take_result);
    if (*take_fd < 0)
        return;
    wire_send(*take_fd, reply, -1, &e);
    shutdown(*take_fd, SHUT_RDWR);
    auto_close_fd(take_fd);
}

static json_t *result_new(const struct fake *f, const char *text)
{
    return json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:s}", "status", f->status, "stdout", text,
                     "runId", f->run_id, "prestarted", f->prestarted, "queueMs",
                     (json_int_t)f->queue_ms, "pid", (json_int_t)getpid(), "conversationId",
                     json_get_string(f->head, "conversationId"));
}

/* The next broker is found where the caller found this one. */
static void redial(struct fake *f)
{
    struct sockaddr_un a = {0};
    socklen_t len = sizeof a;
    struct err e = ERR_INIT;
    f->adopted = true;
    auto_close_fd(&f->channel);
    getsockname(f->caller, (struct sockaddr *)&a, &len);
    while (f->channel < 0 && !deadline_passed(f->end)) {
        poll(NULL, 0, 20);
        f->channel = sock_connect_unix(a.sun_path, &e);
    }
    json_auto_t *head = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "op", "adopt", "call", "run",
                                  "runId", f->run_id, "tenant", json_get_string(f->head, "tenant"),
                                  "conversationId", json_get_string(f->head, "conversationId"),
                                  "language", json_get_string(f->head, "language"));
    if (f->channel >= 0)
        wire_post(f->channel, head, -1, &e);
}

/* A run or a reader comes over the channel; false: it has ended. */
static bool hear_channel(struct fake *f, int wait_ms)
{
    struct err e = ERR_INIT;
    int connection = -1;
    json_auto_t *message = wire_recv(f->channel, &connection, deadline_in_ms(wait_ms), &e);
    if (!message)
        return false;
    const char *what = json_get_string(message, "do");
    const json_t *head = json_object_get(message, "head");
    const char *op = json_get_string(head, "op");
    if (strcmp(what, "next") == 0) {
        f->next = true;
    } else if (op && strcmp(op, "run") == 0) {
        snprintf(f->run_id, sizeof f->run_id, "%s", json_get_string(message, "runId"));
        f->caller = connection;
        f->head = json_deep_copy(head);
        f->queue_ms = json_get_integer(message, "queueMs", -1);
    } else if (op && strcmp(op, "get_run") == 0) {
        auto_close_fd(&f->reader);
        f->reader = connection;
    } else if (strcmp(what, "end") == 0) {
        f->status = "cancelled";
        f->end = deadline_in_ms(0);
    } else if (op && strcmp(op, "cancel_run") == 0) {
        f->status = "cancelled";
        f->end = deadline_in_ms(0);
        answer(&connection, result_new(f, ""));
    }
    return true;
}

static void go_on(struct fake *f, const char *text)
{
    while (!deadline_passed(f->end)) {
        struct pollfd p[2] = {{.fd = f->channel, .events = POLLIN},
                              {.fd = f->caller, .events = POLLIN}};
        if (poll(p, 2, f->held ? 5 : deadline_poll_ms(f->end)) <= 0) {
            if (f->held && faccessat(f->start->root->fd, f->held, F_OK, 0) < 0)
                f->end = deadline_in_ms(0);
            continue;
        }
        if (p[0].revents && !hear_channel(f, LONG_MS))
            redial(f);
        if (p[1].revents) {
            struct err e = ERR_INIT;
            json_auto_t *word = wire_recv(f->caller, NULL, deadline_in_ms(LONG_MS), &e);
            if (word) {
                f->status = "cancelled";
                f->end = deadline_in_ms(0);
            } else {
                auto_close_fd(&f->caller);
            }
        }
    }
    say(f, "ended");
    answer(&f->reader, result_new(f, text));
    answer(&f->caller, result_new(f, text));
}

/* As the conversation's first run does: later calls find its directory. */
static void make_sandbox(const struct fake *f)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct err e = ERR_INIT;
    sandbox_open(f->start->root, json_get_string(f->head, "tenant"),
                 json_get_string(f->head, "conversationId"), &sb, &e);
}

static void serve(struct fake *f)
{
    struct err e = ERR_INIT;
    make_sandbox(f);
    if (unlinkat(f->start->root->fd, "crash-once", 0) == 0)
        raise(SIGKILL);
    AUTO_RUN_BODY struct run_body body = RUN_BODY_INIT;
    AUTO_BUF struct buf text = BUF_INIT(WIRE_MESSAGE_MAX);
    if (sock_recv_message(f->caller, &body.message, NULL, deadline_in_ms(LONG_MS), &e) < 0 ||
        run_body_take(&body, &e) < 0)
        return;
    entry_records_join(body.message.data, body.streams_len, 'C', &text);
    const char *code = buf_str(&text);
    say(f, "running");
    if (!f->prestarted)
        poll(NULL, 0, START_MS);
    say(f, "started");
    if (strcmp(code, "crash") == 0)
        raise(SIGKILL);
    f->doubt = strcmp(code, "doubt") == 0;
    f->status = "ok";
    uint64_t sleep_ms = 0;
    if (strncmp(code, "sleep ", 6) == 0)
        parse_u64(code + 6, 0, 600000, &sleep_ms);
    f->held = strncmp(code, "hold ", 5) == 0 ? code + 5 : NULL;
    if (f->held)
        close(openat(f->start->root->fd, f->held, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    f->end = deadline_in_ms(f->held ? 10 * LONG_MS : (int64_t)sleep_ms);
    go_on(f, strncmp(code, "out ", 4) == 0 ? code + 4 : "");
}

/* A container that has served a run; false: it ends. */
static bool wait_for_next(struct fake *f)
{
    auto_close_fd(&f->reader);
    json_decref(TAKE_PTR(f->head));
    f->prestarted = true;
    while (f->start->config->pool.reuse && !f->adopted && !f->next && f->channel >= 0 &&
           hear_channel(f, NEXT_MS))
        ;
    if (!f->next)
        return false;
    f->next = false;
    say(f, f->doubt ? "doubted" : "waiting");
    while (!f->doubt && !f->head && hear_channel(f, LONG_MS))
        ;
    return f->head != NULL;
}

/* ---- persistent sandboxes ---- */

static void psandbox_answer(const struct supervisor_start *start, int take_fd, const char *op)
{
    struct err e = ERR_INIT;
    char id[PSANDBOX_ID_LEN + 1];

    psandbox_id_write(start->container_id, id);
    json_auto_t *reply = wire_result_new(json_pack(
        "{s:s, s:s, s:i, s:s, s:s}", "by", id, "op", op, "pid", (int)getpid(), "sandboxId", id,
        "image",
        start->runner ? start->runner->image : json_get_string(start->call.head, "image")));
    json_auto_t *over = json_pack("{s:s, s:[], s:i}", "is", "runs", "runs", "dealt",
                                  strcmp(op, "session") == 0 || strcmp(op, "exec") == 0);
    if (strcmp(json_get_string(start->call.head, "conversationId"), "busy") != 0)
        wire_send(start->channel, over, -1, &e);
    wire_send(take_fd, reply, -1, &e);
    shutdown(take_fd, SHUT_RDWR);
    auto_close_fd(&take_fd);
}

/* false: it ends. */
static bool psandbox_heed(const struct supervisor_start *start, int *last_fd, const char **last_op)
{
    struct err e = ERR_INIT;
    int connection = -1;
    json_auto_t *message = wire_recv(start->channel, &connection, DEADLINE_NEVER, &e);
    const json_t *head = json_object_get(message, "head");
    const char *op = json_get_string(head, "op");

    if (!message && strcmp(json_get_string(start->call.head, "conversationId"), "lingers") == 0)
        pause();
    if (!op)
        return false;
    if (strcmp(op, "close_psandbox") == 0) {
        *last_fd = connection;
        *last_op = "close_psandbox";
        return false;
    }
    psandbox_answer(start, connection, op);
    return true;
}

static void psandbox_main(const struct supervisor_start *start)
{
    json_auto_t *ended = json_pack("{s:s}", "is", "ended");
    const char *last_op = NULL;
    struct err e = ERR_INIT;
    int last_fd = -1;

    psandbox_answer(start, start->call.connection, json_get_string(start->call.head, "op"));
    while (psandbox_heed(start, &last_fd, &last_op))
        ;
    wire_send(start->channel, ended, -1, &e);
    if (last_fd >= 0)
        psandbox_answer(start, last_fd, last_op);
    close(start->channel);
}

void supervisor_main(const struct supervisor_start *start)
{
    if (start->psandbox) {
        psandbox_main(start);
        return;
    }
    struct fake f = {.start = start,
                     .channel = start->channel,
                     .caller = start->call.connection,
                     .reader = -1,
                     .head = json_incref((json_t *)(uintptr_t)start->call.head),
                     .queue_ms = start->call.queue_ms,
                     .status = "ok"};
    memcpy(f.run_id, start->container_id, sizeof f.run_id);
    if (!f.head) {
        f.prestarted = true;
        poll(NULL, 0, START_MS);
        say(&f, "waiting");
        while (!f.head && hear_channel(&f, LONG_MS))
            ;
    }
    while (f.head) {
        serve(&f);
        if (!wait_for_next(&f))
            break;
    }
    auto_close_fd(&f.reader);
    auto_close_fd(&f.caller);
    auto_close_fd(&f.channel);
    json_decref(f.head);
}
