#include "config.h"

#include "common/engine/entry_frame.h"

#include "common/rpc/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ENTRY_LATER_MS 1000 /* the server's own deadline comes first */
#define ENTRY_PAYLOAD_MAX                                                                          \
    ((size_t)256 * 1024 * 1024) /* of all records; far above what callers allow */

static enum frame_push broken(struct err *e, const char *what)
{
    err_set(e, ERR_PROTOCOL, "the runner's entry program sent %s", what);
    return FRAME_BROKEN;
}

static enum frame_push take_head(struct entry_frame *f, struct err *e)
{
    const unsigned char *h = f->head;

    f->tag = (char)h[0];
    f->left = (uint32_t)h[1] << 24 | (uint32_t)h[2] << 16 | (uint32_t)h[3] << 8 | h[4];
    f->head_have = 0;
    if (f->tag != 'O' && f->tag != 'E' && f->tag != 'R')
        return broken(e, "a frame of unknown kind");
    if (f->left > ENTRY_FRAME_MAX)
        return broken(e, "a frame over its limit");
    if (f->tag == 'R' && (f->left == 0 || f->left > ENTRY_REPORT_MAX))
        return broken(e, "a report over its limit");
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

static int parse_report(const char *text, size_t len, struct entry_report *out, struct err *e)
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

static enum frame_push take_report(struct entry_frame *f, const char *data, size_t len,
                                   struct err *e)
{
    memcpy(f->report_text + f->report_len, data, len);
    f->report_len += len;
    if (f->left > 0)
        return FRAME_MORE;
    if (parse_report(f->report_text, f->report_len, &f->report, e) < 0) {
        e->kind = ERR_PROTOCOL;
        err_wrap(e, "the runner's report");
        return FRAME_BROKEN;
    }
    f->reported = true;
    return FRAME_STOP;
}

static enum frame_push take_payload(struct entry_frame *f, const char *data, size_t len,
                                    const struct engine_sink *sink, struct err *e)
{
    enum engine_stream stream = f->tag == 'O' ? ENGINE_STDOUT : ENGINE_STDERR;

    f->left -= (uint32_t)len;
    if (f->tag == 'R')
        return take_report(f, data, len, e);
    return sink->output(sink->ctx, stream, data, len) ? FRAME_MORE : FRAME_STOP;
}

enum frame_push entry_frame_push(struct entry_frame *f, const char *data, size_t len,
                                 const struct engine_sink *sink, struct err *e)
{
    if (f->reported)
        return FRAME_STOP;
    while (len > 0) {
        size_t part;
        enum frame_push r;

        if (f->left == 0) {
            part = ENTRY_RECORD_HEAD - f->head_have;
            if (part > len)
                part = len;
            memcpy(f->head + f->head_have, data, part);
            f->head_have += part;
            r = f->head_have == ENTRY_RECORD_HEAD ? take_head(f, e) : FRAME_MORE;
        } else {
            part = f->left < len ? f->left : len;
            r = take_payload(f, data, part, sink, e);
        }
        if (r != FRAME_MORE)
            return r;
        data += part;
        len -= part;
    }
    return FRAME_MORE;
}

static void add_record(struct buf *out, char tag, const void *data, size_t len)
{
    const char head[ENTRY_RECORD_HEAD] = {tag, (char)(len >> 24 & 0xff), (char)(len >> 16 & 0xff),
                                          (char)(len >> 8 & 0xff), (char)(len & 0xff)};

    buf_add(out, head, sizeof head);
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

int entry_size(const struct engine_spec *spec, size_t *out, struct err *e)
{
    size_t sum = sizeof ENTRY_MAGIC - 1;
    bool fits = add_size(&sum, spec->code_len) && add_size(&sum, spec->input_len) &&
                add_size(&sum, 20) && add_size(&sum, 0);

    for (size_t i = 0; fits && i < spec->n_args; i++)
        fits = add_size(&sum, strlen(spec->args[i]));
    for (size_t i = 0; fits && i < spec->n_env; i++)
        fits = add_size(&sum, strlen(spec->env[i]));
    if (!fits)
        return err_set(e, ERR_LIMIT, "code, input, arguments and environment are too large");
    *out = sum;
    return 0;
}

int entry_write(const struct engine_spec *spec, struct buf *out, struct err *e)
{
    char ms[24];
    size_t size;
    int n = snprintf(ms, sizeof ms, "%" PRIu64, spec->timeout_ms + ENTRY_LATER_MS);

    if (entry_size(spec, &size, e) < 0)
        return -1;
    buf_add_str(out, ENTRY_MAGIC);
    add_record(out, 'C', spec->code, spec->code_len);
    if (spec->input)
        add_record(out, 'I', spec->input, spec->input_len);
    for (size_t i = 0; i < spec->n_args; i++)
        add_record(out, 'A', spec->args[i], strlen(spec->args[i]));
    for (size_t i = 0; i < spec->n_env; i++)
        add_record(out, 'E', spec->env[i], strlen(spec->env[i]));
    if (spec->timeout_ms > 0)
        add_record(out, 'T', ms, (size_t)n);
    add_record(out, 'G', NULL, 0);
    return buf_ok(out) ? 0 : err_set(e, ERR_LIMIT, "the envelope is larger than its buffer");
}
