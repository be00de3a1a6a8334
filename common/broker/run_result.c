#include "config.h"

#include "common/broker/run_result.h"

#include "common/rpc/json.h"
#include "common/sandbox/files.h"

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

static bool add_output(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    struct run_capture *c = ctx;
    capture_add(stream == ENGINE_STDOUT ? &c->out : &c->err, data, len);
    capture_add(&c->both, data, len);
    return c->max == 0 || c->both.total <= c->max;
}

struct engine_sink run_capture_sink(struct run_capture *c)
{
    return (struct engine_sink){.output = add_output, .ctx = c};
}

enum run_status run_result_status(const struct engine_outcome *outcome)
{
    switch (outcome->end) {
    case ENGINE_TIMED_OUT:
        return RUN_TIMEOUT;
    case ENGINE_OUTPUT_LIMIT:
        return RUN_OUTPUT_LIMIT;
    case ENGINE_KILLED:
    case ENGINE_CANCELLED:
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

static json_t *integer_or_null(bool known, int64_t value)
{
    return known ? json_integer(value) : json_null();
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

json_t *run_result_new(const char *run_id, const struct sandbox *sb, const struct engine_outcome *o,
                       const struct run_capture *capture, const struct snapshot *before,
                       const struct snapshot *after)
{
    enum run_status status = run_result_status(o);
    bool exited = o->end == ENGINE_EXITED && !o->signal;
    json_t *result = json_object();
    json_t *truncation = json_object();
    struct file_list list = {.sb = sb, .files = json_array()};
    AUTO_FREE char *url = sandbox_url(sb);

    json_object_set_new(result, "success", json_boolean(status == RUN_OK));
    json_object_set_new(result, "status", json_string(run_status_name(status)));
    json_object_set_new(result, "exitCode", integer_or_null(exited, o->exit_code));
    json_object_set_new(result, "signal", integer_or_null(o->signal != 0, o->signal));
    add_stream(result, truncation, "stdout", &capture->out);
    add_stream(result, truncation, "stderr", &capture->err);
    add_stream(result, truncation, "output", &capture->both);
    json_object_set_new(result, "truncation", truncation);
    json_object_set_new(result, "durationMs", json_integer((o->ended_us - o->started_us) / 1000));
    json_object_set_new(result, "cpuMs", integer_or_null(o->cpu_us > 0, (int64_t)o->cpu_us / 1000));
    json_object_set_new(result, "peakMemoryBytes",
                        integer_or_null(o->peak_memory_bytes > 0, (int64_t)o->peak_memory_bytes));
    json_object_set_new(result, "runId", json_string(run_id));
    snapshot_diff(before, after, add_file, &list);
    json_object_set_new(result, "files", list.files);
    json_object_set_new(result, "filesOmitted", json_integer((json_int_t)list.omitted));
    json_object_set_new(result, "fileBaseUrl", json_string(url));
    return result;
}
