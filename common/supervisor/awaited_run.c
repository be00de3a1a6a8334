#include "config.h"

#include "common/supervisor/awaited_run.h"

#include "common/base/log.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/records/kept_runs.h"
#include "common/rpc/json.h"

#define CANCEL_ANSWER_MS 10000 /* a cancelled run is over long before */

void awaited_run_begin(struct awaited_run *run, const struct supervisor_start *start,
                       struct waiters *waiters, uint64_t keep_bytes)
{
    run->start = start;
    run->waiters = waiters;
    run->output = output_ring_new(OUTPUT_RING_KEEP);
    run_capture_init(&run->capture, keep_bytes, start->config->limits.output_max);
    run->story.run_id = run->id;
    run->story.capture = &run->capture;
}

void awaited_run_clear(struct awaited_run *run)
{
    for (size_t i = 0; run->waiters && i < run->waiters->n; i++) {
        struct waiter *r = run->waiters->items[i];

        if (r->run == run) {
            r->run = NULL;
            r->output = NULL;
        }
    }
    run_capture_clear(&run->capture);
    fds_clear(&run->open_files);
    output_ring_free(run->output);
    json_decref(run->reply);
}

/* ---- keeping ---- */

void awaited_run_keep(struct awaited_run *run)
{
    if (run->keep != KEEP_NOT || run->reply)
        return;
    run->keep = KEEP_DONE;
    if (run_record_begin(run->start->root, run->id, &run->record, &run->keep_error) == 0)
        return;
    run->keep = KEEP_FAILED;
    log_warn("run %s cannot be kept: %s", run->id, run->keep_error.text);
}

static void add_keep_state(const struct awaited_run *run, json_t *result)
{
    if (run->keep == KEEP_DONE)
        run_record_tell(&run->record, result);
    if (run->keep == KEEP_FAILED)
        json_object_set_new(result, "notKept", json_string(run->keep_error.text));
}

void awaited_run_record_end(struct awaited_run *run)
{
    const struct supervisor_start *start = run->start;
    struct err e = ERR_INIT;
    const json_t *result = json_object_get(run->reply, "result");
    const json_t *error = json_object_get(run->reply, "error");

    if (run->keep != KEEP_DONE)
        return;
    json_auto_t *lost = error ? run_result_lost(run->id, json_get_string(error, "text")) : NULL;
    if (run_record_end(start->root, run->id, &run->record, lost ? lost : result, run->output, &e) <
        0) {
        log_warn("run %s: its result cannot be kept: %s", run->id, e.text);
        return;
    }
    kept_runs_bound(start->root, run->record.tenant);
    const struct broker_run_news news = {.tenant = run->record.tenant,
                                         .conversation = run->record.conversation,
                                         .run_id = run->id,
                                         .files = json_object_get(result, "files")};
    if (start->config->run_ended)
        start->config->run_ended(start->config->run_ended_ctx, &news);
}

/* ---- answers ---- */

static void answer_running(struct awaited_run *run, struct waiter *r)
{
    int64_t ms = run->began_ms ? clock_mono_ms() - run->began_ms : 0;
    json_t *result = run_result_running(&run->story, ms);

    add_keep_state(run, result);
    if (r->since_given) {
        run_result_add_new(result, run->output, r->since, r->new_max, false);
        json_object_set(result, "output", json_object_get(result, "newOutput"));
    }
    json_auto_t *message = wire_result_new(result);
    waiter_answer(r, message);
}

/* The last message, as this waiter asked for it. */
static void answer_reply(struct awaited_run *run, struct waiter *r)
{
    const json_t *result = json_object_get(run->reply, "result");

    if (r->kind == WAITER_CALLER) {
        waiter_answer_with_fds(r, run->reply, &run->open_files);
    } else if (!r->since_given || !result) {
        waiter_answer(r, run->reply);
    } else {
        json_t *more = json_copy((json_t *)(uintptr_t)result);
        run_result_add_new(more, run->output, r->since, r->new_max, true);
        json_auto_t *message = wire_result_new(more);
        waiter_answer(r, message);
    }
}

bool awaited_run_output(struct awaited_run *run, enum engine_stream stream, const char *data,
                        size_t len)
{
    output_ring_add(run->output, stream, data, len);
    waiters_on_output(run->waiters, run->output);
    return run_capture_add(&run->capture, stream, data, len);
}

/* A poll is answered when there is a whole character that is new to it. */
static void answer_poll(struct awaited_run *run, struct waiter *r)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * 4);
    uint64_t next, skipped;

    r->rest_by = DEADLINE_NEVER;
    output_ring_text(run->output, r->since, 4, false, &text, &next, &skipped);
    if (next > r->since)
        answer_running(run, r);
}

void awaited_run_tend(struct awaited_run *run)
{
    for (size_t i = 0; run->waiters && i < run->waiters->n; i++) {
        struct waiter *r = run->waiters->items[i];

        if (r->run != run)
            continue;
        if (deadline_passed(r->rest_by) && !r->live)
            answer_poll(run, r);
        if (!deadline_passed(r->answer_by))
            continue;
        if (r->kind == WAITER_CALLER)
            awaited_run_keep(run);
        answer_running(run, r);
    }
}

/* ---- those who wait ---- */

void awaited_run_add_caller(struct awaited_run *run, struct waiter *r, int64_t queue_ms)
{
    int64_t left_ms = (int64_t)run->options.wait_ms - queue_ms;

    r->run = run;
    r->live = run->options.live;
    r->output = r->live ? run->output : NULL;
    if (run->options.wait_ms > 0)
        r->answer_by = deadline_in_ms(left_ms > 0 ? left_ms : 0);
    if (run->options.background)
        r->answer_by = deadline_in_ms(0);
}

static struct waiter *poll_new(struct awaited_run *run, const json_t *head, int connection)
{
    bool cancel = op_of(head) == OP_CANCEL_RUN;
    uint64_t total = output_ring_total(run->output);
    struct waiter *r = waiters_add(run->waiters, connection, cancel ? WAITER_CANCEL : WAITER_POLL);

    if (!r)
        return NULL;
    json_int_t since = json_get_integer(head, "sinceByte", -1);
    r->run = run;
    r->since_given = since >= 0;
    r->since = since > 0 ? (uint64_t)since : 0;
    r->new_max = (size_t)json_get_integer(head, "newMax", 0);
    r->output_sent = r->since < total ? r->since : total;
    r->live = json_get_bool(head, "live", 0);
    r->output = r->live || r->since_given ? run->output : NULL;
    json_int_t wait_ms = json_get_integer(head, "waitMs", 0);
    r->answer_by = deadline_in_ms(cancel ? CANCEL_ANSWER_MS : wait_ms > 0 ? wait_ms : 0);
    return r;
}

void awaited_run_add_poll(struct awaited_run *run, const json_t *head, int take_connection)
{
    struct waiter *r = poll_new(run, head, take_connection);
    struct err e = ERR_INIT;

    if (!r) {
        err_set(&e, ERR_BUSY, "too many callers wait for this run; try again soon");
        waiter_refuse(take_connection, &e);
    } else if (run->reply) {
        answer_reply(run, r);
    } else if (r->live) {
        run->waiters->output_at = deadline_in_ms(0);
    } else if (r->since_given && r->since < output_ring_total(run->output)) {
        r->rest_by = deadline_in_ms(0);
    }
}

/* ---- when it is over ---- */

void awaited_run_end(struct awaited_run *run, json_t *take_reply)
{
    json_t *result = json_object_get(take_reply, "result");

    run->record.ended = clock_unix_s();
    if (result && run->options.keep_over > 0 && run->capture.both.total > run->options.keep_over)
        awaited_run_keep(run);
    if (result)
        add_keep_state(run, result);
    run->reply = take_reply;
}

void awaited_run_answer(struct awaited_run *run)
{
    for (size_t i = 0; i < run->waiters->n; i++) {
        if (run->waiters->items[i]->run != run)
            continue;
        waiter_send_rest(run->waiters->items[i]);
        answer_reply(run, run->waiters->items[i]);
    }
    fds_clear(&run->open_files);
}
