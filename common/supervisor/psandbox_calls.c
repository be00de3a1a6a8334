#include "config.h"

#include "common/supervisor/psandbox_self.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/ops.h"
#include "common/protocol/run_id.h"
#include "common/protocol/wire.h"
#include "common/records/kept_runs.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/sizes.h"

#include <string.h>

static bool has_commands(enum psandbox_kind kind)
{
    return kind == PSANDBOX_EXEC || kind == PSANDBOX_SESSION;
}

struct psandbox_call *psandbox_call_of(const struct psandbox *s, const struct waiter *r)
{
    for (size_t i = 0; i < s->n_calls; i++)
        if (s->calls[i]->waiter == r)
            return s->calls[i];
    return NULL;
}

size_t psandbox_busy(const struct psandbox *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_calls; i++)
        n += has_commands(s->calls[i]->kind);
    return n;
}

json_t *psandbox_runs_new(const struct psandbox *s, const struct psandbox_call *but)
{
    json_t *runs = json_array();

    for (size_t i = 0; i < s->n_calls; i++) {
        const struct awaited_run *run = &s->calls[i]->run;

        if (run->output && s->calls[i] != but)
            json_array_append_new(runs, json_pack("{s:s, s:s, s:I, s:b}", "runId", run->id,
                                                  "language", run->record.language, "createdAt",
                                                  (json_int_t)run->record.created, "background",
                                                  run->options.background));
    }
    return runs;
}

/* So that lists of runs have them, and the tenant's limits hold. */
static void tell_runs(struct psandbox *s, const struct psandbox_call *but)
{
    channel_send(&s->base.channel,
                 json_pack("{s:s, s:o, s:i, s:I}", "is", "runs", "runs", psandbox_runs_new(s, but),
                           "dealt", (int)s->n_dealt, "ranMs", (json_int_t)s->ran_ms));
    s->n_dealt = 0;
    s->ran_ms = 0;
}

/* A call to run something has begun, or never will. */
static void tell_dealt(struct psandbox *s)
{
    s->n_dealt++;
    tell_runs(s, NULL);
}

static void call_free(struct psandbox_call *call)
{
    psandbox_listing_clear(call);
    awaited_run_clear(&call->run);
    output_free(call->output);
    json_decref(call->results);
    free(call);
}

static void call_remove(struct psandbox *s, struct psandbox_call *call)
{
    const bool never_began = has_commands(call->kind) && !call->run.output;
    size_t at = 0;

    while (s->calls[at] != call)
        at++;
    memmove(&s->calls[at], &s->calls[at + 1], (s->n_calls - at - 1) * sizeof *s->calls);
    s->n_calls--;
    if (s->session.cell == call)
        s->session.cell = NULL;
    if (has_commands(call->kind))
        s->used_ms = clock_mono_ms();
    call_free(call);
    if (never_began)
        tell_dealt(s);
}

/* ---- answers ---- */

void psandbox_answer(struct psandbox *s, struct psandbox_call *call, json_t *take_reply)
{
    json_auto_t *reply = take_reply;

    if (call->run.output) {
        s->ran_ms += call->run.began_ms > 0 ? clock_mono_ms() - call->run.began_ms : 0;
        tell_runs(s, call);
        awaited_run_end(&call->run, json_incref(reply)); /* which takes it */
        awaited_run_record_end(&call->run);              /* it is listed as over from now on */
        awaited_run_answer(&call->run);
        awaited_run_log(&call->run);
    } else if (call->waiter) {
        waiter_answer(call->waiter, reply);
    }
    call_remove(s, call);
}

void psandbox_refuse(struct psandbox *s, struct psandbox_call *call, const struct err *e)
{
    psandbox_answer(s, call, wire_error_new(e));
}

void psandbox_answer_all(struct psandbox *s, enum psandbox_kind kind, json_t *take_reply)
{
    json_auto_t *reply = take_reply;

    for (size_t i = s->n_calls; i > 0; i--)
        if (s->calls[i - 1]->kind == kind)
            psandbox_answer(s, s->calls[i - 1], json_incref(reply)); /* each takes a reference */
}

static void answer_log(struct psandbox *s, struct waiter *r)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * OUTPUT_NEWEST);
    uint64_t next, skipped;

    output_text(s->log, output_oldest(s->log), OUTPUT_NEWEST, true, &text, &next, &skipped);
    json_auto_t *reply = json_pack("{s:{s:o}}", "result", "text",
                                   json_stringn(buf_str(&text), text.len));
    waiter_answer(r, reply);
}

/* ---- get_run and cancel_run ---- */

static struct psandbox_call *call_with_run(const struct psandbox *s, const json_t *head)
{
    for (size_t i = 0; i < s->n_calls; i++)
        if (awaited_run_is(&s->calls[i]->run, head))
            return s->calls[i];
    return NULL;
}

/* Of a run that is over: from its record. */
static void answer_from_record(struct psandbox *s, const json_t *head, int take_connection)
{
    struct err e = ERR_INIT;
    json_t *result = kept_run_get(s->base.start->root, head, deadline_in_ms(0), &e);
    struct waiter *r = result ? waiters_add(&s->base.waiters, take_connection, WAITER_POLL) : NULL;
    json_auto_t *reply = result ? wire_result_new(result) : NULL;

    if (result && !r)
        err_set(&e, ERR_BUSY, "too many callers wait; try again soon");
    if (r)
        waiter_answer(r, reply);
    else
        waiter_refuse(take_connection, &e);
}

static void take_poll(struct psandbox *s, const json_t *head, int take_connection)
{
    struct psandbox_call *call = call_with_run(s, head);

    if (!call) {
        answer_from_record(s, head, take_connection);
        return;
    }
    awaited_run_add_poll(&call->run, head, take_connection);
    if (op_of(head) == OP_CANCEL_RUN)
        psandbox_cancel(s, call);
}

/* ---- new calls ---- */

/* The main process finds the sandbox by its id; that the call is its owner's is checked here too.
 */
static bool is_ours(const struct psandbox *s, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *psandbox_id = json_get_string(head, "sandboxId");
    const char *conversation = json_get_string(head, "conversationId");
    const char *run_id = psandbox_id ? psandbox_run_id(psandbox_id) : NULL;

    if (!tenant || strcmp(tenant, s->tenant) != 0)
        return false;
    if (psandbox_id)
        return run_id && strcmp(run_id, s->base.start->container_id) == 0;
    return conversation && strcmp(conversation, s->conversation) == 0;
}

static void call_add(struct psandbox *s, json_t *head, enum psandbox_kind kind, struct waiter *r)
{
    struct psandbox_call *call = mem_alloc(sizeof *call);

    *call = (struct psandbox_call){.kind = kind,
                                   .waiter = r,
                                   .came_ms = clock_mono_ms(),
                                   .run = AWAITED_RUN_INIT,
                                   .end = DEADLINE_NEVER};
    call->run.head = json_incref(head);
    s->calls[s->n_calls++] = call;
    if (has_commands(kind)) {
        r->body_due = true;
        r->inbox.message.max = WIRE_MESSAGE_MAX;
    }
    if (kind == PSANDBOX_CLOSE)
        psandbox_stop(s, "closed", PSANDBOX_CLOSED_BY_OWNER);
}

void psandbox_take_call(void *owner, const json_t *message, int take_connection)
{
    static const enum broker_op ops[] = {[PSANDBOX_CREATE] = OP_CREATE_PSANDBOX,
                                         [PSANDBOX_EXEC] = OP_EXEC,
                                         [PSANDBOX_SESSION] = OP_SESSION,
                                         [PSANDBOX_CLOSE] = OP_CLOSE_PSANDBOX};
    struct psandbox *s = owner;
    json_t *head = json_object_get(message, "head");
    enum broker_op op = op_of(head);
    bool log = op == OP_PSANDBOX_LOGS;

    if (op == OP_GET_RUN || op == OP_CANCEL_RUN) {
        take_poll(s, head, take_connection);
        return;
    }
    enum psandbox_kind kind = PSANDBOX_CREATE;
    struct waiter *r = NULL;
    struct err e = ERR_INIT;

    while (kind < ARRAY_LEN(ops) && op != ops[kind])
        kind++;
    bool full = !log && (s->n_calls == PSANDBOX_CALLS_MAX ||
                         (has_commands(kind) && psandbox_busy(s) == PSANDBOX_AT_ONCE));
    if (!is_ours(s, head))
        err_set(&e, ERR_NOT_FOUND, "%s", WIRE_NO_SUCH_SANDBOX);
    else if (!log && kind == ARRAY_LEN(ops))
        err_set(&e, ERR_INVALID, "no such operation");
    else if (full || !(r = waiters_add(&s->base.waiters, take_connection, WAITER_CALLER)))
        err_set(&e, ERR_BUSY,
                "sandboxId: too many calls for this sandbox at once; try again when one has ended");
    if (!r) {
        waiter_refuse(take_connection, &e);
        if (kind < ARRAY_LEN(ops) && has_commands(kind))
            tell_dealt(s);
    } else if (log) {
        answer_log(s, r);
    } else {
        call_add(s, head, kind, r);
    }
}

/* Of a call that was cancelled before it ran. */
static json_t *cancelled_new(struct psandbox_call *call)
{
    const struct snapshot none = {0};
    json_t *result;

    call->run.killed = KILLED_BY_CANCEL;
    awaited_run_set_nothing_ran(&call->run);
    result = run_result_new(&call->run.story, &call->run.outcome, &none, &none);
    if (call->kind == PSANDBOX_EXEC)
        json_object_set_new(result, "results", json_array());
    return result;
}

void psandbox_cancel(struct psandbox *s, struct psandbox_call *call)
{
    struct err e = ERR_INIT;

    if (call->kind == PSANDBOX_CREATE) {
        psandbox_stop(s, "closed", "its creator left before it had started");
    } else if (call->phase == PSANDBOX_RUNNING) {
        psandbox_kill(s, call, KILLED_BY_CANCEL);
    } else if (call->run.output && call->phase != PSANDBOX_AFTER) {
        psandbox_answer(s, call, wire_result_new(cancelled_new(call)));
    } else if (has_commands(call->kind) && call->phase != PSANDBOX_AFTER) {
        err_set(&e, ERR_CANCELLED, "the call was cancelled before it ran");
        psandbox_refuse(s, call, &e);
    }
}

void psandbox_caller_left(struct psandbox *s, struct psandbox_call *call)
{
    bool answered = call->waiter->answered; /* that it goes on */

    call->waiter = NULL;
    if (answered)
        return;
    if (call->run.output && !call->run.options.cancel_on_disconnect)
        awaited_run_keep(&call->run);
    else
        psandbox_cancel(s, call);
}

/* ---- what commands and cells have in common ---- */

/* What it runs is a run like others: it has an id, is waited for, and may be kept. */
static void run_begin(struct psandbox *s, struct psandbox_call *call)
{
    const struct broker_limits *limits = &s->base.start->config->limits;
    const bool cell = call->kind == PSANDBOX_SESSION;
    const struct awaited_run_plan plan = {
        .tenant = s->tenant,
        .conversation = s->conversation,
        .language = cell ? s->language : PSANDBOX_COMMAND_LANGUAGE,
        .sandbox = &s->sandbox,
        /* Cells run one after the other. */
        .most_ms = PSANDBOX_AT_ONCE * (limits->timeout_max_ms + PSANDBOX_HANGS_MS),
        .keep_bytes = limits->output_keep,
    };

    psandbox_run_id_write(s->base.start->container_id, ++s->n_runs, call->run.id);
    wire_run_options_decode(call->run.head, &call->run.options);
    awaited_run_begin(&call->run, &s->base, &plan);
    awaited_run_add_caller(&call->run, call->waiter, clock_mono_ms() - call->came_ms);
    tell_dealt(s);
}

int psandbox_read_body(struct psandbox *s, struct psandbox_call *call, struct err *e)
{
    struct buf *message = &call->waiter->inbox.message;
    struct awaited_run *run = &call->run;
    json_int_t timeout = json_get_integer(run->head, "timeoutMs", 0);

    run->body.message = *message;
    *message = BUF_INIT(message->max);
    sock_inbox_clear(&call->waiter->inbox);
    if (timeout < 0)
        return err_set(e, ERR_INVALID, "timeoutMs is negative");
    run->request.timeout_ms = (uint64_t)timeout;
    if (run_body_take(&run->body, e) < 0 ||
        request_check(s->base.start, &run->request, &run->body, e) < 0)
        return -1;
    sizes_count_others(&s->sandbox, s->tenant);
    run_begin(s, call);
    return 0;
}

bool psandbox_call_run(struct psandbox *s, struct psandbox_call *call, struct snapshot *files,
                       const struct err *problem)
{
    struct err e = *problem;

    call->began_us = clock_mono_us();
    if (!files || psandbox_unpause(s, &e) < 0) {
        psandbox_refuse(s, call, &e);
        return false;
    }
    call->run.before = *files;
    *files = (struct snapshot){0};
    call->run.began_ms = clock_mono_ms();
    call->run.story.queue_ms = call->run.began_ms - call->came_ms;
    call->phase = PSANDBOX_RUNNING;
    call->end = deadline_in_ms((int64_t)call->run.request.timeout_ms);
    return true;
}

void psandbox_kill(struct psandbox *s, struct psandbox_call *call, enum run_killed why)
{
    if (call->run.killed != NOT_KILLED)
        return;
    call->run.killed = why;
    call->end = deadline_in_ms(PSANDBOX_HANGS_MS);
    psandbox_kill_command(s, call->id ? call->id : s->session.id);
}
