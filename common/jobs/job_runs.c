/* Runs and persistent sandboxes whose supervisor has ended, from their records, and the status of
 * the broker. */
#include "config.h"

#include "common/jobs/job.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/metrics.h"
#include "common/base/utf8.h"
#include "common/base/version.h"
#include "common/records/kept_runs.h"
#include "common/records/psandbox_record.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/unsaved.h"

#include <string.h>
#include <sys/statvfs.h>

#define RESULT_MS 1000 /* for a supervisor to write the result */

json_t *job_get_run(struct job *job, struct err *e)
{
    return kept_run_get(job->world->root, job->request, deadline_in_ms(RESULT_MS), e);
}

/* ---- a tenant's runs ---- */

static json_t *run_row(const struct child *c, int64_t now_ms, int64_t now_unix)
{
    const struct run_record r = {
        .conversation = c->conversation,
        .language = (char *)(uintptr_t)c->language,
        .created = now_unix - (now_ms - c->since_ms) / 1000,
    };
    json_t *row = run_record_row(c->run_id, &r, run_status_name(RUN_RUNNING));

    json_object_del(row, "expiresAt"); /* its result may not be kept */
    return row;
}

static bool run_is_listed(const json_t *rows, const char *run_id)
{
    size_t i;
    const json_t *row;

    json_array_foreach(rows, i, row)
    {
        const char *id = json_get_string(row, "runId");
        if (id && strcmp(id, run_id) == 0)
            return true;
    }
    return false;
}

/* Adds a row for each run of a persistent sandbox that has not ended. */
static void add_runs_in(const struct child *c, json_t *rows)
{
    size_t i;
    const json_t *run;

    json_array_foreach(c->calls, i, run)
    {
        const char *id = json_get_string(run, "runId");
        const struct run_record r = {
            .conversation = c->conversation,
            .language = (char *)(uintptr_t)json_get_string(run, "language"),
            .created = json_get_integer(run, "createdAt", 0),
        };

        if (!id || !r.language || run_is_listed(rows, id))
            continue;
        json_t *row = run_record_row(id, &r, run_status_name(RUN_RUNNING));
        json_object_del(row, "expiresAt");
        json_insert_newest(rows, "runId", row);
    }
}

/* A caller may have the answer of a run whose result is still to be written. */
static void await_results(const struct job_world *world, const char *tenant)
{
    struct deadline last = deadline_in_ms(RESULT_MS);

    for (const struct child *c = NULL; (c = children_next(world->children, c));) {
        AUTO_RUN_RECORD struct run_record r = {0};
        json_auto_t *result = NULL;
        struct err e = ERR_INIT;

        if (c->claimed && c->state == CHILD_ENDED && c->tenant && strcmp(c->tenant, tenant) == 0)
            kept_run_read(world->root, c->run_id, tenant, last, &r, &result,
                          &e); /* if it is kept */
    }
}

/* conversation NULL: any. */
static bool is_of(const struct child *c, const char *tenant, const char *conversation)
{
    return c->tenant && c->conversation && strcmp(c->tenant, tenant) == 0 &&
           (!conversation || strcmp(c->conversation, conversation) == 0);
}

json_t *job_list_runs(struct job *job, struct err *e)
{
    const char *tenant = json_get_string(job->request, "tenant");
    const char *conversation = json_get_string(job->request, "conversationId");
    int64_t now_ms = clock_mono_ms(), now = clock_unix_s();

    if (!tenant)
        return job_fail(e, ERR_INVALID, "list_runs: tenant is missing");
    await_results(job->world, tenant);
    json_t *rows = kept_runs_list(job->world->root, tenant, conversation, now, e);
    if (!rows)
        return NULL;
    for (const struct child *c = NULL;
         (c = children_next(job->world->children, (struct child *)(uintptr_t)c));) {
        if (c->state == CHILD_ENDED || !is_of(c, tenant, conversation))
            continue;
        if (c->kind == CHILD_PSANDBOX)
            add_runs_in(c, rows);
        else if (c->claimed && !run_is_listed(rows, c->run_id))
            json_insert_newest(rows, "runId", run_row(c, now_ms, now));
    }
    while (json_array_size(rows) > RUN_LIST_MAX)
        json_array_remove(rows, json_array_size(rows) - 1);
    return json_pack("{s:o}", "runs", rows);
}

/* ---- persistent sandboxes ---- */

/* The row of the sandbox that the request names, which has ended; NULL: not found. */
json_t *job_close_psandbox(struct job *job, struct err *e)
{
    const char *tenant = json_get_string(job->request, "tenant");
    const char *psandbox_id = json_get_string(job->request, "sandboxId");

    if (tenant && psandbox_id)
        return psandbox_record_row(job->world->root, psandbox_id, tenant, e);
    psandbox_not_found(e);
    return NULL;
}

json_t *job_exec(struct job *job, struct err *e)
{
    json_auto_t *row = job_close_psandbox(job, e);

    if (row)
        psandbox_record_say_end(row, e);
    return NULL;
}

json_t *job_psandbox_logs(struct job *job, struct err *e)
{
    AUTO_BUF struct buf raw = BUF_INIT(OUTPUT_NEWEST);
    AUTO_BUF struct buf text = BUF_INIT(3 * OUTPUT_NEWEST);
    json_auto_t *row = job_close_psandbox(job, e);

    if (!row)
        return NULL;
    psandbox_record_read_log(job->world->root, json_get_string(row, "sandboxId"), &raw);
    size_t lost = utf8_lost_start(buf_str(&raw), raw.len);
    utf8_repair(buf_str(&raw) + lost, raw.len - lost, &text);
    return json_pack("{s:o}", "text", json_stringn(buf_str(&text), text.len));
}

json_t *job_psandbox_status(struct job *job, struct err *e)
{
    const char *tenant = json_get_string(job->request, "tenant");
    const char *conversation = json_get_string(job->request, "conversationId");

    if (json_object_get(job->request, "sandboxId")) {
        json_t *row = job_close_psandbox(job, e);
        return row ? json_pack("{s:[o]}", "sandboxes", row) : NULL;
    }
    if (!tenant)
        return job_fail(e, ERR_INVALID, "tenant is missing");
    json_t *rows = psandbox_record_list(job->world->root, tenant, conversation, e);
    return rows ? json_pack("{s:o}", "sandboxes", rows) : NULL;
}

/* ---- runners and status ---- */

/* "numpy=1.24.2 pandas=1.5.3" as [{name, version}]. */
static json_t *libraries_new(const char *text)
{
    json_t *list = json_array();
    while (*text) {
        size_t len = strcspn(text, " ");
        size_t name = strcspn(text, "= ");
        if (name > 0)
            json_array_append_new(
                list, json_pack("{s:o, s:o}", "name", json_from_bytes(text, name), "version",
                                name < len ? json_from_bytes(text + name + 1, len - name - 1)
                                           : json_string("")));
        text += len;
        text += strspn(text, " ");
    }
    return list;
}

static json_t *runners_new(const struct engine_runners *runners)
{
    json_t *list = json_array();
    for (size_t i = 0; i < runners->n; i++) {
        const struct engine_runner *r = &runners->items[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:i, s:o}", "language", r->language,
                                        "image", r->image, "version", r->version, "protocol",
                                        r->protocol, "libraries", libraries_new(r->libraries)));
    }
    return list;
}

json_t *job_runners(const struct runners *runners, struct err *e)
{
    if (*runners->engine_error)
        return job_fail(e, ERR_UNAVAILABLE, "%s", runners->engine_error);
    return runners_new(&runners->list);
}

/* ---- status ---- */

/* {} when a run could begin. What is wrong stands in the log already, so the caller is told alone.
 */
json_t *job_ready(struct job *job, struct err *e)
{
    const struct job_world *world = job->world;
    const struct runners *runners = world->runners;

    if (*runners->engine_error)
        return job_fail(e, ERR_BUSY, "engine: %s", runners->engine_error);
    if (runners->list.n == 0)
        return job_fail(e, ERR_BUSY, "images: there is no runner image");
    if (quota_check_disk(world->root->fd, &world->root->bounds, 0, e) < 0) {
        e->kind = ERR_BUSY;
        err_wrap(e, "disk");
        return NULL;
    }
    return json_object();
}

static bool is_psandbox(const struct child *c, const void *ctx)
{
    (void)ctx;
    return c->kind == CHILD_PSANDBOX && c->state != CHILD_ENDED;
}

/* usedBytes and conversations are those of the last look for what has expired. */
static json_t *disk_new(const struct job_world *world)
{
    struct statvfs fs = {0};

    if (fstatvfs(world->root->fd, &fs) < 0)
        return json_object();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "freeBytes",
                     (json_int_t)(fs.f_bavail * fs.f_frsize), "sizeBytes",
                     (json_int_t)(fs.f_blocks * fs.f_frsize), "freeFiles", (json_int_t)fs.f_favail,
                     "reserveBytes", (json_int_t)world->root->bounds.reserve, "limitBytes",
                     (json_int_t)world->root->bounds.total_bytes, "usedBytes",
                     (json_int_t)metrics_get(METRIC_DISK_USED), "conversations",
                     (json_int_t)metrics_get(METRIC_CONVERSATIONS));
}

static json_t *recent_new(void)
{
    char lines[LOG_RECENT][LOG_RECENT_MAX];
    size_t n = log_recent(lines);
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_from_bytes(lines[i], strlen(lines[i])));
    return list;
}

static json_int_t count_results(const struct sandbox_root *root)
{
    AUTO_DIR DIR *dir = beneath_open_dir(root->fd, RUN_RECORDS_DIR);
    json_int_t n = 0;

    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        n += entry->d_type == DT_DIR && !beneath_is_dot(entry->d_name);
    return n;
}

/* waiting: conversations that the store does not have as they are now. */
static json_t *store_new(const struct job_world *world)
{
    AUTO_UNSAVED struct unsaved all = {0};
    struct err why = ERR_INIT;

    if (unsaved_list(world->root, true, &all, &why) < 0)
        log_debug("%s", why.text);
    const int64_t lag_ms = all.n ? clock_unix_us() / 1000 - all.items[0].since_ms : 0;
    return json_pack("{s:I, s:I}", "waiting", (json_int_t)all.n, "lagSeconds",
                     (json_int_t)(lag_ms > 0 ? lag_ms / 1000 : 0));
}

json_t *job_status(struct job *job, struct err *e)
{
    const struct job_world *world = job->world;
    const struct broker_limits *limits = &world->config->limits;
    const struct run_tally tally = run_queue_tally(world->queue);
    const char *error = world->runners->engine_error;
    const char *no_network = world->runners->network_error[limits->network];
    const json_int_t started = (json_int_t)metrics_get(METRIC_STARTED);
    const char *no_limits = world->runners->limits_error;

    (void)e;
    json_t *status = json_pack(
        "{s:{s:b, s:s*}, s:{s:s, s:s*}, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "engine",
        "ok", !*error, "lastError", *error ? error : NULL, "network", "limit",
        network_name(limits->network), "lastError", *no_network ? no_network : NULL, "runners",
        runners_new(&world->runners->list), "running", (json_int_t)run_queue_running(world->queue),
        "maxRuns", (json_int_t)limits->max_runs, "queued",
        (json_int_t)run_queue_length(world->queue), "queueMax", (json_int_t)limits->queue,
        "warmRuns", (json_int_t)tally.warm, "coldRuns", (json_int_t)tally.cold, "reusedRuns",
        (json_int_t)tally.reused, "pool",
        pool_status(world->pool, world->children, clock_mono_ms()));
    json_object_set_new(status, "lastErrors", recent_new());
    json_object_set_new(status, "walls",
                        json_pack("{s:b, s:b}", "ownUsers", world->root->owner.uid == 0,
                                  "userQuotas", world->root->user_quotas));
    if (store_is_wanted(&world->config->store))
        json_object_set_new(status, "store", store_new(world));
    json_object_update_new(
        status,
        json_pack("{s:s, s:I, s:I, s:o, s:I, s:I, s:s, s:{s:b, s:s*}}", "version", sandcgi_version,
                  "startedAt", started, "uptimeS",
                  started ? clock_boot_s() - (json_int_t)metrics_get(METRIC_STARTED_BOOT) : 0,
                  "disk", disk_new(world), "keptResults", count_results(world->root), "sandboxes",
                  (json_int_t)children_count(world->children, is_psandbox, NULL), "engineApi",
                  world->runners->facts.version, "limits", "hold",
                  world->runners->limits == LIMITS_HOLD, "lastError",
                  *no_limits ? no_limits : NULL));
    json_object_set_new(status, "memory", job_memory_new(world));
    return status;
}
