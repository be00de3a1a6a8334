#include "config.h"

#include "common/broker/broker.h"

#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* A run's connection, until its supervisor has taken the run: another can have it when that one
 * dies. */
struct run_call {
    struct queued_run run; /* first: a queued run is its call */
    int fd;
    json_t *head;
    struct run_request request; /* points into head, as the next */
    struct run_options options;
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

static void refuse(struct broker *b, const struct run_action *action)
{
    struct run_call *call = call_of(action->run);
    json_t *reply = wire_error_new(&action->why);
    json_t *error = json_object_get(reply, "error");

    if (action->retry_ms > 0) {
        json_object_set_new(error, "retryAfterMs", json_integer(action->retry_ms));
        json_object_set_new(error, "position", json_integer((json_int_t)action->position));
    }
    reply_send(TAKE_FD(call->fd), reply);
    call_free(b, action->run);
}

static void assign(struct broker *b, const struct run_action *action, struct child *child,
                   int64_t now_ms)
{
    loop_remove(&b->loop, &call_of(action->run)->watch);
    run_queue_assigned(b->queue, action, child, now_ms);
}

static void assign_warm(struct broker *b, const struct run_action *action, int64_t now_ms)
{
    const struct run_call *call = call_of(action->run);
    struct err e = ERR_INIT;

    if (child_io_claim(action->child, action->want.runner->image_id, call->head,
                       now_ms - call->run.asked_ms, call->fd, &e) == 0) {
        assign(b, action, action->child, now_ms);
        return;
    }
    log_debug("a warm container is gone: %s", e.text);
    child_io_release(&b->io, action->child);
}

static void assign_new(struct broker *b, struct run_action *action, int64_t now_ms)
{
    const struct run_call *call = call_of(action->run);
    const struct supervisor_spawn spawn = {.runner = action->want.runner,
                                           .head = call->head,
                                           .connection = call->fd,
                                           .network = action->want.network,
                                           .queue_ms = now_ms - call->run.asked_ms};
    struct child *child = spawn_supervisor(&b->spawner, &spawn, &action->why);

    if (child) {
        assign(b, action, child, now_ms);
        return;
    }
    log_error("%s", action->why.text);
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

/* ---- what children say ---- */

/* A message begins with its length, whose first byte is small; text inside it is not. So what is
 * next to be read is the body from its start, and the caller is still there. */
static bool body_unread(int fd)
{
    unsigned char first;
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};

    return recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && first <= WIRE_MESSAGE_MAX >> 24 &&
           poll(&p, 1, 0) == 0;
}

/* The container of a run that has ended waits for its conversation's next one. */
static void keep_container(struct broker *b, struct child *child)
{
    struct err e = ERR_INIT;

    if (child_io_tell(child, "next", &e) < 0) {
        log_debug("a used container is gone: %s", e.text);
        return;
    }
    if (child->warm_dir[0]) /* it is a sandbox now, or was not used */
        warm_dir_remove(&b->root, child->warm_dir);
    child->warm_dir[0] = '\0';
    child->claimed = child->background = false;
    child->runs++;
    crypto_random_hex(RUN_ID_LEN / 2, child->run_id);
    child_set_state(child, CHILD_WIPING);
}

static void apply_event(struct broker *b, const struct child_event *event)
{
    struct child *child = event->child;

    switch (event->kind) {
    case CHILD_READY:
        child->tier = event->tier;
        child->memory_bytes = event->memory_bytes;
        pool_note_warm(b->pool, child);
        if (child->state == CHILD_STARTING || child->state == CHILD_WIPING)
            child_set_state(child, CHILD_WAITING);
        break;
    case CHILD_TOOK_RUN:
        if (child->state == CHILD_WAITING || child->state == CHILD_WIPING)
            child_set_state(child, CHILD_RUNNING);
        call_free(b, run_queue_taken(b->queue, child));
        break;
    case CHILD_STARTED:
        if (child->state == CHILD_STARTING)
            child_set_state(child, CHILD_RUNNING);
        break;
    case CHILD_HAS_ENDED:
        child_set_state(child, CHILD_ENDED);
        call_free(b, run_queue_taken(b->queue, child));
        run_queue_release(b->queue, child, clock_mono_ms());
        if (child->kind == CHILD_SUPERVISOR)
            pool_note_end(b->pool, child, clock_mono_ms());
        if (event->reusable && !b->stopping && pool_may_reuse(b->pool, child, clock_mono_ms()))
            keep_container(b, child);
        break;
    case CHILD_DOUBTED:
        pool_note_doubt(b->pool);
        if (!child->claimed) /* else it starts another container for its run */
            child_io_release(&b->io, child);
        break;
    case CHILD_TELLS_RUNS:
        json_decref(child->calls);
        child->calls = event->runs;
        break;
    case CHILD_LEFT:
        if (child->pid == 0) /* else SIGCHLD tells of its end */
            runs_reap(b, child, 0);
        break;
    }
}

void runs_reap(struct broker *b, struct child *child, int status)
{
    struct child_event event;

    while (child_io_next_of(&b->io, child, &event)) /* what it sent last */
        apply_event(b, &event);
    bool over = child->state == CHILD_ENDED;
    if (WIFSIGNALED(status))
        log_error("run %s: its supervisor was killed by signal %d", child->run_id,
                  WTERMSIG(status));
    if (WIFSIGNALED(status) || !over) /* it may have left its container */
        housekeeper_link_ask_sweep(&b->housekeeper);
    if (!over && child->kind == CHILD_SUPERVISOR && !child->claimed && child->runs == 0 &&
        !b->stopping)
        pool_note_failed_start(b->pool, child->language, clock_mono_ms());
    struct queued_run *run = child->run;
    struct queued_run *dropped = run_queue_child_lost(
        b->queue, child, run && body_unread(call_of(run)->fd), clock_mono_ms());
    if (run && !dropped)
        log_info("run %s: its supervisor ended before it began; another gets it", child->run_id);
    call_free(b, dropped); /* the end of the connection tells its caller */
    if (child->warm_dir[0])
        warm_dir_remove(&b->root, child->warm_dir); /* unless it has become a sandbox */
    child_io_close(&b->io, child);
    children_remove(b->children, child);
}

static void runs_apply_events(struct broker *b)
{
    for (struct child_event event; child_io_next(&b->io, &event);)
        apply_event(b, &event);
}

/* Those that wait are refused; supervisors end theirs, and answer their callers. */
static void end_runs(struct broker *b, int64_t now_ms)
{
    struct err e = ERR_INIT;

    for (struct run_action action = {0}; (action.run = run_queue_unassigned(b->queue));) {
        run_queue_drop(b->queue, action.run, now_ms);
        err_set(&action.why, ERR_BUSY, "the server is stopping; the program has not begun");
        refuse(b, &action);
    }
    for (struct child *c = NULL; (c = children_next(b->children, c));) {
        if (c->kind != CHILD_SUPERVISOR || !c->claimed || c->state == CHILD_ENDED)
            continue;
        if (child_io_tell(c, "end", &e) < 0)
            log_debug("run %s cannot be told to end: %s", c->run_id, e.text);
        child_set_state(c, CHILD_ENDED);
    }
}

void runs_tick(struct broker *b)
{
    int64_t now_ms = clock_mono_ms();

    runs_apply_events(b);
    if (b->ending)
        end_runs(b, now_ms);
    for (struct run_action action; run_queue_next(b->queue, now_ms, &action);)
        carry_out(b, &action, now_ms);
}

void runs_catch_up(struct broker *b)
{
    child_io_poll(&b->io, CHILD_SUPERVISOR);
    child_io_poll(&b->io, CHILD_PSANDBOX);
    runs_apply_events(b);
}

/* ---- operations ---- */

static int call_decode(struct broker *b, struct run_call *call, struct err *e)
{
    struct queued_run *run = &call->run;

    if (wire_run_head_decode(call->head, &call->request, &call->options, e) < 0 ||
        sandbox_name(&b->root, call->request.tenant, call->request.conversation, run->sandbox_dir,
                     e) < 0 ||
        !runners_find(&b->housekeeper.runners, call->request.language, e) ||
        runners_check_network(&b->housekeeper.runners, b->config->limits.network,
                              call->request.network, e) < 0)
        return -1;
    run->tenant = call->request.tenant;
    run->conversation = call->request.conversation;
    run->language = call->request.language;
    run->imports = call->options.imports;
    run->background = call->options.background;
    run->network = run_needs_new(&call->request);
    run->single_use = call->request.single_use;
    run->detach = call->options.detach;
    run->wait_ms = call->options.wait_ms;
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

bool runs_hand(struct broker *b, int fd, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *run_id = json_get_string(head, "runId");
    struct err e = ERR_INIT;

    if (!tenant || !run_id)
        return false;
    struct child *child = children_find_run(b->children, tenant, run_id);
    /* Of one that has ended there is a record, if any. */
    return child && child->state != CHILD_ENDED && child_io_hand(child, head, fd, &e) == 0;
}

void runs_adopt(struct broker *b, int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;
    const char *run_id = json_get_string(head, "runId"), *state = json_get_string(head, "state");
    struct child *child = state && json_get_string(head, "language")
                              ? spawn_adopt_row(&b->spawner, CHILD_SUPERVISOR, run_id, head)
                              : NULL;
    struct err e = ERR_INIT;

    if (!child) {
        log_warn("a supervisor came back without saying which run it has");
        return;
    }
    child->claimed = true;
    if (strcmp(state, "ended") == 0)
        child_set_state(child, CHILD_ENDED);
    if (child_io_open(&b->io, child, TAKE_FD(fd), &e) < 0) {
        log_error("run %s: %s", child->run_id, e.text); /* it tries again */
    } else {
        log_info("run %s goes on; it began under another broker", child->run_id);
        if (child->state == CHILD_RUNNING)
            run_queue_adopt(b->queue, child);
        return;
    }
    children_remove(b->children, child);
}
