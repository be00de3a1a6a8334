#include "config.h"

#include "common/supervisor/psandbox_self.h"

#include "common/base/log.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/trim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DISK_TRIES 10 /* counts in a row that were too much, while commands are killed */

/* ---- the channel ---- */

static void on_end(void *owner, const json_t *message, int no_connection)
{
    struct psandbox *s = owner;

    (void)message;
    (void)no_connection;
    s->ending = true;
}

static bool on_lost(void *owner)
{
    struct psandbox *s = owner;

    s->orphan = deadline_in_ms(PSANDBOX_ORPHAN_MS);
    return !s->ending && !s->base.stop;
}

static json_t *runs(const void *owner)
{
    return psandbox_runs_new(owner, NULL);
}

/* ---- waiters ---- */

static void on_body(struct psandbox *s, struct psandbox_call *call)
{
    struct err e = ERR_INIT;

    if (s->base.stop) /* it gets the same answer as all */
        return;
    if (psandbox_read_body(s, call, &e) < 0)
        psandbox_refuse(s, call, &e);
    else if (call->kind == PSANDBOX_EXEC)
        psandbox_exec(s, call);
    else
        psandbox_cell_check(s, call);
}

static void on_waiter(void *owner, void *item, uint32_t events)
{
    struct psandbox *s = owner;
    struct waiter *r = item;
    struct psandbox_call *call = psandbox_call_of(s, r);
    enum waiter_event event = waiter_on_event(r, events);

    if (event == WAITER_BODY && call)
        on_body(s, call);
    else if (event == WAITER_CANCELS && call)
        psandbox_cancel(s, call);
}

static void reap_waiters(struct psandbox *s)
{
    for (size_t i = s->n_calls; i > 0; i--) {
        struct psandbox_call *call = s->calls[i - 1];

        if (call->waiter && call->waiter->fd < 0)
            psandbox_caller_left(s, call);
    }
    waiters_reap(&s->base.waiters);
}

/* ---- events of the engine ---- */

static struct psandbox_call *call_running(const struct psandbox *s, uint32_t id)
{
    for (size_t i = 0; i < s->n_calls; i++) {
        struct psandbox_call *call = s->calls[i];

        if (call->phase == PSANDBOX_RUNNING &&
            (id == s->session.id ? call == s->session.cell : call->id == id))
            return call;
    }
    return NULL;
}

static void on_output(struct psandbox *s, uint32_t id, enum engine_stream stream,
                      const struct engine_event *ev)
{
    struct psandbox_call *call = call_running(s, id);

    output_add(s->log, stream, ev->data, ev->len);
    if (!call)
        return;
    if (call->kind == PSANDBOX_EXEC)
        output_add(call->output, stream, ev->data, ev->len);
    if (!awaited_run_output(&call->run, stream, ev->data, ev->len))
        psandbox_kill(s, call, KILLED_BY_OUTPUT);
}

static void on_ended(struct psandbox *s, const struct engine_event *ev)
{
    struct psandbox_call *call = call_running(s, ev->id);
    struct engine_outcome o = ev->outcome;

    if (ev->kind == ENGINE_EVENT_FAILED) { /* the reason is shown as its output */
        on_output(s, ev->id, ENGINE_STDERR, ev);
        o = (struct engine_outcome){.end = ENGINE_EXITED, .exit_code = 127};
    }
    o.started_us = call ? call->began_us : 0;
    o.ended_us = clock_mono_us();
    if (ev->id == s->session.id)
        psandbox_interpreter_ended(s, &o);
    else if (call)
        psandbox_command_ended(s, call, &o);
}

static bool on_event(void *owner, const struct engine_event *ev)
{
    struct psandbox *s = owner;

    if (ev->kind == ENGINE_EVENT_OUT)
        on_output(s, ev->id, ENGINE_STDOUT, ev);
    else if (ev->kind == ENGINE_EVENT_ERR)
        on_output(s, ev->id, ENGINE_STDERR, ev);
    else if (ev->kind == ENGINE_EVENT_CONTROL && ev->id == s->session.id)
        psandbox_on_control(s, ev->data, ev->len);
    else if (ev->kind == ENGINE_EVENT_ENDED || ev->kind == ENGINE_EVENT_FAILED)
        on_ended(s, ev);
    return !s->base.stop;
}

static void on_gone(void *owner, const struct err *e)
{
    psandbox_stop(owner, "lost", e->text);
}

/* ---- what is due ---- */

static struct deadline at(int64_t mono_ms)
{
    return (struct deadline){.at_ms = mono_ms};
}

static struct deadline tend_calls(struct psandbox *s)
{
    struct deadline next = DEADLINE_NEVER;

    for (size_t i = 0; i < s->n_calls; i++) {
        struct psandbox_call *call = s->calls[i];

        if (call->phase != PSANDBOX_RUNNING)
            continue;
        if (deadline_passed(call->end) && call->run.killed != NOT_KILLED)
            psandbox_stop(s, "lost", "its container does not answer any more");
        else if (deadline_passed(call->end))
            psandbox_kill(s, call, KILLED_BY_TIME);
        next = deadline_min(next, call->end);
    }
    return next;
}

/* When nothing runs: pauses it, or ends it. */
static struct deadline tend_idle(struct psandbox *s)
{
    const int64_t pause_ms = (int64_t)s->base.start->config->limits.persistent.pause_ms;
    bool pauses = pause_ms > 0 && !s->paused && !s->cannot_pause;
    struct deadline idle = at(s->used_ms + s->idle_ms);
    char reason[80];

    if (psandbox_busy(s) > 0)
        return DEADLINE_NEVER;
    snprintf(reason, sizeof reason, "it was unused for %" PRId64 " seconds", s->idle_ms / 1000);
    if (s->ending)
        psandbox_stop(s, "closed", "the server was stopped");
    else if (deadline_passed(idle))
        psandbox_stop(s, "expired", reason);
    else if (pauses && deadline_passed(at(s->used_ms + pause_ms)))
        psandbox_pause(s);
    else if (pauses)
        return deadline_min(idle, at(s->used_ms + pause_ms));
    return idle;
}

static struct deadline tend_life(struct psandbox *s)
{
    struct deadline total = at(s->began_ms + s->total_ms);
    struct deadline orphan = s->base.channel.fd < 0 ? s->orphan : DEADLINE_NEVER;
    char reason[80];

    if (deadline_passed(total)) {
        snprintf(reason, sizeof reason, "its time of %" PRId64 " seconds was over",
                 s->total_ms / 1000);
        psandbox_stop(s, "expired", reason);
    }
    if (deadline_passed(orphan))
        psandbox_stop(s, "closed", "the server was stopped");
    return deadline_min(deadline_min(total, orphan), tend_idle(s));
}

/* Kills what runs, or ends the sandbox. */
static struct deadline tend_disk(struct psandbox *s)
{
    struct disk_watch *w = &s->base.disk;
    bool settles = false; /* the end of a killed call removes files */

    if (s->paused || s->base.stop)
        return DEADLINE_NEVER;
    struct deadline next = disk_watch_tick(w);
    if (w->over.kind == ERR_NONE && !w->count && w->counter.pid == 0)
        s->disk_tries = 0;
    if (w->over.kind == ERR_NONE)
        return next;
    for (size_t i = 0; i < s->n_calls; i++) {
        struct psandbox_call *call = s->calls[i];

        if (call->phase == PSANDBOX_RUNNING && call->run.killed == NOT_KILLED) {
            call->run.over = w->over;
            psandbox_kill(s, call, KILLED_BY_DISK);
        }
        settles |= call->run.over.kind != ERR_NONE;
    }
    if (!settles || ++s->disk_tries == DISK_TRIES)
        psandbox_stop(s, "closed", w->over.text);
    else
        disk_watch_again(w);
    return next;
}

static struct deadline tend(void *owner)
{
    struct psandbox *s = owner;

    for (size_t i = 0; i < s->n_calls; i++)
        awaited_run_tend(&s->calls[i]->run);
    struct deadline next = waiters_tend(&s->base.waiters);

    reap_waiters(s); /* which may leave the interpreter to the next cell, and the sandbox idle */
    if (!s->record || s->base.stop)
        return next;
    psandbox_cell_next(s);
    next = deadline_min(next, deadline_min(tend_calls(s), tend_life(s)));
    return deadline_min(next, tend_disk(s));
}

static const struct container_ops psandbox_ops = {
    .channel = {.handlers = {{"hand", psandbox_take_call, true}, {"end", on_end, false}},
                .on_lost = on_lost,
                .runs = runs},
    .on_waiter = on_waiter,
    .tend = tend,
    .on_event = on_event,
    .on_gone = on_gone,
};

/* ---- from start to end ---- */

/* Answers the calls that its end cuts off. */
static void answer_rest(struct psandbox *s, const struct err *problem)
{
    struct err e = *problem;

    if (s->record && strcmp(s->status, "lost") == 0)
        err_set(&e, ERR_LOST, "the sandbox is lost (%s), and what ran in it", s->reason);
    else if (s->record)
        psandbox_record_say_end(s->record, &e);
    for (enum psandbox_kind kind = PSANDBOX_CREATE; kind <= PSANDBOX_CLOSE; kind++)
        if (kind != PSANDBOX_CLOSE || !s->record)
            psandbox_answer_all(s, kind, wire_error_new(&e));
}

static void write_end(struct psandbox *s)
{
    const struct supervisor_start *start = s->base.start;
    struct err e = ERR_INIT;

    psandbox_write_record(s);
    if (psandbox_record_write_log(start->root, start->container_id, s->log, &e) < 0)
        log_warn("sandbox %s: %s", start->container_id, e.text);
    log_info("sandbox %s is %s: %s", start->container_id, s->status, s->reason);
}

/* After its end, if the disk was why. */
static void psandbox_trim(struct psandbox *s)
{
    AUTO_SNAPSHOT struct snapshot after = {0};
    const struct disk_watch *w = &s->base.disk;
    struct err e = ERR_INIT, over = ERR_INIT;

    if (w->over.kind == ERR_NONE)
        return;
    if (trim_after(&s->sandbox, &w->then, false, &after, &over, &e) < 0)
        log_warn("sandbox %s: %s", s->base.start->container_id, e.text);
    else if (over.kind != ERR_NONE)
        log_info("sandbox %s: its files were too much and are removed",
                 s->base.start->container_id);
}

static void psandbox_end(struct psandbox *s, const struct err *problem)
{
    psandbox_stop(s, "closed", "it could not be started");
    if (s->record)
        write_end(s);
    channel_send(&s->base.channel, json_pack("{s:s}", "is", "ended"));
    answer_rest(s, problem);
    container_finish(&s->base);
    psandbox_trim(s);
    disk_watch_end(&s->base.disk);
    sandbox_close(&s->sandbox); /* before the answer: its caller may delete the conversation next */
    channel_close(&s->base.channel); /* takes the calls that came meanwhile */
    answer_rest(s, problem);
    if (s->record)
        psandbox_answer_all(s, PSANDBOX_CLOSE, wire_result_new(psandbox_row_new(s)));
    container_drain(&s->base);
    output_free(s->log);
    json_decref(s->record);
    buf_clear(&s->session.control);
}

static int64_t wanted_ms(const struct supervisor_start *start, const char *name, uint64_t most)
{
    json_int_t wanted = json_get_integer(start->head, name, 0);

    return wanted > 0 && (uint64_t)wanted < most ? wanted : (int64_t)most;
}

void psandbox_main(const struct supervisor_start *start)
{
    const struct broker_config *config = start->config;
    struct err e = ERR_INIT;
    struct psandbox s = {
        .tenant = json_get_string(start->head, "tenant"),
        .conversation = json_get_string(start->head, "conversationId"),
        .language = json_get_string(start->head, "language"),
        .keeps_variables = op_of(start->head) == OP_SESSION,
        .session = {.control = BUF_INIT(4096)},
        .sandbox = SANDBOX_INIT,
        .idle_ms = wanted_ms(start, "idleMs", config->limits.persistent.idle_ms),
        .total_ms = wanted_ms(start, "totalMs", config->limits.persistent.total_ms),
        .orphan = DEADLINE_NEVER};

    if (!container_open(&s.base, start, &psandbox_ops))
        return;
    s.log = output_new(0, OUTPUT_NEWEST);
    json_auto_t *first = json_pack("{s:O}", "head", start->head);
    psandbox_take_call(&s, first, start->connection);
    if (psandbox_start(&s, &e) == 0) {
        if (s.keeps_variables)
            psandbox_session_look_back(&s);
        json_t *row = psandbox_row_new(&s);
        json_object_del(row, "lastUsedAt");
        json_object_del(row, "session");
        psandbox_answer_all(&s, PSANDBOX_CREATE, wire_result_new(row));
        while (!s.base.stop)
            container_turn(&s.base, DEADLINE_NEVER);
    } else {
        container_log_failure(&s.base, "sandbox", start->container_id, &e);
    }
    psandbox_end(&s, &e);
    container_clear(&s.base);
}
