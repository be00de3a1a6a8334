#include "config.h"

#include "common/engine/entry_frame.h"

#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/rpc/json.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define MEMORY_MAX     (UINT64_C(1) << 48)
#define OTHER_VERSION  "build the runner images of this version (runners/build.sh)"
#define ENTRY_LATER_MS 1000 /* the server's own deadline comes first */
#define ENTRY_PAYLOAD_MAX                                                                          \
    ((size_t)256 * 1024 * 1024) /* of all records; far above what callers allow */

static enum frame_push broken(struct err *e, const char *what)
{
    err_set(e, ERR_PROTOCOL, "the runner's entry program sent %s", what);
    return FRAME_BROKEN;
}

/* The kinds of frames: how long they are, and when they come. */
struct kind {
    char tag;
    uint32_t min, max;
    bool handed;  /* only after a program was handed over */
    bool started; /* also after the program has started */
};

static const struct kind kinds[] = {
    {'W', 1, ENTRY_WORD_MAX, false, false}, {'S', 1, ENTRY_WORD_MAX, true, false},
    {'O', 0, ENTRY_FRAME_MAX, true, true},  {'E', 0, ENTRY_FRAME_MAX, true, true},
    {'R', 1, ENTRY_REPORT_MAX, true, true},
};

static enum frame_push entry_head(void *ctx, struct err *e)
{
    struct entry_frame *f = ctx;
    const struct kind *kind = NULL;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].tag == f->reader.head[0])
            kind = &kinds[i];
    f->text_len = 0;
    if (!kind)
        return broken(e, "a frame of unknown kind");
    if (f->reader.left < kind->min || f->reader.left > kind->max)
        return broken(e, "a frame over its limit");
    if (kind->handed && !f->handed)
        return broken(e, "output before it had a program");
    if (!kind->started && f->started)
        return broken(e, "a frame too late");
    if (kind->handed)
        f->started = true;
    return FRAME_MORE;
}

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

int entry_report_parse(const char *text, size_t len, struct entry_report *out, struct err *e)
{
    json_auto_t *report = json_parse(text, len, 2, e);
    json_int_t exit_code, sig, cpu, peak, oom;

    if (!report)
        return -1;
    if (!json_is_object(report) || !report_number(report, "exitCode", -1, 255, -1, &exit_code) ||
        !report_number(report, "signal", 0, 64, 0, &sig) ||
        !report_number(report, "cpuUs", 0, INT64_MAX, 0, &cpu) ||
        !report_number(report, "peakMemoryBytes", 0, INT64_MAX, 0, &peak) ||
        !report_number(report, "oomKills", 0, INT64_MAX, 0, &oom))
        return err_set(e, ERR_PROTOCOL, "a member is missing or out of range");
    /* Exactly one of the two says how the program ended. */
    if ((exit_code == -1) == (sig == 0))
        return err_set(e, ERR_PROTOCOL, "exit code and signal contradict each other");
    *out = (struct entry_report){
        .exit_code = (int)exit_code,
        .signal = (int)sig,
        .cpu_us = (uint64_t)cpu,
        .peak_memory_bytes = (uint64_t)peak,
        .oom_kills = (uint64_t)oom,
        .timed_out = json_is_true(json_object_get(report, "timedOut")),
    };
    return 0;
}

void entry_report_outcome(const struct entry_report *report, struct engine_outcome *out)
{
    out->end = report->timed_out ? ENGINE_TIMED_OUT : ENGINE_EXITED;
    out->exit_code = report->exit_code;
    out->signal = report->signal;
    out->cpu_us = report->cpu_us;
    out->peak_memory_bytes = report->peak_memory_bytes;
    /* The kernel may have killed a child only, while the program ended well. */
    out->out_of_memory = !report->timed_out && report->oom_kills > 0 &&
                         (report->signal == SIGKILL || report->exit_code > 0);
}

/* 'W', a tier and perhaps the bytes of memory: the tier only rises. */
static enum frame_push take_tier(struct entry_frame *f, struct err *e)
{
    AUTO_FREE char *text = mem_strndup(f->text, f->text_len);
    char *bytes = text, *word = strsep(&bytes, " ");
    enum engine_tier tier = strcmp(word, "started") == 0     ? ENGINE_TIER_STARTED
                            : strcmp(word, "preloaded") == 0 ? ENGINE_TIER_PRELOADED
                                                             : ENGINE_TIER_NONE;

    if (tier <= f->tier || strlen(text) + (bytes ? 1 + strlen(bytes) : 0) != f->text_len ||
        (bytes && parse_u64(bytes, 0, MEMORY_MAX, &f->memory_bytes) < 0))
        return broken(e, "an unknown tier; " OTHER_VERSION);
    f->tier = tier;
    return FRAME_MORE;
}

/* 'S' */
static enum frame_push take_start(struct entry_frame *f, struct err *e)
{
    f->warm = f->text_len == 4 && memcmp(f->text, "warm", 4) == 0;
    return f->warm || (f->text_len == 3 && memcmp(f->text, "new", 3) == 0)
               ? FRAME_MORE
               : broken(e, "an unknown kind of start; " OTHER_VERSION);
}

static enum frame_push take_report(struct entry_frame *f, struct err *e)
{
    if (entry_report_parse(f->text, f->text_len, &f->report, e) < 0) {
        e->kind = ERR_PROTOCOL;
        err_wrap(e, "the runner's report");
        return FRAME_BROKEN;
    }
    f->reported = true;
    return FRAME_STOP;
}

/* Passes output on; collects the payload of the other frames, and takes it when it is complete. */
static enum frame_push entry_payload(void *ctx, const char *data, size_t len, struct err *e)
{
    struct entry_frame *f = ctx;
    char tag = f->reader.head[0];

    if (tag == 'O' || tag == 'E')
        return f->sink->output(f->sink->ctx, tag == 'O' ? ENGINE_STDOUT : ENGINE_STDERR, data, len)
                   ? FRAME_MORE
                   : FRAME_STOP;
    memcpy(f->text + f->text_len, data, len);
    f->text_len += len;
    if (f->reader.left > 0)
        return FRAME_MORE;
    return tag == 'W' ? take_tier(f, e) : tag == 'S' ? take_start(f, e) : take_report(f, e);
}

enum frame_push entry_frame_push(struct entry_frame *f, const char *data, size_t len,
                                 const struct engine_sink *sink, struct err *e)
{
    static const struct frame_handler handler = {ENTRY_RECORD_HEAD, entry_head, entry_payload};

    f->sink = sink;
    return f->reported ? FRAME_STOP : frame_push(&f->reader, &handler, f, data, len, e);
}

static void add_record(struct buf *out, char tag, const void *data, size_t len)
{
    buf_add_char(out, tag);
    frame_add_u32(out, len);
    if (len > 0)
        buf_add(out, data, len);
}

/* Adds the size of one record; false when the sum passes the limit. */
static bool add_size(size_t *sum, size_t payload)
{
    if (payload > ENTRY_PAYLOAD_MAX - *sum)
        return false;
    *sum += payload + ENTRY_RECORD_HEAD;
    return *sum <= ENTRY_PAYLOAD_MAX;
}

int entry_size(const struct engine_program *program, size_t *out, struct err *e)
{
    size_t sum = 0;
    bool fits = add_size(&sum, program->code_len) && add_size(&sum, program->input_len) &&
                add_size(&sum, 20) && add_size(&sum, 0);

    for (size_t i = 0; fits && i < program->n_args; i++)
        fits = add_size(&sum, strlen(program->args[i]));
    for (size_t i = 0; fits && i < program->n_env; i++)
        fits = add_size(&sum, strlen(program->env[i]));
    if (!fits)
        return err_set(e, ERR_LIMIT, "code, input, arguments and environment are too large");
    *out = sum;
    return 0;
}

int entry_write(const struct engine_program *program, struct buf *out, struct err *e)
{
    char ms[24];
    size_t size;
    int n = snprintf(ms, sizeof ms, "%" PRIu64, program->timeout_ms + ENTRY_LATER_MS);

    if (entry_size(program, &size, e) < 0)
        return -1;
    add_record(out, 'C', program->code, program->code_len);
    if (program->input)
        add_record(out, 'I', program->input, program->input_len);
    for (size_t i = 0; i < program->n_args; i++)
        add_record(out, 'A', program->args[i], strlen(program->args[i]));
    for (size_t i = 0; i < program->n_env; i++)
        add_record(out, 'E', program->env[i], strlen(program->env[i]));
    if (program->timeout_ms > 0)
        add_record(out, 'T', ms, (size_t)n);
    add_record(out, 'G', NULL, 0);
    return buf_ok(out) ? 0 : err_set(e, ERR_LIMIT, "the envelope is larger than its buffer");
}

int entry_write_preload(const char *names, struct buf *out, struct err *e)
{
    size_t len = strlen(names);

    if (len == 0 || len > ENTRY_PRELOAD_MAX)
        return err_set(e, ERR_LIMIT, "the names to preload are %zu bytes; the limit is %d", len,
                       ENTRY_PRELOAD_MAX);
    add_record(out, 'P', names, len);
    return buf_ok(out) ? 0 : err_set(e, ERR_LIMIT, "the envelope is larger than its buffer");
}
