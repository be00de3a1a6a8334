#include "config.h"

#include "common/supervisor/awaited_run.h"

#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/metrics.h"
#include "common/base/trace.h"
#include "common/protocol/audit.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/records/kept_runs.h"
#include "common/records/run_lock.h"
#include "common/rpc/json.h"

#include <string.h>

#define TENANT_DIGITS    8
#define LABELS_MAX       200
#define CANCEL_ANSWER_MS 10000 /* a cancelled run is over long before */

/* The id of a container's first run may be the container's, whose lock is held already. Without a
 * lock (a full disk, which the run may be about to clear) a record would say that it is lost. */
static void take_lock(struct awaited_run *run)
{
    const struct supervisor_start *start = run->in->start;

    if (strcmp(run->id, start->container_id) == 0)
        return;
    run->lock_fd = run_lock_take(start->root->fd, run->id, &run->keep_error);
    if (run->lock_fd < 0)
        run->keep = KEEP_FAILED;
}

void awaited_run_begin(struct awaited_run *run, struct container *in,
                       const struct awaited_run_plan *plan)
{
    const struct broker_limits *limits = &in->start->config->limits;
    const int64_t now = clock_unix_s();

    run->in = in;
    run->came_ms = clock_mono_ms();
    take_lock(run);
    run->record = (struct run_record){
        .tenant = (char *)(uintptr_t)plan->tenant,
        .conversation = (char *)(uintptr_t)plan->conversation,
        .language = (char *)(uintptr_t)plan->language,
        .created = now,
        .deadline = now + (int64_t)plan->most_ms / 1000 + 1,
        .ttl_s = (int64_t)limits->result_ttl_ms / 1000,
    };
    run->output = output_new(plan->keep_bytes, OUTPUT_NEWEST);
    run->story = (struct run_story){.run_id = run->id,
                                    .sandbox = plan->sandbox,
                                    .output = run->output,
                                    .queue_ms = plan->queue_ms};
}

void awaited_run_clear(struct awaited_run *run)
{
    const struct waiters *all = run->in ? &run->in->waiters : NULL;

    for (size_t i = 0; all && i < all->n; i++) {
        struct waiter *r = all->items[i];

        if (r->run == run) {
            r->run = NULL;
            r->output = NULL;
        }
    }
    snapshot_clear(&run->before);
    fds_clear(&run->open_files);
    output_free(run->output);
    run_body_clear(&run->body);
    json_decref(run->head);
    json_decref(run->reply);
    if (run->lock_fd >= 0)
        run_lock_remove(run->in->start->root->fd, run->id);
    auto_close_fd(&run->lock_fd);
    *run = AWAITED_RUN_INIT;
}

/* ---- the log ---- */

/* Its name may be a person's. */
static void label_tenant(struct buf *out, const char *tenant)
{
    uint8_t digest[CRYPTO_SHA256_LEN];
    char digits[TENANT_DIGITS + 1] = "";
    struct err ignored = ERR_INIT;

    if (crypto_sha256(tenant, strlen(tenant), digest, &ignored) == 0)
        crypto_hex(digest, TENANT_DIGITS / 2, digits);
    metrics_label(out, "tenant", digits);
}

static void count_run(const struct awaited_run *run, const json_t *result, const char *status)
{
    AUTO_BUF struct buf labels = BUF_INIT(LABELS_MAX);
    AUTO_BUF struct buf tenant = BUF_INIT(LABELS_MAX);
    int64_t queue_ms = run->story.queue_ms, now = clock_mono_ms();

    metrics_label(&labels, "language", run->record.language ? run->record.language : "-");
    metrics_label(&labels, "status", status);
    metrics_add(METRIC_RUNS, buf_str(&labels), 1);
    label_tenant(&tenant, run->record.tenant ? run->record.tenant : "");
    metrics_add(METRIC_TENANT_RUNS, buf_str(&tenant), 1);
    if (!result)
        return;
    if (run->in->cpu_us == 0) /* its cgroup cannot be seen from here */
        purpose_add_cpu(PURPOSE_RUN, 1000 * (uint64_t)json_get_integer(result, "cpuMs", 0));
    metrics_observe(METRIC_QUEUE, queue_ms);
    if (run->began_ms)
        metrics_observe(METRIC_START, run->began_ms - run->came_ms);
    metrics_observe(METRIC_RUN, json_get_integer(result, "durationMs", 0));
    metrics_observe(METRIC_TOTAL, now - run->came_ms + queue_ms);
}

/* "-": not known. */
static struct log_field figure(const char *name, const json_t *result, const char *member)
{
    const json_t *value = json_object_get(result, member);

    return (struct log_field){.name = name,
                              .text = json_is_integer(value) ? NULL : "-",
                              .number = json_integer_value(value)};
}

static void log_end(const struct awaited_run *run)
{
    const json_t *result = json_object_get(run->reply, "result");
    const char *error = json_get_string(json_object_get(run->reply, "error"), "kind");
    const char *status = json_get_string(result, "status");
    const struct log_field fields[] = {
        {.name = "audit", .text = audit_name(AUDIT_RUN)},
        {.name = "language", .text = run->record.language ? run->record.language : "-"},
        {.name = "status", .text = status ? status : "refused"},
        {.name = "error", .text = error ? error : ""},
        figure("exit", result, "exitCode"),
        figure("ms", result, "durationMs"),
        figure("queue_ms", result, "queueMs"),
        figure("cpu_ms", result, "cpuMs"),
        figure("memory", result, "peakMemoryBytes"),
        {.name = "prestarted", .text = run->prestarted ? "yes" : "no"}};

    count_run(run, result, status ? status : "refused");
    trace_conversation(run->record.tenant, run->record.conversation);
    log_note(LOG_RUN, run->id);
    log_note(LOG_TRACE, json_get_string(run->head, "trace"));
    log_with(LOG_LEVEL_INFO, fields, ARRAY_LEN(fields), "run ended");
    log_note(LOG_RUN, NULL);
    log_note(LOG_TRACE, NULL);
}

/* ---- keeping ---- */

void awaited_run_keep(struct awaited_run *run)
{
    if (run->keep != KEEP_NOT || run->reply)
        return;
    run->keep = KEEP_DONE;
    if (run_record_begin(run->in->start->root, run->id, &run->record, &run->keep_error) == 0)
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

static void record_end(struct awaited_run *run)
{
    const struct supervisor_start *start = run->in->start;
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
    const uint64_t max = run->in->start->config->limits.output_max;

    output_add(run->output, stream, data, len);
    waiters_on_output(&run->in->waiters, run->output);
    return max == 0 || output_total(run->output) <= max;
}

/* A poll is answered when there is a whole character that is new to it. */
static void answer_poll(struct awaited_run *run, struct waiter *r)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * 4);
    uint64_t next, skipped;

    r->rest_by = DEADLINE_NEVER;
    output_text(run->output, r->since, 4, false, &text, &next, &skipped);
    if (next > r->since)
        answer_running(run, r);
}

void awaited_run_tend(struct awaited_run *run)
{
    for (size_t i = 0; run->in && i < run->in->waiters.n; i++) {
        struct waiter *r = run->in->waiters.items[i];

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
    uint64_t total = output_total(run->output);
    struct waiter *r = waiters_add(&run->in->waiters, connection,
                                   cancel ? WAITER_CANCEL : WAITER_POLL);

    if (!r)
        return NULL;
    json_int_t since = json_get_integer(head, "sinceByte", -1);
    r->run = run;
    r->since_given = since >= 0;
    r->since = since > 0 ? (uint64_t)since : 0;
    r->to_end = json_get_bool(head, "toEnd", 0);
    r->new_max = (size_t)json_get_integer(head, "newMax", 0);
    r->output_sent = r->since < total ? r->since : total;
    r->live = json_get_bool(head, "live", 0);
    r->output = r->live || r->since_given ? run->output : NULL;
    json_int_t wait_ms = json_get_integer(head, "waitMs", 0);
    r->answer_by = deadline_in_ms(cancel ? CANCEL_ANSWER_MS : wait_ms > 0 ? wait_ms : 0);
    return r;
}

bool awaited_run_is(const struct awaited_run *run, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *run_id = json_get_string(head, "runId");

    return run->output && tenant && run_id && strcmp(tenant, run->record.tenant) == 0 &&
           strcmp(run_id, run->id) == 0;
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
        run->in->waiters.output_at = deadline_in_ms(0);
    } else if (r->since_given && !r->to_end && r->since < output_total(run->output)) {
        r->rest_by = deadline_in_ms(0);
    }
}

/* ---- when it is over ---- */

void awaited_run_set_outcome(struct awaited_run *run, const struct engine_outcome *o)
{
    static const enum engine_end ends[] = {[KILLED_BY_CANCEL] = ENGINE_CANCELLED,
                                           [KILLED_BY_TIME] = ENGINE_TIMED_OUT,
                                           [KILLED_BY_OUTPUT] = ENGINE_OUTPUT_LIMIT,
                                           [KILLED_BY_DISK] = ENGINE_DISK_LIMIT,
                                           [KILLED_BY_CONTROL] = ENGINE_KILLED};

    run->outcome = *o;
    if (run->killed != NOT_KILLED)
        run->outcome.end = ends[run->killed];
}

void awaited_run_set_nothing_ran(struct awaited_run *run)
{
    const int64_t now = clock_mono_us();
    const struct engine_outcome nothing = {.exit_code = -1, .started_us = now, .ended_us = now};

    awaited_run_set_outcome(run, &nothing);
}

json_t *awaited_run_result(struct awaited_run *run, const struct snapshot *after)
{
    if (run->over.kind != ERR_NONE && run->killed != KILLED_BY_CANCEL)
        run->outcome.end = ENGINE_DISK_LIMIT;
    json_t *result = run_result_new(&run->story, &run->outcome, &run->before, after);
    retention_notice_over(result, &run->over);
    retention_notice_after(run->story.sandbox, after, result);
    return result;
}

static void answer_all(struct awaited_run *run)
{
    for (size_t i = 0; i < run->in->waiters.n; i++) {
        struct waiter *r = run->in->waiters.items[i];

        if (r->run != run)
            continue;
        waiter_send_rest(r);
        answer_reply(run, r);
    }
    fds_clear(&run->open_files);
}

void awaited_run_end(struct awaited_run *run, json_t *take_reply)
{
    json_t *result = json_object_get(take_reply, "result");

    run->record.ended = clock_unix_s();
    if (result && run->options.keep_over > 0 && output_total(run->output) > run->options.keep_over)
        awaited_run_keep(run);
    if (result)
        add_keep_state(run, result);
    run->reply = take_reply;
    record_end(run); /* it is listed as over from now on */
    answer_all(run);
    log_end(run);
}
