/* A run from its hand-over to its end, with the operations of an engine: what a supervisor does
 * (supervisor_run.c), for tests without one. */
#pragma once

#include "common/engine/engine.h"

#include <poll.h>
#include <signal.h>

struct engine_run {
    const struct engine_command *program;
    /* Gets output as it arrives. false: it is too much. */
    bool (*output)(void *ctx, enum engine_stream stream, const char *data, size_t len);
    void *ctx;
    const struct engine_attend *attend; /* NULL: none */
    struct deadline end;
};

enum engine_run_state { ENGINE_RUN_GOES_ON, ENGINE_RUN_WAITS, ENGINE_RUN_ENDED, ENGINE_RUN_LOST };

/* Takes one event in. */
static inline enum engine_run_state engine_run_take(struct engine *engine,
                                                    const struct engine_run *run,
                                                    struct engine_outcome *out, struct err *e)
{
    const struct engine_outcome before = *out;
    struct engine_event ev;

    if (engine->ops->read(engine, &ev, e) < 0)
        return ENGINE_RUN_LOST;
    switch (ev.kind) {
    case ENGINE_EVENT_NOTHING:
        return ENGINE_RUN_WAITS;
    case ENGINE_EVENT_BEGUN:
        out->warm = ev.warm;
        return ENGINE_RUN_GOES_ON;
    case ENGINE_EVENT_LOADED:
        return engine->ops->go(engine, ev.id, e) < 0 ? ENGINE_RUN_LOST : ENGINE_RUN_GOES_ON;
    case ENGINE_EVENT_OUT:
    case ENGINE_EVENT_ERR:
        if (run->output(run->ctx, ev.kind == ENGINE_EVENT_OUT ? ENGINE_STDOUT : ENGINE_STDERR,
                        ev.data, ev.len))
            return ENGINE_RUN_GOES_ON;
        out->end = ENGINE_OUTPUT_LIMIT;
        return ENGINE_RUN_ENDED;
    case ENGINE_EVENT_ENDED:
        *out = ev.outcome;
        out->warm = before.warm;
        out->started_us = before.started_us;
        return ENGINE_RUN_ENDED;
    default:
        return ENGINE_RUN_GOES_ON;
    }
}

/* Waits for the container or the attended; false: it is to be killed, and *out says why. */
static inline bool engine_run_wait(struct engine *engine, const struct engine_run *run,
                                   struct engine_outcome *out)
{
    struct pollfd p[2] = {{.fd = engine->ops->fd(engine), .events = engine->ops->waits(engine)},
                          {.fd = run->attend ? run->attend->fd : -1, .events = POLLIN | POLLRDHUP}};

    poll(p, 2, deadline_poll_ms(run->end));
    if (p[1].revents && !run->attend->tick(run->attend->ctx))
        out->end = ENGINE_CANCELLED;
    else if (deadline_passed(run->end))
        out->end = ENGINE_TIMED_OUT;
    else
        return true;
    return false;
}

/* 0: it ran; -1: it did not. The container is removed, unless it has reported. */
static inline int engine_run_to_end(struct engine *engine, const struct engine_run *how,
                                    struct engine_outcome *out, struct err *e)
{
    enum engine_run_state state = ENGINE_RUN_GOES_ON;
    struct engine_run run = *how;
    uint32_t id;

    *out = (struct engine_outcome){.exit_code = -1, .signal = SIGKILL};
    while (state == ENGINE_RUN_GOES_ON)
        state = engine_run_take(engine, &run, out, e);
    if (state == ENGINE_RUN_LOST || engine->ops->exec(engine, run.program, &id, e) < 0) {
        engine->ops->finish(engine);
        return -1;
    }
    if (run.program->timeout_ms > 0)
        run.end = deadline_min(run.end, deadline_in_ms((int64_t)run.program->timeout_ms));
    out->started_us = clock_mono_us();
    bool goes_on = true;
    do {
        if (state == ENGINE_RUN_WAITS)
            goes_on = engine_run_wait(engine, &run, out);
        do /* what has come by now still counts */
            state = engine_run_take(engine, &run, out, e);
        while (state == ENGINE_RUN_GOES_ON);
    } while (goes_on && state == ENGINE_RUN_WAITS);
    out->ended_us = clock_mono_us();
    if (state != ENGINE_RUN_ENDED || out->signal == SIGKILL)
        engine->ops->finish(engine);
    return state == ENGINE_RUN_LOST ? -1 : 0;
}
