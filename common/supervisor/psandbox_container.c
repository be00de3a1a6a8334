#include "config.h"

#include "common/supervisor/psandbox_self.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/rpc/json.h"

#include <stdio.h>
#include <string.h>

#define START_MS       30000 /* for the engine to get a container going */
#define GRACE_MS       60000 /* how long behind its time somebody else leaves the container alone */
#define EVENTS_AT_ONCE 256   /* then others have a turn */

int psandbox_start_container(struct psandbox *s, struct err *e)
{
    const struct psandbox_start *start = s->start;
    const struct broker_config *config = start->config;
    const char *image = json_get_string(start->head, "image");
    AUTO_FREE char *data_path = sandbox_host_path(&s->sandbox);
    char user[48];

    snprintf(user, sizeof user, "%u:%u", config->sandbox_uid, config->sandbox_gid);
    const struct engine_spec spec = {
        .image = start->runner ? start->runner->image_id : image,
        .image_name = start->runner ? start->runner->image : image,
        .psandbox = true,
        .helpers_path = start->helpers_path,
        .alias = json_get_string(start->head, "alias"),
        .data_path = data_path,
        .user = user,
        .instance = config->instance,
        .run_id = start->run_id,
        .deadline_unix = clock_unix_s() + (s->total_ms + START_MS + GRACE_MS) / 1000,
        .runtime = config->runtime,
        .network = json_get_bool(start->head, "network", 0),
        .limits = config->limits.container,
    };
    return s->engine->ops->start(s->engine, &spec, &s->attend, deadline_in_ms(START_MS), e);
}

/* The container is of no use any more. */
static void lose(struct psandbox *s, const struct err *e)
{
    psandbox_stop(s, "lost", e->text);
}

/* ---- pausing ---- */

void psandbox_pause(struct psandbox *s)
{
    struct err e = ERR_INIT;

    if (s->engine->ops->psandbox_pause(s->engine, true, &e) < 0) {
        log_warn("sandbox %s cannot be paused: %s", s->start->run_id, e.text);
        s->cannot_pause = true;
        s->unread = true; /* if it is gone that is noticed now */
        return;
    }
    s->paused = true;
    psandbox_note(s);
}

int psandbox_wake(struct psandbox *s, struct err *e)
{
    if (!s->paused)
        return 0;
    if (s->engine->ops->psandbox_pause(s->engine, false, e) < 0) {
        lose(s, e);
        return err_set(e, ERR_LOST, "the sandbox is lost (%s)", s->reason);
    }
    s->paused = false;
    s->used_ms = clock_mono_ms();
    psandbox_note(s);
    return 0;
}

/* ---- commands ---- */

int psandbox_send(struct psandbox *s, const struct engine_command *command, uint32_t *out_id,
                  struct err *e)
{
    if (psandbox_wake(s, e) < 0)
        return -1;
    s->unread = true;
    if (s->engine->ops->psandbox_exec(s->engine, command, out_id, e) == 0)
        return 0;
    if (e->kind == ERR_LOST) {
        lose(s, e);
        err_set(e, ERR_LOST, "the sandbox is lost (%s)", s->reason);
    }
    return -1;
}

static struct psandbox_ask *ask_of(const struct psandbox *s, uint32_t id)
{
    if (id == s->session.id)
        return s->session.cell;
    for (size_t i = 0; i < s->n_asks; i++)
        if (s->asks[i]->id == id)
            return s->asks[i];
    return NULL;
}

static void take_output(struct psandbox *s, const struct engine_psandbox_event *ev)
{
    enum engine_stream stream = ev->kind == ENGINE_PSANDBOX_ERR ? ENGINE_STDERR : ENGINE_STDOUT;
    struct psandbox_ask *a = ask_of(s, ev->id);

    output_ring_add(s->log, stream, ev->data, ev->len);
    if (!a)
        return;
    if (a->live) {
        output_ring_add(a->live, stream, ev->data, ev->len);
        if (s->tick.at_ms < 0)
            s->tick = deadline_in_ms(OUTPUT_RING_TELL_MS);
    }
    if (!run_capture_add(&a->capture, stream, ev->data, ev->len))
        psandbox_kill(s, a, PSANDBOX_TOO_MUCH);
}

/* It has ended, or could not begin and says why as if it had printed that. */
static void take_end(struct psandbox *s, const struct engine_psandbox_event *ev)
{
    struct engine_outcome o = ev->outcome;
    struct psandbox_ask *a = ask_of(s, ev->id);
    if (ev->kind == ENGINE_PSANDBOX_FAILED) {
        const struct engine_psandbox_event words = {
            .kind = ENGINE_PSANDBOX_ERR, .id = ev->id, .data = ev->data, .len = ev->len};

        take_output(s, &words);
        o = (struct engine_outcome){.end = ENGINE_EXITED, .exit_code = 127};
    }
    o.started_us = a ? a->began_us : 0;
    o.ended_us = clock_mono_us();
    if (ev->id == s->session.id)
        psandbox_session_ended(s, &o);
    else if (a)
        psandbox_exec_ended(s, a, &o);
}

static void take_event(struct psandbox *s, const struct engine_psandbox_event *ev)
{
    switch (ev->kind) {
    case ENGINE_PSANDBOX_OUT:
    case ENGINE_PSANDBOX_ERR:
        take_output(s, ev);
        break;
    case ENGINE_PSANDBOX_CONTROL:
        if (ev->id == s->session.id)
            psandbox_session_control(s, ev->data, ev->len);
        break;
    case ENGINE_PSANDBOX_ENDED:
    case ENGINE_PSANDBOX_FAILED:
        take_end(s, ev);
        break;
    case ENGINE_PSANDBOX_UP:
    case ENGINE_PSANDBOX_NOTHING:
        break;
    }
}

void psandbox_hear_engine(struct psandbox *s)
{
    struct err e = ERR_INIT;

    s->unread = true;
    for (int i = 0; i < EVENTS_AT_ONCE && s->unread && !s->stop; i++) {
        struct engine_psandbox_event ev;

        if (s->engine->ops->psandbox_read(s->engine, &ev, &e) < 0) {
            lose(s, &e);
            return;
        }
        s->unread = ev.kind != ENGINE_PSANDBOX_NOTHING;
        take_event(s, &ev);
    }
}
