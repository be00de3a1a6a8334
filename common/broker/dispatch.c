#include "config.h"

#include "common/broker/broker.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/share.h"
#include "common/protocol/audit.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/state.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

/* Jobs that wait for others: few enough to begin within their time when jobs are as short as they
 * should be. */
#define HELD_MAX         256
#define HELD_MS          10000
#define HELD_NETWORK_MS  30000 /* a test starts two containers */
#define HELD_SANDBOX_MS  5000  /* for one of the broker before; then it is busy, */
#define RESTART_RETRY_MS 2000  /* and its caller should come back in */
#define HELD_STORE_MS    30000 /* for files that are read back, */
#define STORE_RETRY_MS   5000
#define NOT_BACK         "this sandbox has not come back to it yet"

/* ---- jobs ---- */

/* For whose share a job counts; heap. A link names a sandbox instead of a tenant: for a job that
 * lasts its record is read, which names the tenant; for others the sandbox itself counts as one. */
static char *job_tenant(const struct broker *b, enum job_limit limit, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    AUTO_STATE_RECORD struct state_record record = {0};
    struct err e = ERR_INIT;
    char sandbox_dir[SANDBOX_NAME_LEN + 1];

    if (tenant)
        return mem_strdup(tenant);
    json_copy_string(head, "subject", sandbox_dir, sizeof sandbox_dir);
    if (limit != JOB_LIMIT_DEFAULT && state_name_ok(sandbox_dir) &&
        state_read(&b->root, sandbox_dir, &record, &e) == 0)
        return mem_strdup(record.tenant);
    return mem_strdup(sandbox_dir);
}

/* As spawn_job, with a socket for the room that a content needs. */
static int job_spawn(struct broker *b, const struct job_world *world, struct job_call call,
                     const char *tenant, struct err *e)
{
    AUTO_FD int room_fd = -1;

    if (op_brings_content(op_of(call.head)) && (room_fd = rooms_open(&b->rooms, e)) < 0)
        return -1;
    call.room_fd = room_fd;
    return spawn_job(&b->spawner, world, &call, tenant, e);
}

static void job_begin(struct broker *b, int take_fd, const json_t *head, int passed_fd,
                      const char *tenant)
{
    const struct job_world world = {.config = b->config,
                                    .root = &b->root,
                                    .runners = &b->housekeeper.runners,
                                    .children = b->children,
                                    .queue = b->queue,
                                    .pool = b->pool};
    enum broker_op op = op_of(head);
    AUTO_FD int fd = take_fd;
    json_auto_t *work = NULL;
    struct err e = ERR_INIT;

    if (op == OP_DELETE_CONVERSATION || op == OP_LIST_RUNS)
        supervisors_catch_up(b); /* what has ended uses nothing any more, and is listed as such */
    if (op == OP_DELETE_CONVERSATION) {
        work = prune_conversation(&b->prune, head, &e);
        if (!work) {
            reply_send_error(TAKE_FD(fd), &e);
            return;
        }
    }
    const struct job_call call = {
        .head = work ? work : head, .fd = fd, .passed_fd = passed_fd, .room_fd = -1};
    /* The end of the connection tells its caller. */
    if (job_spawn(b, &world, call, tenant, &e) < 0)
        log_error("%s gets no process: %s", op_name(op), e.text);
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
    /* The job answers when something is wrong with the head. */
    if (op == OP_PUT && sandbox_name_of(&b->root, head, sandbox_dir, &e) == 0)
        pool_note_upload(b->pool, sandbox_dir, clock_mono_ms());
}

/* ---- calls that are held ---- */

/* Has a wanted network not been tested yet? */
static bool awaits_network(const struct broker *b, const json_t *head)
{
    enum network_tier tier = wire_network(head);

    return tier != NETWORK_NONE && tier <= b->config->limits.network &&
           !b->housekeeper.runners.network_tested[tier] && !*b->housekeeper.runners.engine_error;
}

struct held_call {
    struct held_call *next;
    bool job; /* it waits for other jobs to end; else for what comes before a call begins */
    int fd, passed_fd;
    json_t *head;
    char *tenant;
    struct deadline end;
    char store[SANDBOX_NAME_LEN + 1]; /* whose files are read back; "": none */
    struct err store_why;             /* why they were not */
};

/* The connection is closed, unless it was taken. */
static void held_free(struct held_call *call)
{
    auto_close_fd(&call->fd);
    auto_close_fd(&call->passed_fd);
    json_decref(call->head);
    free(call->tenant);
    free(call);
}

static struct held_call *held_take(struct held_call **at)
{
    struct held_call *call = *at;

    *at = call->next;
    return call;
}

static bool held_is_left(const struct held_call *call)
{
    struct pollfd p = {.fd = call->fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) != 0;
}

static void refuse_as_busy(int take_fd)
{
    struct err e;

    err_set(&e, ERR_BUSY,
            "too many operations are waiting for others to end; try again in a while");
    reply_send_error(take_fd, &e);
}

static void refuse_as_restarted(int take_fd, const char *why)
{
    struct err e;

    err_set(&e, ERR_BUSY, "the server has just been restarted, and %s; try again in %d s", why,
            RESTART_RETRY_MS / 1000);
    reply_send_refusal(take_fd, &e, RESTART_RETRY_MS);
}

static void refuse_without_files(int take_fd, const struct err *why)
{
    struct err e = *why;

    if (e.kind == ERR_NONE)
        err_set(&e, ERR_BUSY, "this conversation's files are being read back from the store");
    if (e.kind == ERR_BUSY)
        err_set(&e, ERR_BUSY, "%s; try again in %d s", e.text, STORE_RETRY_MS / 1000);
    reply_send_refusal(take_fd, &e, STORE_RETRY_MS);
}

static bool held_is_full(const struct broker *b, const char *tenant)
{
    size_t own = 0, all = 0;

    for (const struct held_call *call = b->held.first; call; call = call->next, all++)
        own += strcmp(call->tenant, tenant) == 0;
    return !share_allows(own, all, HELD_MAX);
}

/* Calls whose callers have left make room. */
static bool held_has_room(struct broker *b, const char *tenant)
{
    if (!held_is_full(b, tenant))
        return true;
    for (struct held_call **at = &b->held.first; *at;) {
        if (held_is_left(*at))
            held_free(held_take(at));
        else
            at = &(*at)->next;
    }
    return !held_is_full(b, tenant);
}

static struct held_call *call_hold(struct broker *b, int take_fd, const json_t *head,
                                   int take_passed_fd, const char *tenant, bool job, int ms)
{
    struct held_call *call = mem_alloc(sizeof *call);
    struct held_call **at = &b->held.first;

    *call = (struct held_call){.job = job,
                               .fd = take_fd,
                               .passed_fd = take_passed_fd,
                               .head = json_incref((json_t *)(uintptr_t)head), /* never changed */
                               .tenant = mem_strdup(tenant),
                               .end = deadline_in_ms(ms)};
    while (*at)
        at = &(*at)->next;
    *at = call;
    return call;
}

static void job_ask(struct broker *b, int take_fd, const json_t *head, int take_passed_fd)
{
    AUTO_FD int fd = take_fd;
    AUTO_FD int passed = take_passed_fd;
    enum job_limit limit = op_row(op_of(head))->limit;
    AUTO_FREE char *tenant = job_tenant(b, limit, head);
    struct err e = ERR_INIT;

    switch (job_limits_ask(b->children, limit, tenant, &e)) {
    case JOB_MAY_BEGIN:
        job_begin(b, TAKE_FD(fd), head, passed, tenant);
        break;
    case JOB_MUST_WAIT:
        if (held_has_room(b, tenant))
            call_hold(b, TAKE_FD(fd), head, TAKE_FD(passed), tenant, true, HELD_MS);
        else
            refuse_as_busy(TAKE_FD(fd));
        break;
    case JOB_IS_BUSY:
        reply_send_error(TAKE_FD(fd), &e);
        break;
    }
}

static void call_begin(struct broker *b, int take_fd, const json_t *head, int take_passed_fd);

/* false: it is held on. */
static bool held_job_settle(struct broker *b, struct held_call *call)
{
    enum job_limit limit = op_row(op_of(call->head))->limit;
    struct err e = ERR_INIT;
    enum job_answer answer = job_limits_ask(b->children, limit, call->tenant, &e);

    if (answer == JOB_MUST_WAIT && !deadline_passed(call->end))
        return false;
    if (answer == JOB_MAY_BEGIN && !held_is_left(call))
        job_begin(b, TAKE_FD(call->fd), call->head, call->passed_fd, call->tenant);
    else if (answer == JOB_IS_BUSY)
        reply_send_error(TAKE_FD(call->fd), &e);
    else if (answer == JOB_MUST_WAIT)
        refuse_as_busy(TAKE_FD(call->fd));
    return true;
}

static bool held_call_waits(struct broker *b, const struct held_call *call)
{
    return !deadline_passed(call->end) &&
           ((*call->store && readback_is_asking(&b->readback, call->store)) ||
            awaits_network(b, call->head) || (!b->stopping && supervisors_await(b, call->head)));
}

static void held_call_begin(struct broker *b, struct held_call *call)
{
    if (call->store_why.kind != ERR_NONE ||
        (*call->store && readback_is_asking(&b->readback, call->store)))
        refuse_without_files(TAKE_FD(call->fd), &call->store_why);
    else if (supervisors_await(b, call->head))
        refuse_as_restarted(TAKE_FD(call->fd), NOT_BACK);
    else
        call_begin(b, TAKE_FD(call->fd), call->head, TAKE_FD(call->passed_fd));
}

void dispatch_tick(struct broker *b)
{
    if (!b->stopping && !deadline_passed(dispatch_due(b)))
        return;
    b->held.retry = false;
    for (struct held_call **at = &b->held.first; *at;) {
        struct held_call *call = *at;

        if (call->job ? !held_job_settle(b, call) : held_call_waits(b, call)) {
            at = &call->next;
            continue;
        }
        held_take(at);
        if (!call->job) {
            held_call_begin(b, call);
            at = &b->held.first; /* others may have been held or dropped */
        }
        held_free(call);
    }
}

void dispatch_read_back(void *ctx, const char *sandbox_dir, const struct err *why)
{
    struct broker *b = ctx;

    for (struct held_call *call = b->held.first; call; call = call->next)
        if (strcmp(call->store, sandbox_dir) == 0)
            call->store_why = *why;
    b->held.retry = true;
}

struct deadline dispatch_due(const struct broker *b)
{
    struct deadline first = b->held.retry ? deadline_in_ms(0) : DEADLINE_NEVER;

    for (const struct held_call *call = b->held.first; call; call = call->next)
        first = deadline_min(first, call->end);
    return first;
}

/* ---- operations ---- */

/* The line of an administrator's command (audit.h). */
static void take_audit(int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;
    struct err e = ERR_INIT;
    pid_t pid = 0;
    uid_t uid;

    bool done = sock_peer(fd, &uid, &pid, &e) == 0 && audit_take(head, pid, uid, &e) == 0;
    reply_send(TAKE_FD(fd), done ? wire_result_new(json_object()) : wire_error_new(&e));
}

/* OP_BY_MAIN; false: a job. */
static bool begin_by_main(struct broker *b, enum broker_op op, int *fd, const json_t *head)
{
    struct err e = ERR_INIT;
    json_t *runners;
    int rc;

    switch (op) {
    case OP_RUN:
        runs_begin(b, TAKE_FD(*fd), head);
        return true;
    case OP_ADOPT:
        supervisors_adopt(b, TAKE_FD(*fd), head);
        return true;
    case OP_RUNNERS:
        /* Each worker asks for it before its first run: not worth a process. */
        runners = job_runners(&b->housekeeper.runners, &e);
        reply_send(TAKE_FD(*fd), runners ? wire_result_new(runners) : wire_error_new(&e));
        return true;
    case OP_EXCHANGE_CONVERSATION:
        supervisors_catch_up(b); /* what has ended uses nothing any more */
        rc = prune_exchange(&b->prune, head, &e);
        reply_send(TAKE_FD(*fd), rc == 0 ? wire_result_new(json_object()) : wire_error_new(&e));
        return true;
    case OP_CREATE_PSANDBOX:
        psandboxes_begin(b, TAKE_FD(*fd), head);
        return true;
    case OP_AUDIT:
        take_audit(TAKE_FD(*fd), head);
        return true;
    default: /* OP_DELETE_CONVERSATION begins here and ends in a job */
        return false;
    }
}

/* A background run in a persistent sandbox counts as others do (run_queue.h). */
static int check_background(struct broker *b, enum broker_op op, const json_t *head, struct err *e)
{
    const char *tenant = json_get_string(head, "tenant");

    if ((op != OP_EXEC && op != OP_SESSION) || !tenant || !json_get_bool(head, "background", 0))
        return 0;
    return run_queue_check_background(b->queue, tenant, e);
}

static void call_begin(struct broker *b, int take_fd, const json_t *head, int take_passed_fd)
{
    AUTO_FD int fd = take_fd;
    AUTO_FD int passed = take_passed_fd;
    enum broker_op op = op_of(head);
    struct err e = ERR_INIT;
    int64_t retry_ms = 0;
    bool done = false;

    if (op == OP_RUN || op == OP_CREATE_PSANDBOX || op == OP_SESSION || op == OP_EXEC)
        supervisors_catch_up(b); /* what has just ended makes room; its container may serve again */
    if (tenant_limits_check(b, op, head, &retry_ms, &e) < 0) {
        runs_count("-", err_kind_name(e.kind));
        reply_send_refusal(TAKE_FD(fd), &e, retry_ms);
        return;
    }
    if (check_background(b, op, head, &e) < 0) {
        reply_send_error(TAKE_FD(fd), &e);
        return;
    }

    switch (op_row(op)->by) {
    case OP_BY_MAIN:
        done = begin_by_main(b, op, &fd, head);
        break;
    case OP_BY_SUPERVISOR:
        done = supervisors_hand(b, fd, head);
        if (!done && op == OP_SESSION) {
            psandboxes_begin(b, TAKE_FD(fd), head);
            done = true;
        }
        break;
    case OP_BY_JOB:
        break;
    }
    if (!done)
        job_ask(b, TAKE_FD(fd), head, TAKE_FD(passed));
}

static bool has_body(enum broker_op op)
{
    return op == OP_RUN || op == OP_SESSION || op == OP_EXEC;
}

/* A link names no tenant: its conversation counts as one. */
static void hold_for_files(struct broker *b, int take_fd, const json_t *head, int take_passed_fd,
                           const char *sandbox_dir)
{
    const char *tenant = json_get_string(head, "tenant");
    AUTO_FD int fd = take_fd;
    AUTO_FD int passed = take_passed_fd;

    if (!tenant)
        tenant = sandbox_dir;
    if (!held_has_room(b, tenant)) {
        refuse_as_busy(TAKE_FD(fd));
        return;
    }
    struct held_call *call = call_hold(b, TAKE_FD(fd), head, TAKE_FD(passed), tenant, false,
                                       HELD_STORE_MS);
    memcpy(call->store, sandbox_dir, sizeof call->store);
    readback_ask(&b->readback, sandbox_dir);
}

/* At the door, before anything is done for the sender. */
static void refuse_sender(int take_fd, enum op_sender sender, enum broker_op op)
{
    static const char *const names[OP_SENDERS] = {[OP_FROM_OWN] = "the server's account",
                                                  [OP_FROM_CALLS] = "a worker",
                                                  [OP_FROM_HUB] = "the hub",
                                                  [OP_FROM_METRICS] = "the process for metrics"};
    struct err e;

    log_warn("refused %s, which %s may not send", op_name(op), names[sender]);
    err_set(&e, ERR_DENIED, "%s: this process may not send it", op_name(op));
    reply_send_error(take_fd, &e);
}

void dispatch_call(void *ctx, int take_fd, enum op_sender sender, const json_t *head,
                   int take_passed_fd)
{
    struct broker *b = ctx;
    AUTO_FD int passed = take_passed_fd;
    const enum broker_op op = op_of(head);
    const char *tenant = json_get_string(head, "tenant");
    char files[SANDBOX_NAME_LEN + 1];

    if (!op_may_come_from(op, sender)) {
        refuse_sender(take_fd, sender, op);
        return;
    }
    bool sandbox = tenant && supervisors_await(b, head);
    if (has_body(op) && !op_is_of_this_version(head))
        refuse_as_restarted(take_fd, "this call came from a process of the version before (a "
                                     "sandcgi stdio of that version must be started again)");
    else if (readback_wants(&b->readback, head, files))
        hold_for_files(b, take_fd, head, TAKE_FD(passed), files);
    else if (tenant && (sandbox || awaits_network(b, head)) && held_has_room(b, tenant))
        call_hold(b, take_fd, head, TAKE_FD(passed), tenant, false,
                  sandbox ? HELD_SANDBOX_MS : HELD_NETWORK_MS);
    else if (sandbox)
        refuse_as_restarted(take_fd, NOT_BACK);
    else
        call_begin(b, take_fd, head, TAKE_FD(passed));
}
