#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/state/unsaved.h"

#include <string.h>

size_t calls_busy(const struct supervisor *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_calls; i++)
        n += s->calls[i]->row->check != NULL;
    return n;
}

json_t *calls_runs_new(const struct supervisor *s, const struct call *but)
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
static void tell_runs(struct supervisor *s, const struct call *but)
{
    channel_send(&s->base.channel,
                 json_pack("{s:s, s:o, s:i, s:I}", "is", "runs", "runs", calls_runs_new(s, but),
                           "dealt", (int)s->n_dealt, "ranMs", (json_int_t)s->ran_ms));
    s->n_dealt = 0;
    s->ran_ms = 0;
}

void calls_tell_dealt(struct supervisor *s)
{
    if (!s->base.start->psandbox)
        return;
    s->n_dealt++;
    tell_runs(s, NULL);
}

static void call_free(struct call *call)
{
    psandbox_listing_clear(call);
    awaited_run_clear(&call->run);
    output_free(call->output);
    json_decref(call->results);
    free(call);
}

void call_remove(struct supervisor *s, struct call *call)
{
    const bool runs = call->row->check != NULL, began = call->run.output != NULL;
    size_t at = 0;

    while (s->calls[at] != call)
        at++;
    memmove(&s->calls[at], &s->calls[at + 1], (s->n_calls - at - 1) * sizeof *s->calls);
    s->calls[--s->n_calls] = NULL;
    for (size_t i = 0; i < PSANDBOX_SESSIONS; i++)
        if (s->sessions[i].cell == call)
            s->sessions[i].cell = NULL;
    if (runs)
        s->used_ms = clock_mono_ms();
    call_free(call);
    if (runs && !began)
        calls_tell_dealt(s);
}

/* ---- answers ---- */

void call_answer(struct supervisor *s, struct call *call, json_t *take_reply)
{
    json_auto_t *reply = take_reply;

    if (call->run.output && s->base.start->psandbox) {
        s->ran_ms += call->run.began_ms > 0 ? clock_mono_ms() - call->run.began_ms : 0;
        tell_runs(s, call);
    }
    if (call->run.output)
        awaited_run_end(&call->run, json_incref(reply)); /* which takes it */
    else if (call->waiter)
        waiter_answer(call->waiter, reply);
    if (call->run.output && call->row->op == OP_RUN)
        call->phase = CALL_OVER;
    else
        call_remove(s, call);
}

void call_refuse(struct supervisor *s, struct call *call, const struct err *e)
{
    s->refused |= call->row->op == OP_RUN;
    call_answer(s, call, wire_error_new(e));
}

void calls_answer(struct supervisor *s, enum broker_op op, json_t *take_reply)
{
    json_auto_t *reply = take_reply;

    for (size_t i = s->n_calls; i > 0; i--)
        if (s->calls[i - 1]->row->op == op)
            call_answer(s, s->calls[i - 1], json_incref(reply)); /* each takes a reference */
}

/* ---- cancelled before their end ---- */

/* Of a call that was cancelled before it ran. */
static json_t *cancelled_new(struct call *call)
{
    const struct snapshot none = {0};
    json_t *result;

    call->run.killed = KILLED_BY_CANCEL;
    awaited_run_set_nothing_ran(&call->run);
    result = run_result_new(&call->run.story, &call->run.outcome, &none, &none);
    if (call->row->op == OP_EXEC)
        json_object_set_new(result, "results", json_array());
    return result;
}

void call_cancel(struct supervisor *s, struct call *call)
{
    const bool run = call->row->op == OP_RUN;
    struct err e = ERR_INIT;

    if (call->phase >= CALL_AFTER)
        return;
    if (call->row->op == OP_CREATE_PSANDBOX) {
        psandbox_stop(s, "closed", "its creator left before it had started");
    } else if (call->phase == CALL_RUNNING || (run && call->phase == CALL_BEFORE)) {
        call_kill(s, call, KILLED_BY_CANCEL);
    } else if (call->run.output) {
        call_answer(s, call, wire_result_new(cancelled_new(call)));
    } else if (call->row->check) {
        err_set(&e, ERR_CANCELLED, "the call was cancelled before it ran");
        call_refuse(s, call, &e);
    }
}

/* ---- from its body to its end ---- */

void call_begin_run(struct supervisor *s, struct call *call, const struct awaited_run_plan *plan)
{
    awaited_run_begin(&call->run, &s->base, plan);
    awaited_run_add_caller(&call->run, call->waiter,
                           clock_mono_ms() - call->came_ms + call->queue_ms);
    calls_tell_dealt(s);
}

void call_note_use(const struct supervisor *s, const struct call *call)
{
    const struct run_record *record = &call->run.record;
    struct err e = ERR_INIT;

    if (state_note_use(&s->sandbox, record->tenant, record->conversation, &e) < 0)
        log_warn("cannot write a sandbox's record: %s", e.text);
    unsaved_note(s->sandbox.root, s->sandbox.name);
    if (s->base.start->psandbox) /* the size is counted when it is needed */
        state_forget_size(s->sandbox.root, s->sandbox.name);
}

void call_kill(struct supervisor *s, struct call *call, enum run_killed why)
{
    const bool first = call->run.killed == NOT_KILLED;

    if (first)
        call->run.killed = why;
    if (call->row->op == OP_RUN) { /* its container goes with it */
        s->base.stop = true;
    } else if (first) {
        call->end = deadline_in_ms(CALL_HANGS_MS);
        psandbox_kill_command(s, call->session ? call->session->id : call->id);
    }
}

static void call_time_out(struct supervisor *s, struct call *call)
{
    struct err e = ERR_INIT;

    if (call->phase == CALL_QUEUED) {
        err_set(&e, ERR_TIMEOUT, "the call has not said what to run in %d s", CALL_BODY_MS / 1000);
        call_refuse(s, call, &e);
    } else if (call->run.killed != NOT_KILLED) {
        psandbox_stop(s, "lost", "its container does not answer any more");
    } else {
        call_kill(s, call, KILLED_BY_TIME);
    }
}

struct deadline calls_tend(struct supervisor *s)
{
    struct deadline next = DEADLINE_NEVER;

    for (size_t i = s->n_calls; i > 0; i--) {
        struct call *call = s->calls[i - 1];

        if (call->phase != CALL_QUEUED && call->phase != CALL_RUNNING)
            continue;
        next = deadline_min(next, call->end);
        if (deadline_passed(call->end))
            call_time_out(s, call); /* it may be gone */
    }
    return next;
}
