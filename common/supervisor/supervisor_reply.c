/* The connections that wait for a supervisor's run. */
#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

void supervisor_kill(struct supervisor *s, enum run_killed why)
{
    if (s->run.awaited.killed == NOT_KILLED)
        s->run.awaited.killed = why;
    s->base.stop = true;
}

struct deadline supervisor_tend_waiters(struct supervisor *s)
{
    awaited_run_tend(&s->run.awaited);
    struct deadline next = waiters_tend(&s->base.waiters);
    waiters_reap(&s->base.waiters);
    return next;
}

void supervisor_on_waiter(void *owner, void *item, uint32_t events)
{
    struct supervisor *s = owner;
    struct waiter *r = item;
    enum waiter_event event = waiter_on_event(r, events);

    if (r->kind != WAITER_CALLER || r->answered || s->run.awaited.killed == KILLED_BY_CANCEL)
        return;
    if (event == WAITER_CANCELS ||
        (event == WAITER_LEFT && s->run.awaited.options.cancel_on_disconnect))
        supervisor_kill(s, KILLED_BY_CANCEL);
    else if (event == WAITER_LEFT) /* without a cancel: the result may be asked for later */
        awaited_run_keep(&s->run.awaited);
}

void supervisor_add_poll(void *owner, const json_t *message, int take_connection)
{
    struct supervisor *s = owner;
    const json_t *head = json_object_get(message, "head");
    struct err e = ERR_INIT;

    if (!awaited_run_is(&s->run.awaited, head)) {
        err_set(&e, ERR_NOT_FOUND, "%s", WIRE_NO_SUCH_RUN);
        waiter_refuse(take_connection, &e);
        return;
    }
    awaited_run_add_poll(&s->run.awaited, head, take_connection);
    if (!s->run.awaited.reply && op_of(head) == OP_CANCEL_RUN)
        supervisor_kill(s, KILLED_BY_CANCEL);
}

void supervisor_tell_end(const struct supervisor *s)
{
    const struct engine_outcome *o = &s->run.awaited.outcome;
    const int64_t ran_us = o->started_us > 0 ? o->ended_us - o->started_us : 0;

    channel_send(&s->base.channel,
                 json_pack("{s:s, s:b, s:I}", "is", "ended", "reusable", s->run.reusable, "ranMs",
                           (json_int_t)(ran_us + 999) / 1000));
}

void supervisor_conclude(struct supervisor *s, json_t *take_result, const struct err *e)
{
    supervisor_tell_end(s);
    s->base.waiters.output_at = s->base.channel.redial = DEADLINE_NEVER;
    awaited_run_end(&s->run.awaited,
                    take_result ? wire_result_new(take_result) : wire_error_new(e));
    awaited_run_answer(&s->run.awaited);
}
