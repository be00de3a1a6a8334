#include "config.h"

#include "common/broker/run_result.h"

#include "common/rpc/json.h"
#include "common/sandbox/files.h"

#include <inttypes.h>
#include <string.h>

void run_capture_init(struct run_capture *c, size_t keep, uint64_t max)
{
    capture_init(&c->out, keep);
    capture_init(&c->err, keep);
    capture_init(&c->both, keep);
    c->max = max;
}

void run_capture_clear(struct run_capture *c)
{
    capture_clear(&c->out);
    capture_clear(&c->err);
    capture_clear(&c->both);
}

bool run_capture_add(struct run_capture *c, enum engine_stream stream, const char *data, size_t len)
{
    capture_add(stream == ENGINE_STDOUT ? &c->out : &c->err, data, len);
    capture_add(&c->both, data, len);
    return c->max == 0 || c->both.total <= c->max;
}

enum run_status run_result_status(const struct engine_outcome *outcome)
{
    switch (outcome->end) {
    case ENGINE_TIMED_OUT:
        return RUN_TIMEOUT;
    case ENGINE_OUTPUT_LIMIT:
        return RUN_OUTPUT_LIMIT;
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

/* Sets name to the kept text, and the stream's row in truncation. */
static void add_stream(json_t *result, json_t *truncation, const char *name,
                       const struct capture *c)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * c->keep + 64);
    uint64_t kept = 0;
    capture_text(c, &text, &kept);
    json_object_set_new(result, name, json_stringn(buf_str(&text), text.len));
    json_object_set_new(truncation, name,
                        json_pack("{s:b, s:I, s:I}", "truncated", capture_truncated(c), "kept",
                                  (json_int_t)kept, "total", (json_int_t)c->total));
}

struct file_list {
    const struct sandbox *sb;
    json_t *files;
    size_t omitted;
};

static void add_file(void *ctx, const struct snapshot_entry *entry, enum snapshot_change change)
{
    struct file_list *list = ctx;
    if (json_array_size(list->files) >= RUN_FILES_MAX) {
        list->omitted++;
        return;
    }
    json_t *file = json_pack("{s:o, s:I, s:s}", "name",
                             json_from_bytes(entry->name, strlen(entry->name)), "size",
                             (json_int_t)entry->size, "change", snapshot_change_name(change));
    if (change != SNAPSHOT_DELETED) {
        AUTO_FREE char *url = sandbox_file_url(list->sb, entry->name);
        files_share(list->sb, entry->name);
        json_object_set_new(file, "url", json_string(url));
    }
    json_array_append_new(list->files, file);
}

void run_result_add_files(json_t *result, const struct sandbox *sandbox,
                          const struct snapshot *before, const struct snapshot *after)
{
    struct file_list list = {.sb = sandbox, .files = json_array()};

    snapshot_diff(before, after, add_file, &list);
    json_object_set_new(result, "files", list.files);
    json_object_set_new(result, "filesOmitted", json_integer((json_int_t)list.omitted));
}

/* What a result has whatever became of the run. */
static json_t *begin_result(const char *run_id, enum run_status status, int64_t ms)
{
    json_t *result = json_object();

    json_object_set_new(result, "success", json_boolean(status == RUN_OK));
    json_object_set_new(result, "status", json_string(run_status_name(status)));
    json_object_set_new(result, "exitCode", json_null());
    json_object_set_new(result, "signal", json_null());
    json_object_set_new(result, "durationMs", json_integer(ms));
    json_object_set_new(result, "cpuMs", json_null());
    json_object_set_new(result, "peakMemoryBytes", json_null());
    json_object_set_new(result, "runId", json_string(run_id));
    json_object_set_new(result, "files", json_array());
    json_object_set_new(result, "filesOmitted", json_integer(0));
    return result;
}

static void add_story(json_t *result, const struct run_story *story)
{
    json_t *truncation = json_object();
    AUTO_FREE char *url = sandbox_url(story->sandbox);

    add_stream(result, truncation, "stdout", &story->capture->out);
    add_stream(result, truncation, "stderr", &story->capture->err);
    add_stream(result, truncation, "output", &story->capture->both);
    json_object_set_new(result, "truncation", truncation);
    json_object_set_new(result, "fileBaseUrl", json_string(url));
    json_object_set_new(result, "queueMs", json_integer(story->queue_ms));
}

static void add_number(json_t *result, const char *name, bool known, int64_t value)
{
    if (known)
        json_object_set_new(result, name, json_integer(value));
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
    return result;
}

json_t *run_result_command(const struct run_text *command, const struct run_capture *capture,
                           const struct engine_outcome *o)
{
    bool exited = o->end == ENGINE_EXITED && !o->signal;
    json_t *row = json_pack("{s:o, s:s, s:n, s:n, s:I}", "command",
                            json_from_bytes(command->data, command->len), "status",
                            run_status_name(run_result_status(o)), "exitCode", "signal",
                            "durationMs", (json_int_t)(o->ended_us - o->started_us) / 1000);
    json_t *truncation = json_object();

    add_number(row, "exitCode", exited, o->exit_code);
    add_number(row, "signal", o->signal != 0, o->signal);
    add_stream(row, truncation, "stdout", &capture->out);
    add_stream(row, truncation, "stderr", &capture->err);
    json_object_set_new(row, "truncation", truncation);
    return row;
}

json_t *run_result_running(const struct run_story *story, int64_t ms)
{
    json_t *result = begin_result(story->run_id, RUN_RUNNING, ms);

    add_story(result, story);
    json_object_set_new(result, "nextByte", json_integer((json_int_t)story->capture->both.total));
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

void run_result_add_new(json_t *result, const struct live *output, uint64_t since, bool over)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * LIVE_KEEP + 64);
    AUTO_BUF struct buf there = BUF_INIT(3 * LIVE_KEEP);
    uint64_t next, skipped;

    live_text(output, since, LIVE_KEEP, over, &there, &next, &skipped);
    if (skipped > 0)
        buf_addf(&text, "[... %" PRIu64 " bytes left out ...]\n", skipped);
    buf_add(&text, buf_str(&there), there.len);
    json_object_set_new(result, "newOutput", json_stringn(buf_str(&text), text.len));
    json_object_set_new(result, "nextByte", json_integer((json_int_t)next));
}
