#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/records/kept_runs.h"
#include "common/rpc/json.h"

#include <string.h>

#define CANCEL_ANSWER_MS 10000 /* a cancelled run is over long before */

/* ---- keeping ---- */

void supervisor_keep(struct supervisor *s)
{
    const struct supervisor_start *start = s->base.start;

    if (s->run.keep != KEEP_NOT || s->run.reply)
        return;
    s->run.keep = KEEP_DONE;
    if (run_record_begin(start->root, s->run.id, &s->run.record, &s->run.keep_error) == 0)
        return;
    s->run.keep = KEEP_FAILED;
    log_warn("run %s cannot be kept: %s", s->run.id, s->run.keep_error.text);
}

static void add_keep_state(const struct supervisor *s, json_t *result)
{
    if (s->run.keep == KEEP_DONE)
        run_record_tell(&s->run.record, result);
    if (s->run.keep == KEEP_FAILED)
        json_object_set_new(result, "notKept", json_string(s->run.keep_error.text));
}

void supervisor_record_end(struct supervisor *s)
{
    const struct supervisor_start *start = s->base.start;
    struct err e = ERR_INIT;
    const json_t *result = json_object_get(s->run.reply, "result");
    const json_t *error = json_object_get(s->run.reply, "error");

    if (s->run.keep != KEEP_DONE)
        return;
    json_auto_t *lost = error ? run_result_lost(s->run.id, json_get_string(error, "text")) : NULL;
    if (run_record_end(start->root, s->run.id, &s->run.record, lost ? lost : result, s->run.output,
                       &e) < 0) {
        log_warn("run %s: its result cannot be kept: %s", s->run.id, e.text);
        return;
    }
    kept_runs_bound(start->root, s->run.record.tenant);
    const struct broker_run_news news = {.tenant = s->run.record.tenant,
                                         .conversation = s->run.record.conversation,
                                         .run_id = s->run.id,
                                         .files = json_object_get(result, "files")};
    if (start->config->run_ended)
        start->config->run_ended(start->config->run_ended_ctx, &news);
}

/* ---- answers ---- */

static void answer_running(struct supervisor *s, struct waiter *r)
{
    int64_t ms = s->run.began_ms ? clock_mono_ms() - s->run.began_ms : 0;
    json_t *result = run_result_running(&s->run.story, ms);

    add_keep_state(s, result);
    if (r->since_given) {
        run_result_add_new(result, s->run.output, r->since, r->new_max, false);
        json_object_set(result, "output", json_object_get(result, "newOutput"));
    }
    json_auto_t *message = wire_result_new(result);
    waiter_answer(r, message);
}

/* The last message, as this waiter asked for it. */
static void answer_reply(struct supervisor *s, struct waiter *r)
{
    const json_t *result = json_object_get(s->run.reply, "result");

    if (r->kind == WAITER_CALLER) {
        waiter_answer_with_fds(r, s->run.reply, &s->run.open_files);
    } else if (!r->since_given || !result) {
        waiter_answer(r, s->run.reply);
    } else {
        json_t *more = json_copy((json_t *)(uintptr_t)result);
        run_result_add_new(more, s->run.output, r->since, r->new_max, true);
        json_auto_t *message = wire_result_new(more);
        waiter_answer(r, message);
    }
}

/* ---- the loop ---- */

bool supervisor_take_output(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    struct supervisor *s = ctx;
    struct channel *c = &s->base.channel;

    output_ring_add(s->run.output, stream, data, len);
    waiters_on_output(&s->base.waiters, s->run.output);
    channel_ring_at(c, deadline_min(c->alarm, s->base.waiters.output_at));
    return run_capture_add(&s->run.capture, stream, data, len);
}

/* A poll is answered when there is a whole character that is new to it. */
static void answer_poll(struct supervisor *s, struct waiter *r)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * 4);
    uint64_t next, skipped;

    r->rest_by = DEADLINE_NEVER;
    output_ring_text(s->run.output, r->since, 4, false, &text, &next, &skipped);
    if (next > r->since)
        answer_running(s, r);
}

struct deadline supervisor_tend_waiters(struct supervisor *s)
{
    struct waiters *ws = &s->base.waiters;

    for (size_t i = 0; i < ws->n; i++) {
        struct waiter *r = ws->items[i];

        if (deadline_passed(r->rest_by) && !r->live)
            answer_poll(s, r);
        if (!deadline_passed(r->answer_by))
            continue;
        if (r->kind == WAITER_CALLER)
            supervisor_keep(s);
        answer_running(s, r);
    }
    struct deadline next = waiters_tend(ws);
    waiters_reap(ws);
    return next;
}

void supervisor_on_waiter(void *owner, void *item, uint32_t events)
{
    struct supervisor *s = owner;
    struct waiter *r = item;
    enum waiter_event event = waiter_on_event(r, events);

    if (r->kind != WAITER_CALLER || r->answered || s->run.cancelled)
        return;
    if (event == WAITER_CANCELS || (event == WAITER_LEFT && s->run.options.cancel_on_disconnect))
        s->run.cancelled = s->stop = true;
    else if (event == WAITER_LEFT) /* without a cancel: the result may be asked for later */
        supervisor_keep(s);
}

/* ---- polls ---- */

static struct waiter *poll_new(struct supervisor *s, const json_t *head, int connection)
{
    bool cancel = op_of(head) == OP_CANCEL_RUN;
    uint64_t total = output_ring_total(s->run.output);
    struct waiter *r = waiters_add(&s->base.waiters, connection,
                                   cancel ? WAITER_CANCEL : WAITER_POLL);

    if (!r)
        return NULL;
    json_int_t since = json_get_integer(head, "sinceByte", -1);
    r->since_given = since >= 0;
    r->since = since > 0 ? (uint64_t)since : 0;
    r->new_max = (size_t)json_get_integer(head, "newMax", 0);
    r->output_sent = r->since < total ? r->since : total;
    r->live = json_get_bool(head, "live", 0);
    r->output = r->live || r->since_given ? s->run.output : NULL;
    json_int_t wait_ms = json_get_integer(head, "waitMs", 0);
    r->answer_by = deadline_in_ms(cancel ? CANCEL_ANSWER_MS : wait_ms > 0 ? wait_ms : 0);
    return r;
}

/* The main process finds the run by its id; that it is this tenant's is checked here too. */
static bool is_ours(const struct supervisor *s, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *run_id = json_get_string(head, "runId");

    return s->run.claimed && tenant && run_id && strcmp(tenant, s->run.request.tenant) == 0 &&
           strcmp(run_id, s->run.id) == 0;
}

void supervisor_add_poll(void *owner, const json_t *message, int take_connection)
{
    struct supervisor *s = owner;
    const json_t *head = json_object_get(message, "head");
    struct err e = ERR_INIT;
    bool ours = is_ours(s, head);
    struct waiter *r = ours ? poll_new(s, head, take_connection) : NULL;

    if (!ours)
        err_set(&e, ERR_NOT_FOUND, "%s", WIRE_NO_SUCH_RUN);
    else if (!r)
        err_set(&e, ERR_BUSY, "too many callers wait for this run; try again soon");
    if (!r)
        waiter_refuse(take_connection, &e);
    else if (s->run.reply)
        answer_reply(s, r);
    else if (r->kind == WAITER_CANCEL)
        s->run.cancelled = s->stop = true;
    else if (r->live)
        s->base.waiters.output_at = deadline_in_ms(0);
    else if (r->since_given && r->since < output_ring_total(s->run.output))
        r->rest_by = deadline_in_ms(0);
}

/* ---- when it is over ---- */

void supervisor_tell_end(const struct supervisor *s)
{
    channel_send(&s->base.channel,
                 json_pack("{s:s, s:b}", "is", "ended", "reusable", s->run.reusable));
}

void supervisor_conclude(struct supervisor *s, json_t *take_result, const struct err *e)
{
    supervisor_tell_end(s);
    s->run.record.ended = clock_unix_s();
    if (take_result && s->run.options.keep_over > 0 &&
        s->run.capture.both.total > s->run.options.keep_over)
        supervisor_keep(s);
    if (take_result)
        add_keep_state(s, take_result);
    s->run.reply = take_result ? wire_result_new(take_result) : wire_error_new(e);
    s->base.waiters.output_at = s->base.channel.redial = DEADLINE_NEVER;
    for (size_t i = 0; i < s->base.waiters.n; i++) {
        waiter_send_rest(s->base.waiters.items[i]);
        answer_reply(s, s->base.waiters.items[i]);
    }
    fds_clear(&s->run.open_files);
}
