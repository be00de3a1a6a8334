#include "config.h"

#include "common/broker/broker.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/metrics.h"
#include "common/protocol/run_body.h"
#include "common/rpc/json.h"

#include <poll.h>
#include <sys/socket.h>

/* A run's connection, until its supervisor has taken the run: another can have it when that one
 * dies. */
struct run_call {
    struct queued_run run; /* first: a queued run is its call */
    int fd;
    json_t *head;            /* run points into it */
    struct loop_watch watch; /* while it is queued: has its caller left? */
};

static struct run_call *call_of(struct queued_run *run)
{
    return (struct run_call *)run;
}

/* The connection is closed, unless it was taken; run may be NULL. */
static void call_free(struct broker *b, struct queued_run *run)
{
    struct run_call *call = call_of(run);

    if (!call)
        return;
    loop_remove(&b->loop, &call->watch);
    auto_close_fd(&call->fd);
    json_decref(call->head);
    free(call);
}

/* ---- actions of the run queue ---- */

static void on_caller_left(void *owner, void *item, uint32_t events)
{
    struct broker *b = owner;
    struct run_call *call = item;

    (void)events;
    loop_remove(&b->loop, &call->watch);
    if (run_queue_leave(b->queue, &call->run, clock_mono_ms()))
        call_free(b, &call->run);
}

static void tell_position(struct broker *b, const struct run_action *action)
{
    struct run_call *call = call_of(action->run);
    json_auto_t *message = json_pack("{s:{s:I}}", "queued", "position",
                                     (json_int_t)action->position);
    struct err e = ERR_INIT;

    if (wire_post(call->fd, message, -1, &e) < 0 ||
        loop_add(&b->loop, &call->watch, call->fd, EPOLLRDHUP, on_caller_left, call, &e) < 0)
        log_debug("a queued run: %s", e.text); /* its supervisor will notice, too */
}

void runs_count(const char *language, const char *status)
{
    AUTO_BUF struct buf labels = BUF_INIT(200);

    metrics_label(&labels, "language", language);
    metrics_label(&labels, "status", status);
    metrics_add(METRIC_RUNS, buf_str(&labels), 1);
}

static void refuse(struct broker *b, const struct run_action *action)
{
    struct run_call *call = call_of(action->run);
    json_t *reply = wire_error_new(&action->why);
    json_t *error = json_object_get(reply, "error");

    if (action->retry_ms > 0) {
        json_object_set_new(error, "retryAfterMs", json_integer(action->retry_ms));
        json_object_set_new(error, "position", json_integer((json_int_t)action->position));
    }
    runs_count("-", err_kind_name(action->why.kind)); /* its language may be an invention */
    reply_send(TAKE_FD(call->fd), reply);
    call_free(b, action->run);
}

static void assign(struct broker *b, const struct run_action *action, struct child *child,
                   int64_t now_ms)
{
    loop_remove(&b->loop, &call_of(action->run)->watch);
    run_queue_assigned(b->queue, action, child, now_ms);
}

/* As its supervisor gets it. */
static struct handed_call call_handed(const struct run_action *action, int64_t now_ms)
{
    const struct run_call *call = call_of(action->run);

    return (struct handed_call){.head = call->head,
                                .connection = call->fd,
                                .sandbox_dir = call->run.sandbox_dir,
                                .image_id = action->want.runner->image_id,
                                .queue_ms = now_ms - call->run.asked_ms};
}

static void assign_warm(struct broker *b, const struct run_action *action, int64_t now_ms)
{
    const struct handed_call call = call_handed(action, now_ms);
    struct err e = ERR_INIT;

    if (child_io_hand(action->child, &call, &e) == 0) {
        assign(b, action, action->child, now_ms);
        return;
    }
    log_debug("a warm container is gone: %s", e.text);
    child_io_release(&b->io, action->child);
}

static void assign_new(struct broker *b, struct run_action *action, int64_t now_ms)
{
    const struct supervisor_start wanted = {.runner = action->want.runner,
                                            .reuse = pool_reuses(b->pool, action->want.runner),
                                            .call = call_handed(action, now_ms)};
    struct child *child = spawn_supervisor(&b->spawner, CHILD_SUPERVISOR, &wanted, &action->why);

    if (child) {
        assign(b, action, child, now_ms);
        return;
    }
    log_error("a run gets no supervisor: %s", action->why.text);
    run_queue_drop(b->queue, action->run, now_ms);
    refuse(b, action);
}

static void carry_out(struct broker *b, struct run_action *action, int64_t now_ms)
{
    switch (action->what) {
    case RUN_TELL_POSITION:
        tell_position(b, action);
        break;
    case RUN_ASSIGN:
        assign_warm(b, action, now_ms);
        break;
    case RUN_SPAWN:
        assign_new(b, action, now_ms);
        break;
    case RUN_REFUSE:
        refuse(b, action);
        break;
    }
}

/* ---- the supervisors that have runs ---- */

/* What is next to be read is the body from its start, and the caller is still there. */
static bool body_unread(int fd)
{
    unsigned char first[RUN_BODY_HEAD];
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    ssize_t n = recv(fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);

    return n > 0 && run_body_begins(first, (size_t)n) && poll(&p, 1, 0) == 0;
}

void runs_taken(struct broker *b, struct child *child)
{
    call_free(b, run_queue_taken(b->queue, child));
}

void runs_lost(struct broker *b, struct child *child)
{
    struct queued_run *run = child->run;
    struct queued_run *dropped = run_queue_child_lost(
        b->queue, child, run && body_unread(call_of(run)->fd), clock_mono_ms());

    if (run && !dropped)
        log_info("run %s: its supervisor ended before it began; another gets it", child->run_id);
    call_free(b, dropped); /* the end of the connection tells its caller */
}

/* ---- time ---- */

static void refuse_all(struct broker *b, int64_t now_ms)
{
    for (struct run_action action = {0}; (action.run = run_queue_unassigned(b->queue));) {
        run_queue_drop(b->queue, action.run, now_ms);
        err_set(&action.why, ERR_BUSY, "the server is stopping; the program has not begun");
        refuse(b, &action);
    }
}

void runs_tick(struct broker *b)
{
    int64_t now_ms = clock_mono_ms();

    if (b->ending)
        refuse_all(b, now_ms);
    for (struct run_action action; run_queue_next(b->queue, now_ms, &action);)
        carry_out(b, &action, now_ms);
}

/* ---- arrival ---- */

static int call_decode(struct broker *b, struct run_call *call, struct err *e)
{
    struct queued_run *run = &call->run;
    struct run_request request;
    struct run_options options;

    if (wire_run_head_decode(call->head, &request, &options, e) < 0 ||
        sandbox_name(&b->root, request.tenant, request.conversation, run->sandbox_dir, e) < 0 ||
        !runners_find(&b->housekeeper.runners, request.language, e) ||
        runners_check_network(&b->housekeeper.runners, b->config->limits.network, request.network,
                              e) < 0)
        return -1;
    run->tenant = request.tenant;
    run->conversation = request.conversation;
    run->language = request.language;
    run->imports = options.imports;
    run->background = options.background;
    run->network = run_needs_new(&request);
    run->single_use = request.single_use;
    run->most = tenant_limits_of(b, call->head)->concurrent_runs;
    run->detach = options.detach;
    run->wait_ms = options.wait_ms;
    return 0;
}

void runs_begin(struct broker *b, int take_fd, const json_t *head)
{
    struct run_call *call = mem_alloc(sizeof *call);
    int64_t now_ms = clock_mono_ms();
    struct run_action action = {.run = &call->run};

    *call = (struct run_call){.fd = take_fd,
                              .head = json_incref((json_t *)(uintptr_t)head), /* never changed */
                              .watch = LOOP_WATCH_INIT};
    if (call_decode(b, call, &action.why) < 0)
        refuse(b, &action);
    else if (run_queue_add(b->queue, &call->run, now_ms, &action))
        carry_out(b, &action, now_ms);
}
