#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/mem.h"
#include "common/protocol/run_id.h"
#include "common/protocol/wire.h"
#include "common/records/kept_runs.h"
#include "common/rpc/json.h"
#include "common/scheduler/runners.h"

#include <string.h>

/* ---- get_run and cancel_run ---- */

static struct call *call_with_run(const struct supervisor *s, const json_t *head)
{
    for (size_t i = 0; i < s->n_calls; i++)
        if (awaited_run_is(&s->calls[i]->run, head))
            return s->calls[i];
    return NULL;
}

/* Of a run that is over: from its record. */
static void answer_from_record(struct supervisor *s, const json_t *head, int take_connection)
{
    struct err e = ERR_INIT;
    json_t *result = kept_run_get(s->base.start->root, head, deadline_in_ms(0), &e);
    struct waiter *r = result ? waiters_add(&s->base.waiters, take_connection, WAITER_POLL) : NULL;
    json_auto_t *reply = result ? wire_result_new(result) : NULL;

    if (result && !r)
        err_set(&e, ERR_BUSY, "too many callers wait; try again soon");
    if (r)
        waiter_answer(r, reply);
    else
        waiter_refuse(take_connection, &e);
}

static void take_poll(struct supervisor *s, const struct call_row *row, const json_t *message,
                      int take_connection)
{
    const json_t *head = json_object_get(message, "head");
    struct call *call = call_with_run(s, head);

    if (!call) {
        answer_from_record(s, head, take_connection);
        return;
    }
    awaited_run_add_poll(&call->run, head, take_connection);
    if (row->op == OP_CANCEL_RUN)
        call_cancel(s, call);
}

/* ---- new calls ---- */

/* The main process finds the sandbox by its id; that the call is its owner's is checked here too.
 */
static bool is_ours(const struct supervisor *s, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *psandbox_id = json_get_string(head, "sandboxId");
    const char *conversation = json_get_string(head, "conversationId");
    const char *run_id = psandbox_id ? psandbox_run_id(psandbox_id) : NULL;

    if (!tenant || strcmp(tenant, s->use.tenant) != 0)
        return false;
    if (psandbox_id)
        return run_id && strcmp(run_id, s->base.start->container_id) == 0;
    return conversation && strcmp(conversation, s->use.conversation) == 0;
}

static struct call *call_add(struct supervisor *s, const struct call_row *row,
                             const json_t *message, struct waiter *r)
{
    struct call *call = mem_alloc(sizeof *call);

    *call = (struct call){.row = row,
                          .waiter = r,
                          .came_ms = clock_mono_ms(),
                          .queue_ms = json_get_integer(message, "queueMs", 0),
                          .run = AWAITED_RUN_INIT,
                          .end = DEADLINE_NEVER};
    call->run.head = json_incref(json_object_get(message, "head"));
    s->calls[s->n_calls++] = call;
    if (row->check) {
        call->end = deadline_in_ms(CALL_BODY_MS);
        r->body_due = true;
        r->inbox.message.max = WIRE_MESSAGE_MAX;
    }
    return call;
}

static void take_call(struct supervisor *s, const struct call_row *row, const json_t *message,
                      int take_connection)
{
    const json_t *head = json_object_get(message, "head");
    const bool full = s->n_calls == CALLS_MAX || (row->check && calls_busy(s) == CALLS_AT_ONCE);
    struct waiter *r = NULL;
    struct err e = ERR_INIT;

    if (!is_ours(s, head))
        err_set(&e, ERR_NOT_FOUND, "%s", WIRE_NO_SUCH_SANDBOX);
    else if (full || !(r = waiters_add(&s->base.waiters, take_connection, WAITER_CALLER)))
        err_set(&e, ERR_BUSY,
                "sandboxId: too many calls for this sandbox at once; try again when one has ended");
    if (r) {
        call_add(s, row, message, r);
        return;
    }
    waiter_refuse(take_connection, &e);
    if (row->check)
        calls_tell_dealt(s);
}

static void take_close(struct supervisor *s, const struct call_row *row, const json_t *message,
                       int take_connection)
{
    const char *language = json_get_string(json_object_get(message, "head"), "language");
    const size_t n = s->n_calls;

    take_call(s, row, message, take_connection);
    if (s->n_calls == n)
        return;
    if (!language || !psandbox_session_reset(s, language))
        psandbox_stop(s, "closed", PSANDBOX_CLOSED_BY_OWNER);
    else
        calls_answer(s, OP_CLOSE_PSANDBOX, wire_result_new(psandbox_row_new(s)));
}

static void take_logs(struct supervisor *s, const struct call_row *row, const json_t *message,
                      int take_connection)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * OUTPUT_NEWEST);
    const size_t n = s->n_calls;
    uint64_t next, skipped;

    take_call(s, row, message, take_connection);
    if (s->n_calls == n)
        return;
    output_text(s->log, output_oldest(s->log), OUTPUT_NEWEST, true, &text, &next, &skipped);
    call_answer(s, s->calls[n],
                json_pack("{s:{s:o}}", "result", "text", json_stringn(buf_str(&text), text.len)));
}

/* Its container serves no other meanwhile. */
static void take_run(struct supervisor *s, const struct call_row *row, const json_t *message,
                     int take_connection)
{
    const struct supervisor_start *start = s->base.start;
    const char *image_id = json_get_string(message, "imageId");
    const char *language = json_get_string(json_object_get(message, "head"), "language");
    const struct engine_runner *runner = language
                                             ? runners_of_image(start->runners,
                                                                start->runner->image_id, language)
                                             : NULL;
    const bool of_image = runner && image_id && strcmp(image_id, runner->image_id) == 0;
    const bool free = s->n_calls == 0 && !s->refused && s->next_by.at_ms < 0 && !s->base.stop;
    struct err e = ERR_INIT;

    /* Another container of this process would be of a replaced image, too. */
    s->base.stop |= free && !of_image;
    if (!free || !of_image) {
        close(take_connection); /* without a word: the main process gives the run to another */
        return;
    }
    struct waiter *r = waiters_add(&s->base.waiters, take_connection, WAITER_CALLER);
    if (!r) {
        err_set(&e, ERR_BUSY, "too many callers wait; try again soon");
        waiter_refuse(take_connection, &e);
        s->refused = true;
        return;
    }
    struct call *run = call_add(s, row, message, r);
    run->runner = runner;
    if (run_take_names(s, run, message, &e) < 0)
        call_refuse(s, run, &e);
    else
        supervisor_on_waiter(s, r, EPOLLIN); /* its body is there already, as a rule */
}

/* One row for each operation that is handed over. */
static const struct call_row rows[] = {
    {OP_RUN, IN_POOL, take_run, run_check, run_begin},
    {OP_CREATE_PSANDBOX, IN_PSANDBOX, take_call, NULL, NULL},
    {OP_EXEC, IN_PSANDBOX, take_call, psandbox_commands_check, psandbox_commands_begin},
    {OP_SESSION, IN_PSANDBOX, take_call, psandbox_cell_check, psandbox_cell_begin},
    {OP_CLOSE_PSANDBOX, IN_PSANDBOX, take_close, NULL, NULL},
    {OP_PSANDBOX_LOGS, IN_PSANDBOX, take_logs, NULL, NULL},
    {OP_GET_RUN, IN_POOL | IN_PSANDBOX, take_poll, NULL, NULL},
    {OP_CANCEL_RUN, IN_POOL | IN_PSANDBOX, take_poll, NULL, NULL},
};

void supervisor_take_call(void *owner, const json_t *message, int take_connection)
{
    struct supervisor *s = owner;
    const enum broker_op op = op_of(json_object_get(message, "head"));
    const unsigned here = s->base.start->psandbox ? IN_PSANDBOX : IN_POOL;
    struct err e = ERR_INIT;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].op == op && rows[i].in & here) {
            rows[i].take(s, &rows[i], message, take_connection);
            return;
        }
    err_set(&e, ERR_INVALID, "no such operation");
    waiter_refuse(take_connection, &e);
}

/* ---- what comes from callers ---- */

static struct call *call_of_waiter(const struct supervisor *s, const struct waiter *r)
{
    for (size_t i = 0; i < s->n_calls; i++)
        if (s->calls[i]->waiter == r)
            return s->calls[i];
    return NULL;
}

/* The body is checked again: workers are not trusted. */
static void on_body(struct supervisor *s, struct call *call)
{
    struct buf *message = &call->waiter->inbox.message;
    struct awaited_run *run = &call->run;
    struct err e = ERR_INIT;

    if (s->base.stop) /* it gets the same answer as all */
        return;
    call->end = DEADLINE_NEVER;
    run->body.message = *message;
    *message = BUF_INIT(message->max);
    sock_inbox_clear(&call->waiter->inbox);
    if (wire_run_head_decode(run->head, &run->request, &run->options, &e) < 0 ||
        run_body_take(&run->body, &e) < 0 ||
        request_check(s->base.start, &run->request, &run->body, &e) < 0 ||
        call->row->check(s, call, &e) < 0)
        call_refuse(s, call, &e);
    else
        call->row->begin(s, call);
}

void supervisor_on_waiter(void *owner, void *item, uint32_t events)
{
    struct supervisor *s = owner;
    struct waiter *r = item;
    struct call *call = call_of_waiter(s, r);
    enum waiter_event event = waiter_on_event(r, events);

    if (event == WAITER_BODY && call)
        on_body(s, call);
    else if (event == WAITER_CANCELS && call)
        call_cancel(s, call);
}

static void caller_left(struct supervisor *s, struct call *call)
{
    bool answered = call->waiter->answered; /* that it goes on */

    call->waiter = NULL;
    if (answered || call->run.killed == KILLED_BY_CANCEL)
        return;
    if (call->run.output && !call->run.options.cancel_on_disconnect)
        awaited_run_keep(&call->run);
    else
        call_cancel(s, call);
}

void calls_reap_waiters(struct supervisor *s)
{
    for (size_t i = s->n_calls; i > 0; i--) {
        struct call *call = s->calls[i - 1];

        if (call->waiter && call->waiter->fd < 0)
            caller_left(s, call);
    }
    waiters_reap(&s->base.waiters);
}
