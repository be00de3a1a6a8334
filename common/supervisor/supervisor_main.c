#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"

#include <stdio.h>

#define DISK_TRIES 10 /* counts in a row that were too much, while commands are killed */

/* ---- the channel ---- */

/* The server stops, or the sandbox gives way. The server does not wait for a run. */
static void on_end(void *owner, const json_t *message, int no_connection)
{
    struct supervisor *s = owner;
    struct call *run = s->calls[0];
    const char *why = json_get_string(message, "why");

    (void)no_connection;
    if (s->base.start->psandbox) {
        snprintf(s->ending, sizeof s->ending, "%s", why ? why : PSANDBOX_SERVER_STOPPED);
        return;
    }
    if (run && run->phase < CALL_AFTER)
        call_kill(s, run, KILLED_BY_CANCEL);
    s->base.stop = true;
}

/* What runs goes on, under the next main process. */
static bool on_lost(void *owner)
{
    struct supervisor *s = owner;
    const struct call *run = s->calls[0];

    if (s->base.start->psandbox) {
        s->orphan = deadline_in_ms(PSANDBOX_ORPHAN_MS);
        return !*s->ending && !s->base.stop;
    }
    if (run && run->run.output)
        return !run->run.reply;
    s->base.stop = true;
    return false;
}

static void describe(const void *owner, json_t *head)
{
    const struct supervisor *s = owner;

    if (!s->base.start->psandbox)
        return;
    json_object_set_new(head, "runs", calls_runs_new(s, NULL));
    json_object_set_new(head, "usedMs", json_integer(s->used_ms));
    /* Its session may have more than it began with. */
    json_object_set(head, "language", json_object_get(s->record, "language"));
}

/* ---- what comes from the container ---- */

static struct call *call_running(struct supervisor *s, uint32_t id)
{
    const struct psandbox_session *session = psandbox_session_with(s, id);

    for (size_t i = 0; i < s->n_calls; i++) {
        struct call *call = s->calls[i];

        if (call->phase == CALL_RUNNING &&
            (call->row->op == OP_RUN || (session ? call == session->cell : call->id == id)))
            return call;
    }
    return NULL;
}

static void on_output(struct supervisor *s, uint32_t id, enum engine_stream stream,
                      const struct engine_event *ev)
{
    struct call *call = call_running(s, id);

    if (s->log)
        output_add(s->log, stream, ev->data, ev->len);
    if (!call)
        return;
    if (call->output)
        output_add(call->output, stream, ev->data, ev->len);
    if (call->run.killed != KILLED_BY_OUTPUT &&
        !awaited_run_output(&call->run, stream, ev->data, ev->len))
        call_kill(s, call, KILLED_BY_OUTPUT);
}

static void run_ended(struct supervisor *s, struct call *run, const struct engine_outcome *o)
{
    const struct engine_outcome begun = run->run.outcome;

    run->run.outcome = *o;
    run->run.outcome.warm = begun.warm;
    run->run.outcome.started_us = begun.started_us;
    run->phase = CALL_AFTER;
    container_use_for(&s->base, PURPOSE_WIPE);
}

static void on_ended(struct supervisor *s, const struct engine_event *ev)
{
    struct psandbox_session *session = psandbox_session_with(s, ev->id);
    struct call *call = call_running(s, ev->id);
    struct engine_outcome o = ev->outcome;

    if (ev->kind == ENGINE_EVENT_FAILED) { /* the reason is shown as its output */
        on_output(s, ev->id, ENGINE_STDERR, ev);
        o = (struct engine_outcome){.end = ENGINE_EXITED, .exit_code = 127};
    }
    o.started_us = call ? call->began_us : 0;
    o.ended_us = clock_mono_us();
    if (call && call->row->op == OP_RUN)
        run_ended(s, call, &o);
    else if (session)
        psandbox_interpreter_ended(s, session, &o);
    else if (call)
        psandbox_command_ended(s, call, &o);
}

static bool on_event(void *owner, const struct engine_event *ev)
{
    struct supervisor *s = owner;
    const bool psandbox = s->base.start->psandbox;
    struct call *run = psandbox ? NULL : call_running(s, ev->id);

    switch (ev->kind) {
    case ENGINE_EVENT_NOTHING:
        break;
    case ENGINE_EVENT_TIER:
        if (!psandbox && !run)
            warm_on_tier(s, &ev->wait);
        break;
    case ENGINE_EVENT_LOADING:
        if (run)
            pool_container_raise_cpu(s);
        break;
    case ENGINE_EVENT_LOADED:
        if (run && !run_let_go(s, run, ev->id))
            return false;
        break;
    case ENGINE_EVENT_BEGUN:
        if (run)
            run->run.outcome.warm = ev->warm;
        break;
    case ENGINE_EVENT_OUT:
        on_output(s, ev->id, ENGINE_STDOUT, ev);
        break;
    case ENGINE_EVENT_ERR:
        on_output(s, ev->id, ENGINE_STDERR, ev);
        break;
    case ENGINE_EVENT_CONTROL:
        if (psandbox_session_with(s, ev->id))
            psandbox_on_control(s, psandbox_session_with(s, ev->id), ev->data, ev->len);
        break;
    case ENGINE_EVENT_ENDED:
    case ENGINE_EVENT_FAILED:
        on_ended(s, ev);
        break;
    }
    if (psandbox)
        return !s->base.stop;
    return run ? run->phase == CALL_RUNNING &&
                     (run->run.killed != KILLED_BY_OUTPUT || s->awaits_report)
               : s->base.started;
}

static void on_gone(void *owner, const struct err *e)
{
    struct supervisor *s = owner;

    if (s->base.start->psandbox)
        psandbox_stop(s, "lost", e->text);
    else
        pool_container_on_gone(s, e);
}

/* ---- what is due ---- */

/* What runs takes too much of the disk: kills it, or ends the sandbox. */
static struct deadline tend_disk(struct supervisor *s)
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
        struct call *call = s->calls[i];

        if (call->phase == CALL_RUNNING && call->run.killed == NOT_KILLED) {
            call->run.over = w->over;
            call_kill(s, call, KILLED_BY_DISK);
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
    struct supervisor *s = owner;

    for (size_t i = 0; i < s->n_calls; i++)
        awaited_run_tend(&s->calls[i]->run);
    struct deadline next = waiters_tend(&s->base.waiters);

    calls_reap_waiters(s); /* which may leave the interpreter to the next cell, and it idle */
    if (s->base.stop)
        return next;
    if (s->record)
        psandbox_cell_next(s);
    next = deadline_min(next, calls_tend(s));
    if (s->record)
        next = deadline_min(next, psandbox_tend(s));
    return deadline_min(next, tend_disk(s));
}

/* ---- from start to end ---- */

static const struct container_ops supervisor_ops = {
    .channel = {.handlers = {{"hand", supervisor_take_call, true},
                             {"preload", warm_on_preload, false},
                             {"preload_fast", warm_on_preload, false},
                             {"next", pool_container_on_next, false},
                             {"end", on_end, false}},
                .on_lost = on_lost,
                .describe = describe},
    .on_waiter = supervisor_on_waiter,
    .tend = tend,
    .on_event = on_event,
    .on_gone = on_gone,
};

static int64_t wanted_ms(const struct supervisor_start *start, const char *name, uint64_t most)
{
    json_int_t wanted = json_get_integer(start->call.head, name, 0);

    return wanted > 0 && (uint64_t)wanted < most ? wanted : (int64_t)most;
}

/* What is known of a persistent sandbox before it has a container. */
static void psandbox_init(struct supervisor *s, const struct supervisor_start *start)
{
    const struct psandbox_settings *settings = &start->config->limits.persistent;

    s->use.tenant = mem_strdup(json_get_string(start->call.head, "tenant"));
    s->use.conversation = mem_strdup(json_get_string(start->call.head, "conversationId"));
    s->language = json_get_string(start->call.head, "language");
    s->keeps_variables = op_of(start->call.head) == OP_SESSION;
    for (size_t i = 0; i < PSANDBOX_SESSIONS; i++)
        s->sessions[i].control = BUF_INIT(4096);
    s->idle_ms = wanted_ms(start, "idleMs", settings->idle_ms);
    s->total_ms = wanted_ms(start, "totalMs", settings->total_ms);
    s->log = output_new(0, OUTPUT_NEWEST);
}

static bool goes_on(struct supervisor *s)
{
    return s->base.start->psandbox ? !s->base.stop : pool_container_goes_on(s);
}

void supervisor_main(const struct supervisor_start *start)
{
    struct err e = ERR_INIT;
    struct supervisor s = {
        .sandbox = SANDBOX_INIT, .next_by = DEADLINE_NEVER, .orphan = DEADLINE_NEVER};

    if (!container_open(&s.base, start, &supervisor_ops))
        return;
    if (start->psandbox)
        psandbox_init(&s, start);
    json_auto_t *first = start->call.head ? wire_hand_new(&start->call, start->container_id) : NULL;
    if (first) /* the call that it is forked for comes as every other */
        supervisor_take_call(&s, first, start->call.connection);
    else
        warm_begin(&s);
    if (start->psandbox)
        psandbox_begin(&s, &e);
    container_tick(&s.base); /* what is due at once */
    while (goes_on(&s)) {
        struct call *run = run_ready(&s);

        if (run)
            run_serve(&s, run);
        else
            container_turn(&s.base, s.wiping ? deadline_min(s.ready_by, s.next_by) : s.next_by);
    }
    if (start->psandbox)
        psandbox_end(&s, &e);
    else
        pool_container_end(&s);
    container_use_clear(&s.use);
    container_clear(&s.base);
}
