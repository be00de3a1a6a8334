/* The connections that wait for a supervisor's run. */
#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <string.h>

bool supervisor_take_output(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    struct supervisor *s = ctx;
    struct channel *c = &s->base.channel;
    bool good = awaited_run_output(&s->run.awaited, stream, data, len);

    channel_ring_at(c, deadline_min(c->alarm, s->base.waiters.output_at));
    return good;
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

    if (r->kind != WAITER_CALLER || r->answered || s->run.cancelled)
        return;
    if (event == WAITER_CANCELS ||
        (event == WAITER_LEFT && s->run.awaited.options.cancel_on_disconnect))
        s->run.cancelled = s->stop = true;
    else if (event == WAITER_LEFT) /* without a cancel: the result may be asked for later */
        awaited_run_keep(&s->run.awaited);
}

/* The main process finds the run by its id; that it is this tenant's is checked here too. */
static bool is_ours(const struct supervisor *s, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *run_id = json_get_string(head, "runId");

    return s->run.claimed && tenant && run_id && strcmp(tenant, s->run.request.tenant) == 0 &&
           strcmp(run_id, s->run.awaited.id) == 0;
}

void supervisor_add_poll(void *owner, const json_t *message, int take_connection)
{
    struct supervisor *s = owner;
    const json_t *head = json_object_get(message, "head");
    struct err e = ERR_INIT;

    if (!is_ours(s, head)) {
        err_set(&e, ERR_NOT_FOUND, "%s", WIRE_NO_SUCH_RUN);
        waiter_refuse(take_connection, &e);
        return;
    }
    awaited_run_add_poll(&s->run.awaited, head, take_connection);
    if (!s->run.awaited.reply && op_of(head) == OP_CANCEL_RUN)
        s->run.cancelled = s->stop = true;
}

void supervisor_tell_end(const struct supervisor *s)
{
    channel_send(&s->base.channel,
                 json_pack("{s:s, s:b}", "is", "ended", "reusable", s->run.reusable));
}

void supervisor_conclude(struct supervisor *s, json_t *take_result, const struct err *e)
{
    supervisor_tell_end(s);
    s->base.waiters.output_at = s->base.channel.redial = DEADLINE_NEVER;
    awaited_run_end(&s->run.awaited,
                    take_result ? wire_result_new(take_result) : wire_error_new(e));
    awaited_run_answer(&s->run.awaited);
}
