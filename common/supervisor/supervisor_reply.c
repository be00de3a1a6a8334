#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <stdio.h>
#include <string.h>

#define CANCEL_ANSWER_MS 10000 /* a cancelled run is over long before */
#define BUSY_RETRY_MS    1000

/* ---- keeping ---- */

void supervisor_keep(struct supervisor *s)
{
    struct err e = ERR_INIT;

    if (s->keep != KEEP_NOT || s->reply)
        return;
    s->keep = KEEP_DONE;
    if (run_record_begin(s->start->root, s->start->run_id, &s->record, &e) == 0)
        return;
    s->keep = KEEP_FAILED;
    snprintf(s->not_kept, sizeof s->not_kept, "%s", e.text);
    log_warn("run %s cannot be kept: %s", s->start->run_id, e.text);
}

/* What its owner has to know about finding it later. */
static void add_retention(const struct supervisor *s, json_t *result)
{
    if (s->keep == KEEP_DONE)
        run_record_tell(&s->record, result);
    if (s->keep == KEEP_FAILED)
        json_object_set_new(result, "notKept", json_from_bytes(s->not_kept, strlen(s->not_kept)));
}

static void tell_news(const struct supervisor *s, const json_t *result)
{
    const struct broker_config *config = s->start->config;
    const struct broker_run_news news = {.tenant = s->record.tenant,
                                         .conversation = s->record.conversation,
                                         .run_id = s->start->run_id,
                                         .files = json_object_get(result, "files")};

    if (config->run_ended)
        config->run_ended(config->run_ended_ctx, &news);
}

void supervisor_record_end(struct supervisor *s)
{
    struct err e = ERR_INIT;
    const json_t *result = json_object_get(s->reply, "result");
    const json_t *error = json_object_get(s->reply, "error");

    if (s->keep != KEEP_DONE)
        return;
    json_auto_t *lost = error ? run_result_lost(s->start->run_id, json_get_string(error, "text"))
                              : NULL;
    if (run_record_end(s->start->root, s->start->run_id, s->record.ended, lost ? lost : result,
                       s->live, &e) < 0)
        log_warn("run %s: its result cannot be kept: %s", s->start->run_id, e.text);
    else
        tell_news(s, result);
}

/* ---- while it runs ---- */

void supervisor_answer_running(struct supervisor *s, struct waiter *r)
{
    const struct run_story story = {.run_id = s->start->run_id,
                                    .sandbox = &s->sandbox,
                                    .capture = &s->capture,
                                    .queue_ms = s->queue_ms};
    json_t *result = run_result_running(&story, s->began_ms ? clock_mono_ms() - s->began_ms : 0);

    add_retention(s, result);
    if (r->since_given) {
        run_result_add_new(result, s->live, r->since, false);
        json_object_set(result, "output", json_object_get(result, "newOutput"));
    }
    json_auto_t *message = wire_result_new(result);
    waiter_answer(r, message);
}

/* ---- those who look in ---- */

/* The last message, as this waiter asked for it. */
static void answer_reply(struct supervisor *s, struct waiter *r)
{
    const json_t *result = json_object_get(s->reply, "result");

    if (r->kind == WAITER_CALLER) {
        waiter_answer_with_fds(r, s->reply, &s->opened);
        return;
    }
    if (!r->since_given || !result) {
        waiter_answer(r, s->reply);
        return;
    }
    json_t *more = json_copy((json_t *)(uintptr_t)result);
    run_result_add_new(more, s->live, r->since, true);
    json_auto_t *message = wire_result_new(more);
    waiter_answer(r, message);
}

static struct waiter *new_waiter(struct supervisor *s, const json_t *head, int connection)
{
    bool cancel = op_of(head) == OP_CANCEL_RUN;
    struct waiter *r = waiters_add(&s->waiters, connection, cancel ? WAITER_CANCEL : WAITER_POLL);

    if (!r)
        return NULL;
    json_int_t since = json_get_integer(head, "sinceByte", -1);
    r->since_given = since >= 0;
    r->since = since > 0 ? (uint64_t)since : 0;
    r->told = r->since < output_ring_total(s->live) ? r->since : output_ring_total(s->live);
    r->live = json_get_bool(head, "live", 0);
    json_int_t wait_ms = json_get_integer(head, "waitMs", 0);
    r->answer_by = deadline_in_ms(cancel ? CANCEL_ANSWER_MS : wait_ms > 0 ? wait_ms : 0);
    return r;
}

static void refuse(int connection, enum err_kind kind, const char *text)
{
    struct err e = ERR_INIT;

    err_set(&e, kind, "%s", text);
    json_auto_t *message = wire_error_new(&e);
    if (kind == ERR_BUSY)
        json_object_set_new(json_object_get(message, "error"), "retryAfterMs",
                            json_integer(BUSY_RETRY_MS));
    waiter_refuse(connection, message);
}

/* Main hands over by run id; that it is this tenant's run is made sure of here too. */
static bool is_ours(const struct supervisor *s, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *run_id = json_get_string(head, "runId");

    return s->claimed && tenant && run_id && strcmp(tenant, s->request.tenant) == 0 &&
           strcmp(run_id, s->start->run_id) == 0;
}

void supervisor_take_waiter(struct supervisor *s, const json_t *head, int connection)
{
    if (!is_ours(s, head)) {
        refuse(connection, ERR_NOT_FOUND, WIRE_NO_SUCH_RUN);
        return;
    }
    struct waiter *r = new_waiter(s, head, connection);
    if (!r) {
        refuse(connection, ERR_BUSY, "too many callers wait for this run; try again soon");
        return;
    }
    if (s->reply) {
        answer_reply(s, r);
        return;
    }
    if (r->kind == WAITER_CANCEL)
        s->cancelled = s->stop = true;
    else if (r->live)
        s->tick = deadline_min(s->tick, deadline_in_ms(0));
    else if (r->since_given && r->since < output_ring_total(s->live))
        r->rest_by = deadline_in_ms(0);
}

/* ---- when it is over ---- */

void supervisor_conclude(struct supervisor *s, json_t *take_result, const struct err *e)
{
    supervisor_say(s, json_pack("{s:s}", "is", "ended"));
    s->record.ended = clock_unix_s();
    if (take_result)
        add_retention(s, take_result);
    s->reply = take_result ? wire_result_new(take_result) : wire_error_new(e);
    s->tick = s->redial = DEADLINE_NEVER;
    for (size_t i = 0; i < s->waiters.n; i++) {
        struct waiter *r = s->waiters.items[i];

        if (r->live)
            supervisor_tell_live(s, r, true);
        answer_reply(s, r);
    }
    fds_clear(&s->opened);
}
