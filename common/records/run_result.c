#include "config.h"

#include "common/records/run_result.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/utf8.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/retention.h"
#include "common/sandbox/state/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- results ---- */

enum run_status run_result_status(const struct engine_outcome *outcome)
{
    switch (outcome->end) {
    case ENGINE_TIMED_OUT:
        return RUN_TIMEOUT;
    case ENGINE_OUTPUT_LIMIT:
        return RUN_OUTPUT_LIMIT;
    case ENGINE_DISK_LIMIT:
        return RUN_DISK_LIMIT;
    case ENGINE_CANCELLED:
        return RUN_CANCELLED;
    case ENGINE_KILLED:
        return outcome->out_of_memory ? RUN_OUT_OF_MEMORY : RUN_KILLED;
    case ENGINE_EXITED:
        break;
    }
    if (outcome->out_of_memory)
        return RUN_OUT_OF_MEMORY;
    if (outcome->signal)
        return RUN_KILLED;
    return outcome->exit_code == 0 ? RUN_OK : RUN_ERROR;
}

/* Sets the kept text, and the view's row in truncation. */
static void add_view(json_t *result, json_t *truncation, const struct output *o,
                     enum output_view view)
{
    static const char *const names[] = {
        [OUTPUT_STDOUT] = "stdout", [OUTPUT_STDERR] = "stderr", [OUTPUT_BOTH] = "output"};
    AUTO_BUF struct buf text = BUF_INIT(output_view_room(o));
    uint64_t kept = 0;

    output_view_text(o, view, &text, &kept);
    json_object_set_new(result, names[view], json_stringn_nocheck(buf_str(&text), text.len));
    json_object_set_new(truncation, names[view],
                        json_pack("{s:b, s:I, s:I}", "truncated", output_view_truncated(o, view),
                                  "kept", (json_int_t)kept, "total",
                                  (json_int_t)output_view_total(o, view)));
}

struct difference {
    const struct snapshot_entry *entry;
    enum snapshot_change change;
    size_t at; /* among the others, in order of names */
};

struct differences {
    struct difference *items;
    size_t n, room;
};

static void add_difference(void *ctx, const struct snapshot_entry *entry,
                           enum snapshot_change change)
{
    struct differences *d = ctx;

    if (d->n == d->room) {
        d->room = d->room ? 2 * d->room : 64; /* snapshots are bounded */
        d->items = mem_resize(d->items, d->room, sizeof(*d->items));
    }
    d->items[d->n] = (struct difference){entry, change, d->n};
    d->n++;
}

static int compare_places(const void *left, const void *right)
{
    const struct difference *a = left, *b = right;

    return (a->at > b->at) - (a->at < b->at);
}

static size_t depth_of(const struct difference *d)
{
    size_t depth = 0;

    for (const char *s = d->entry->name; (s = strchr(s, '/')); s++)
        depth++;
    return depth;
}

/* Existing files before deleted ones, then by depth. */
static int compare_weights(const void *left, const void *right)
{
    const struct difference *a = left, *b = right;
    bool a_gone = a->change == SNAPSHOT_DELETED, b_gone = b->change == SNAPSHOT_DELETED;
    size_t a_depth = depth_of(a), b_depth = depth_of(b);

    if (a_gone != b_gone)
        return a_gone ? 1 : -1;
    if (a_depth != b_depth)
        return a_depth < b_depth ? -1 : 1;
    return compare_places(a, b);
}

/* Keeps the first RUN_FILES_MAX by weight, in the order of names; returns how many went. */
static size_t cut(struct differences *d)
{
    size_t omitted = d->n > RUN_FILES_MAX ? d->n - RUN_FILES_MAX : 0;

    if (omitted > 0) {
        qsort(d->items, d->n, sizeof(*d->items), compare_weights);
        d->n -= omitted;
        qsort(d->items, d->n, sizeof(*d->items), compare_places);
    }
    return omitted;
}

static json_t *file_new(const struct sandbox *sb, const struct difference *d)
{
    const char *name = d->entry->name;
    json_t *file = json_pack("{s:o, s:I, s:s}", "name", json_from_bytes(name, strlen(name)), "size",
                             (json_int_t)d->entry->size, "change", snapshot_change_name(d->change));

    if (d->change != SNAPSHOT_DELETED) {
        const struct timespec *t = &d->entry->mtime;
        json_object_set_new(file, WIRE_MODIFIED,
                            json_integer((json_int_t)t->tv_sec * 1000 + t->tv_nsec / 1000000));
        AUTO_FREE char *url = sandbox_file_url(sb, name);
        files_share(sb, name);
        json_object_set_new(file, "url", json_string(url));
    }
    return file;
}

void run_result_add_files(json_t *result, const struct sandbox *sandbox,
                          const struct snapshot *before, const struct snapshot *after)
{
    struct differences all = {0};
    json_t *files = json_array();

    snapshot_diff(before, after, add_difference, &all);
    size_t omitted = cut(&all);
    for (size_t i = 0; i < all.n; i++)
        json_array_append_new(files, file_new(sandbox, &all.items[i]));
    free(all.items);
    json_object_set_new(result, "files", files);
    json_object_set_new(result, "filesOmitted", json_integer((json_int_t)omitted));
}

/* The members of every result. */
static json_t *begin_result(const char *run_id, enum run_status status, int64_t ms)
{
    return json_pack("{s:b, s:s, s:n, s:n, s:I, s:n, s:n, s:s, s:[], s:i}", "success",
                     status == RUN_OK, "status", run_status_name(status), "exitCode", "signal",
                     "durationMs", (json_int_t)ms, "cpuMs", "peakMemoryBytes", "runId", run_id,
                     "files", "filesOmitted", 0);
}

static void add_story(json_t *result, const struct run_story *story)
{
    json_t *truncation = json_object();
    AUTO_FREE char *url = sandbox_url(story->sandbox);

    for (enum output_view view = OUTPUT_STDOUT; view <= OUTPUT_BOTH; view++)
        add_view(result, truncation, story->output, view);
    json_object_set_new(result, "truncation", truncation);
    json_object_set_new(result, "fileBaseUrl", json_string(url));
    json_object_set_new(result, "queueMs", json_integer(story->queue_ms));
}

static void add_number(json_t *result, const char *name, bool known, int64_t value)
{
    if (known)
        json_object_set_new(result, name, json_integer(value));
}

/* What it left where that is removed. */
static void add_left(json_t *result, const struct engine_outcome *o)
{
    json_t *left = json_array();

    for (const char *at = o->left, *end; (end = strchr(at, '\n')); at = end + 1)
        json_array_append_new(left, json_stringn(at, (size_t)(end - at)));
    json_object_set_new(result, "left", left);
    add_number(result, "leftOmitted", o->left_omitted > 0, (int64_t)o->left_omitted);
}

json_t *run_result_new(const struct run_story *story, const struct engine_outcome *o,
                       const struct snapshot *before, const struct snapshot *after)
{
    bool exited = o->end == ENGINE_EXITED && !o->signal;
    json_t *result = begin_result(story->run_id, run_result_status(o),
                                  (o->ended_us - o->started_us) / 1000);

    add_story(result, story);
    add_number(result, "exitCode", exited, o->exit_code);
    add_number(result, "signal", o->signal != 0, o->signal);
    add_number(result, "cpuMs", o->cpu_us > 0, (int64_t)o->cpu_us / 1000);
    add_number(result, "peakMemoryBytes", o->peak_memory_bytes > 0, (int64_t)o->peak_memory_bytes);
    run_result_add_files(result, story->sandbox, before, after);
    if (o->left[0] || o->left_omitted > 0)
        add_left(result, o);
    return result;
}

json_t *run_result_command(const char *command, const struct output *output,
                           const struct engine_outcome *o)
{
    bool exited = o->end == ENGINE_EXITED && !o->signal;
    json_t *row = json_pack("{s:o, s:s, s:n, s:n, s:I}", "command",
                            json_from_bytes(command, strlen(command)), "status",
                            run_status_name(run_result_status(o)), "exitCode", "signal",
                            "durationMs", (json_int_t)(o->ended_us - o->started_us) / 1000);
    json_t *truncation = json_object();

    add_number(row, "exitCode", exited, o->exit_code);
    add_number(row, "signal", o->signal != 0, o->signal);
    add_view(row, truncation, output, OUTPUT_STDOUT);
    add_view(row, truncation, output, OUTPUT_STDERR);
    json_object_set_new(row, "truncation", truncation);
    return row;
}

json_t *run_result_running(const struct run_story *story, int64_t ms)
{
    json_t *result = begin_result(story->run_id, RUN_RUNNING, ms);

    add_story(result, story);
    json_object_set_new(result, "nextByte", json_integer((json_int_t)output_total(story->output)));
    return result;
}

json_t *run_result_lost(const char *run_id, const char *reason)
{
    static const char *const streams[] = {"stdout", "stderr", "output"};
    json_t *result = begin_result(run_id, RUN_LOST, 0);
    json_t *truncation = json_object();

    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        json_object_set_new(result, streams[i], json_string(""));
        json_object_set_new(truncation, streams[i],
                            json_pack("{s:b, s:i, s:i}", "truncated", 0, "kept", 0, "total", 0));
    }
    json_object_set_new(result, "truncation", truncation);
    json_object_set_new(result, "queueMs", json_integer(0));
    json_object_set_new(result, "reason", json_from_bytes(reason, strlen(reason)));
    return result;
}

void run_result_add_new(json_t *result, const struct output *output, uint64_t since, size_t max,
                        bool over)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * OUTPUT_NEWEST + 64);
    AUTO_BUF struct buf there = BUF_INIT(3 * OUTPUT_NEWEST);
    uint64_t next, skipped;

    if (max == 0 || max > OUTPUT_NEWEST)
        max = OUTPUT_NEWEST;
    output_text(output, since, max, over, &there, &next, &skipped);
    if (skipped > 0)
        buf_addf(&text, "[... %" PRIu64 " bytes left out ...]\n", skipped);
    buf_add(&text, buf_str(&there), there.len);
    json_object_set_new(result, "newOutput", json_stringn(buf_str(&text), text.len));
    json_object_set_new(result, "nextByte", json_integer((json_int_t)next));
}

/* ---- retention and quota ---- */

static void add_notice(json_t *result, const char *text)
{
    json_t *notices = json_object_get(result, "notices");

    if (!notices)
        json_object_set_new(result, "notices", notices = json_array());
    json_array_append_new(notices, json_string(text));
}

void retention_notice_expiry(const struct sandbox *sb, json_t *result)
{
    int64_t when = retention_expires_at(&sb->root->bounds, clock_unix_s());

    if (when > 0)
        json_object_set_new(result, "filesExpireAt", json_integer(when));
}

void retention_notice_expired(const struct sandbox *sb, json_t *result)
{
    time_t when = state_take_expired(sb->root, sb->name);
    char day[32] = "";
    struct tm tm;

    if (when == 0)
        return;
    if (gmtime_r(&when, &tm))
        strftime(day, sizeof day, "%Y-%m-%d %H:%M", &tm);
    AUTO_FREE char *text = mem_printf("The files that this conversation had before have expired "
                                      "and were removed (%s UTC).",
                                      day);
    add_notice(result, text);
}

void retention_notice_owner(const struct sandbox *sb, json_t *result)
{
    retention_notice_expiry(sb, result);
    retention_notice_expired(sb, result);
}

int retention_notice_before(const struct sandbox *sb, struct snapshot *out, struct err *e)
{
    if (snapshot_take(sb, out, e) < 0)
        return -1;
    /* The listing has counted it, unless there is more than it lists. */
    if (out->usage.partial && quota_measure(sb, &out->usage, e) < 0)
        return -1;
    return quota_check_usage(sb, &out->usage, 0, e);
}

void retention_notice_over(json_t *result, const struct err *over)
{
    AUTO_FREE char *text = mem_printf("Files were too much: %s.", over->text);

    if (over->kind != ERR_NONE)
        add_notice(result, text);
}

void retention_notice_after(const struct sandbox *sb, const struct snapshot *after, json_t *result)
{
    struct err e = ERR_INIT;

    retention_notice_expiry(sb, result);
    /* The listing has counted all, unless there is more than it lists. */
    bool refused = (after->usage.partial ? quota_check(sb, 0, &e)
                                         : quota_check_usage(sb, &after->usage, 0, &e)) < 0;
    if (!refused)
        return;
    AUTO_FREE char *text = mem_printf("The next run or upload will be refused: %s.", e.text);
    add_notice(result, text);
}
