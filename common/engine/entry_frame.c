#include "config.h"

#include "common/engine/entry_frame.h"

#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/protocol/entry_record.h"
#include "common/rpc/json.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define HEAD_LEN       5
#define ID_LEN         4
#define WORD_MAX       32 /* of 'W' and 'S' */
#define REPORT_MAX     2048
#define REPORT_DEPTH   2
#define MEMORY_MAX     (UINT64_C(1) << 48)
#define OTHER_VERSION  "the runner image is of another version"
#define ENTRY_LATER_MS 1000 /* a run's deadline in the server comes first */

/* The integer member name in [min, max]; null counts as fallback. false when it is anything else.
 */
static bool report_number(const json_t *report, const char *name, json_int_t min, json_int_t max,
                          json_int_t fallback, json_int_t *out)
{
    const json_t *v = json_object_get(report, name);

    *out = fallback;
    if (!v || json_is_null(v))
        return true;
    if (!json_is_integer(v))
        return false;
    *out = json_integer_value(v);
    return *out >= min && *out <= max;
}

/* Its member left, as lines; false when it is anything else. */
static bool report_left(const json_t *report, struct engine_outcome *out)
{
    const json_t *left = json_object_get(report, "left"), *path;
    size_t i, len = 0;

    if (left && (!json_is_array(left) || json_array_size(left) > ENGINE_LEFT_PATHS))
        return false;
    json_array_foreach((json_t *)(uintptr_t)left, i, path)
    {
        const char *text = json_string_value(path);

        /* A line each. */
        if (!text || json_string_length(path) > ENGINE_LEFT_PATH_MAX ||
            strlen(text) != json_string_length(path) || strchr(text, '\n'))
            return false;
        len += (size_t)snprintf(out->left + len, sizeof(out->left) - len, "%s\n", text);
    }
    return true;
}

/* 'R' */
static int take_report(struct engine_event *ev, struct err *e)
{
    json_auto_t *report = json_parse(ev->data, ev->len, REPORT_DEPTH, e);
    json_int_t exit_code, sig, cpu, peak, oom, left;
    bool timed_out;

    if (!report)
        return -1;
    if (!json_is_object(report) || !report_number(report, "exitCode", -1, 255, -1, &exit_code) ||
        !report_number(report, "signal", 0, 64, 0, &sig) ||
        !report_number(report, "cpuUs", 0, INT64_MAX, 0, &cpu) ||
        !report_number(report, "peakMemoryBytes", 0, INT64_MAX, 0, &peak) ||
        !report_number(report, "oomKills", 0, INT64_MAX, 0, &oom) ||
        !report_number(report, "leftOmitted", 0, INT64_MAX, 0, &left))
        return err_set(e, ERR_PROTOCOL, "a member is missing or out of range");
    /* Exactly one of the two says how the program ended. */
    if ((exit_code == -1) == (sig == 0))
        return err_set(e, ERR_PROTOCOL, "exit code and signal contradict each other");
    timed_out = json_is_true(json_object_get(report, "timedOut"));
    ev->outcome = (struct engine_outcome){
        .end = timed_out ? ENGINE_TIMED_OUT : ENGINE_EXITED,
        .exit_code = (int)exit_code,
        .signal = (int)sig,
        .cpu_us = (uint64_t)cpu,
        .peak_memory_bytes = (uint64_t)peak,
        /* The kernel may have killed a child only, while the program ended well. */
        .out_of_memory = !timed_out && oom > 0 && (sig == SIGKILL || exit_code > 0),
        .left_omitted = (uint64_t)left,
    };
    return report_left(report, &ev->outcome)
               ? 0
               : err_set(e, ERR_PROTOCOL, "what it left is no list of paths");
}

/* 'W': a tier and perhaps the bytes of memory. */
static int take_tier(struct engine_event *ev, struct err *e)
{
    AUTO_FREE char *text = mem_strndup(ev->data, ev->len);
    char *bytes = text, *word = strsep(&bytes, " ");

    ev->wait.tier = strcmp(word, "started") == 0     ? ENGINE_TIER_STARTED
                    : strcmp(word, "preloaded") == 0 ? ENGINE_TIER_PRELOADED
                                                     : ENGINE_TIER_NONE;
    if (ev->wait.tier == ENGINE_TIER_NONE ||
        strlen(text) + (bytes ? 1 + strlen(bytes) : 0) != ev->len ||
        (bytes && parse_u64(bytes, 0, MEMORY_MAX, &ev->wait.memory_bytes) < 0))
        return err_set(e, ERR_PROTOCOL, "an unknown tier; " OTHER_VERSION);
    return 0;
}

/* 'S' */
static int take_start(struct engine_event *ev, struct err *e)
{
    ev->warm = ev->len == 4 && memcmp(ev->data, "warm", 4) == 0;
    return ev->warm || (ev->len == 3 && memcmp(ev->data, "new", 3) == 0)
               ? 0
               : err_set(e, ERR_PROTOCOL, "an unknown kind of start; " OTHER_VERSION);
}

/* 'L' */
static int take_load(struct engine_event *ev, struct err *e)
{
    const bool done = ev->len == 4 && memcmp(ev->data, "done", 4) == 0;

    ev->kind = done ? ENGINE_EVENT_LOADED : ENGINE_EVENT_LOADING;
    return done || (ev->len == 5 && memcmp(ev->data, "begun", 5) == 0)
               ? 0
               : err_set(e, ERR_PROTOCOL, "an unknown step; " OTHER_VERSION);
}

/* The kinds of frames, and how long they are behind the id. */
struct kind {
    char tag;
    enum engine_event_kind kind;
    size_t min, max;
    int (*take)(struct engine_event *ev, struct err *e);
};

static const struct kind kinds[] = {
    {'W', ENGINE_EVENT_TIER, 1, WORD_MAX, take_tier},
    {'L', ENGINE_EVENT_LOADING, 1, WORD_MAX, take_load},
    {'S', ENGINE_EVENT_BEGUN, 1, WORD_MAX, take_start},
    {'O', ENGINE_EVENT_OUT, 1, ENTRY_FRAME_MAX, NULL},
    {'E', ENGINE_EVENT_ERR, 1, ENTRY_FRAME_MAX, NULL},
    {'K', ENGINE_EVENT_CONTROL, 1, ENTRY_FRAME_MAX, NULL},
    {'R', ENGINE_EVENT_ENDED, 1, REPORT_MAX, take_report},
    {'F', ENGINE_EVENT_FAILED, 1, REPORT_MAX, NULL},
};

ssize_t entry_frame_take(const char *data, size_t len, struct engine_event *out, struct err *e)
{
    const struct kind *kind = NULL;
    size_t size;

    for (size_t i = 0; len > 0 && i < ARRAY_LEN(kinds); i++)
        if (kinds[i].tag == data[0])
            kind = &kinds[i];
    if (len > 0 && !kind)
        return err_set(e, ERR_PROTOCOL, "the container sent a frame of unknown kind");
    if (len < HEAD_LEN)
        return 0;
    size = u32_get(data + 1);
    if (size < ID_LEN + kind->min || size > ID_LEN + kind->max)
        return err_set(e, ERR_PROTOCOL, "the container sent a frame over its limit");
    if (len < HEAD_LEN + size)
        return 0;
    *out = (struct engine_event){.kind = kind->kind,
                                 .id = u32_get(data + HEAD_LEN),
                                 .data = data + HEAD_LEN + ID_LEN,
                                 .len = size - ID_LEN};
    if (kind->take && kind->take(out, e) < 0) {
        e->kind = ERR_PROTOCOL;
        return err_wrap(e, "the container sent a frame %c", kind->tag);
    }
    return (ssize_t)(HEAD_LEN + size);
}

static void add_text(struct buf *out, char letter, const char *text)
{
    entry_item_add(letter, text, strlen(text), out);
}

/* What is started, as items. */
static void add_items(const struct engine_command *command, struct buf *out)
{
    uint64_t later_ms = command->run ? ENTRY_LATER_MS : 0;

    if (command->timeout_ms > 0)
        buf_addf(out, "T%" PRIu64 "%c", command->timeout_ms + later_ms, 0);
    if (command->cwd)
        add_text(out, 'D', command->cwd);
    if (command->control)
        add_text(out, 'K', "");
    if (command->load && command->load[0])
        add_text(out, 'L', command->load);
    for (size_t i = 0; i < command->n_env; i++)
        add_text(out, 'E', command->env[i]);
    for (size_t i = 0; i < command->n_argv; i++)
        add_text(out, 'A', command->argv[i]);
}

static int write_command(uint32_t id, const struct engine_command *command, struct buf *out,
                         struct err *e)
{
    if (!command->run && (command->n_argv == 0 || !*command->argv[0]))
        return err_set(e, ERR_INVALID, "a command needs the name of a program");
    for (size_t i = 0; i < command->n_env; i++)
        if (command->env[i][0] == '=' || !strchr(command->env[i], '='))
            return err_set(e, ERR_INVALID, "a variable of the environment needs a name and '='");
    if (command->language)
        entry_record_add('B', id, command->language, strlen(command->language), out);
    entry_records_copy(command->streams, command->streams_len, id, out);
    size_t at = entry_record_begin('X', id, out);
    add_items(command, out);
    if (entry_record_end(at, out) < 0)
        return err_set(e, ERR_LIMIT, "arguments and environment are over %zu bytes",
                       ENTRY_RECORD_MAX);
    return buf_ok(out) ? 0
                       : err_set(e, ERR_LIMIT,
                                 "the container does not take its input: too much is pending");
}

int entry_write_command(uint32_t id, const struct engine_command *command, struct buf *out,
                        struct err *e)
{
    size_t before = out->len;

    if (write_command(id, command, out, e) == 0)
        return 0;
    out->failed = false;
    out->len = before;
    return -1;
}

int entry_write_preload(const char *names, struct buf *out, struct err *e)
{
    size_t len = strlen(names);

    if (len == 0 || len > ENGINE_PRELOAD_MAX)
        return err_set(e, ERR_LIMIT, "the names to preload are %zu bytes; the limit is %d", len,
                       ENGINE_PRELOAD_MAX);
    entry_record_add('P', 0, names, len, out);
    return buf_ok(out) ? 0 : err_set(e, ERR_LIMIT, "the container does not take its input");
}
