#include "config.h"

#include "common/tools/runs/run_words.h"

#include "common/base/auto.h"
#include "common/mcp/features/content.h"
#include "common/rpc/json.h"
#include "common/tools/runs/advice.h"
#include "common/tools/runs/permit.h"
#include "common/tools/runs/printed.h"
#include "common/tools/tools_app.h"
#include "common/tools/words.h"

#include <inttypes.h>
#include <string.h>

#define SAID_MAX     4096
#define LEFT_MAX     (64u * 1024)
#define COMMAND_SAID 100 /* bytes */
#define TEXT_MAX     (128u * 1024 * 1024)

const char *run_words_status(const json_t *result)
{
    const char *status = json_get_string(result, "status");

    return status ? status : "";
}

bool run_words_has_status(const json_t *result, const char *status)
{
    return strcmp(run_words_status(result), status) == 0;
}

static json_int_t number_of(const json_t *result, const char *name)
{
    return json_get_integer(result, name, 0);
}

static bool has(const json_t *result, const char *name)
{
    return json_is_integer(json_object_get(result, name));
}

/* ---- how it ended ---- */

static void words_end(struct buf *line, const struct mcp_tool_call *c, const json_t *row)
{
    static const char *const ends[][2] = {
        {"out_of_memory", "ended: out of memory"},
        {"output_limit", "stopped: it printed too much"},
        {"disk_limit", "stopped: its files took too much"},
        {"cancelled", "cancelled"},
        {"running", "still running"},
        {"busy", "not started: busy"},
        {"lost", "The run is lost"},
    };
    const struct broker_limits *limits = &((const struct tools_app *)c->app)->limits;
    const char *status = json_get_string(row, "status"), *end = NULL;
    int64_t ms = number_of(row, "durationMs");

    if (status && strcmp(status, "timeout") == 0) {
        buf_add_str(line, "stopped after ");
        words_time(line, ms);
        if (ms + 1000 < (int64_t)limits->timeout_max_ms)
            buf_addf(line, ": timeoutMs allows up to %" PRIu64, limits->timeout_max_ms);
        else
            buf_add_str(line, ", the most that is allowed: do it in parts, each of which saves to "
                              "/data");
        return;
    }
    for (size_t i = 0; status && !end && i < ARRAY_LEN(ends); i++)
        if (strcmp(ends[i][0], status) == 0)
            end = ends[i][1];
    if (end)
        buf_add_str(line, end);
    else if (has(row, "exitCode"))
        buf_addf(line, "exit code %" JSON_INTEGER_FORMAT, number_of(row, "exitCode"));
    else
        buf_addf(line, "ended by signal %" JSON_INTEGER_FORMAT, number_of(row, "signal"));
    if (ms > 0 || has(row, "exitCode")) {
        buf_add_str(line, ", ");
        words_time(line, ms);
    }
}

/* What a model seldom needs. */
static void add_measures(struct buf *line, const json_t *result)
{
    if (has(result, "cpuMs")) {
        buf_add_str(line, ", processor ");
        words_time(line, number_of(result, "cpuMs"));
    }
    if (has(result, "peakMemoryBytes")) {
        buf_add_str(line, ", memory ");
        words_size(line, (uint64_t)number_of(result, "peakMemoryBytes"));
    }
    buf_add_str(line, ", waited ");
    words_time(line, number_of(result, "queueMs"));
    if (json_get_string(result, "runId"))
        buf_addf(line, ", runId %s", json_get_string(result, "runId"));
    if (has(result, "filesExpireAt"))
        buf_addf(line, ", files expire at %" JSON_INTEGER_FORMAT " (Unix time)",
                 number_of(result, "filesExpireAt"));
}

static void say_end(const struct mcp_tool_call *c, const json_t *result, bool full,
                    struct mcp_result *out)
{
    const char *reason = json_get_string(result, "reason");
    AUTO_BUF struct buf line = BUF_INIT(SAID_MAX);

    words_end(&line, c, result);
    if (reason)
        buf_addf(&line, ": %s", reason);
    if (full)
        add_measures(&line, result);
    mcp_result_say(out, "%s", buf_str(&line));
}

/* ---- what to do next ---- */

static unsigned facts_of(const struct mcp_tool_call *c, const struct run_asked *asked,
                         const json_t *result)
{
    const struct tools_app *app = c->app;
    const bool fresh = json_get_bool(result, "sessionStarted", 0);
    struct err none = ERR_INIT;
    enum network_tier tier;
    const bool can = permit_network(c, true, &tier, &none) == 0;
    const struct {
        bool is;
        enum advice_fact fact;
    } all[] = {
        /* A session goes on with the network that an earlier call gave it. */
        {!can || (asked && !asked->network && (!asked->session || fresh)), ADVICE_OFFLINE},
        {asked && !asked->session && !asked->begins, ADVICE_ALONE},
        {asked && asked->begins, ADVICE_BEGINS},
        {asked && !asked->input, ADVICE_NO_INPUT},
        {asked && asked->input, ADVICE_INPUT},
        {fresh, ADVICE_FRESH},
        {can, ADVICE_NETWORK},
        {app->packages, ADVICE_PACKAGES},
        {tools_have_psandboxes(c->app), ADVICE_SESSIONS},
    };
    unsigned facts = 0;

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        facts |= all[i].is ? all[i].fact : 0;
    return facts;
}

/* "left in /tmp and gone: result.csv; write to /data" */
static void words_left(struct buf *line, const json_t *result)
{
    static const char tmp[] = "/tmp/";
    const json_t *left = json_object_get(result, "left");
    const size_t n = json_array_size(left);
    const json_int_t more = number_of(result, "leftOmitted");
    size_t in_tmp = 0;

    for (size_t i = 0; i < n; i++)
        in_tmp += json_is_string(json_array_get(left, i)) &&
                  strncmp(json_string_value(json_array_get(left, i)), tmp, strlen(tmp)) == 0;
    if (n + (size_t)more == 0)
        return;
    buf_add_str(line, n > 0 && in_tmp == n ? "left in /tmp and gone: " : "left and gone: ");
    for (size_t i = 0; i < n; i++) {
        const char *path = json_string_value(json_array_get(left, i));
        buf_add_str(line, i > 0 ? ", " : "");
        content_clean_name(path ? path + (in_tmp == n ? strlen(tmp) : 0) : "?", line);
    }
    if (more > 0)
        buf_addf(line,
                 n > 0 ? " and %" JSON_INTEGER_FORMAT " more" : "%" JSON_INTEGER_FORMAT " files",
                 more);
    buf_add_str(line, "; write to /data");
}

static void add_advice(json_t *result, const struct buf *sentence, struct mcp_result *out)
{
    json_t *all = json_object_get(result, "advice");

    if (sentence->len == 0)
        return;
    if (!all)
        json_object_set_new(result, "advice", all = json_array());
    json_array_append_new(all, json_from_bytes(sentence->data, sentence->len));
    mcp_result_say(out, "%s", buf_str(sentence));
}

/* An installation has words of its own. */
static bool has_reason(const json_t *result)
{
    return json_object_get(result, "reason") || json_object_get(result, "installed");
}

/* What the end of the run and of what it printed calls for, such as what is not installed. */
static void advise(const struct mcp_tool_call *c, const struct run_asked *asked, json_t *result,
                   const json_t *output, struct mcp_result *out)
{
    const char *text = json_string_value(output), *status = json_get_string(result, "status");
    const struct advice_case its = {
        .status = status ? status : "",
        .facts = facts_of(c, asked, result),
        .text = text ? text : "",
        .len = json_string_length(output),
        .prefix = words_prefix(c),
        .bounds = &((const struct tools_app *)c->app)->limits.run,
    };
    AUTO_BUF struct buf left = BUF_INIT(LEFT_MAX), sentence = BUF_INIT(SAID_MAX);

    words_left(&left, result);
    add_advice(result, &left, out);
    if (!has_reason(result))
        advice_find(&its, &sentence);
    add_advice(result, &sentence, out);
}

/* from: where what was left out begins; 0: nothing was. */
static void advise_running(const struct mcp_tool_call *c, const json_t *result, json_int_t from,
                           struct mcp_result *out)
{
    const char *id = json_get_string(result, "runId");
    const json_int_t next = from > 0 ? from : number_of(result, "nextByte");
    AUTO_BUF struct buf line = BUF_INIT(SAID_MAX);

    buf_addf(&line, "%sget_run with runId %s", words_prefix(c), id ? id : "");
    if (next > 0)
        buf_addf(&line, " and sinceByte %" JSON_INTEGER_FORMAT, next);
    buf_addf(&line, " brings the rest; %scancel_run ends it", words_prefix(c));
    if (json_get_string(result, "notKept"))
        buf_add_str(&line,
                    ". Its result cannot be kept: only a call that waits for its end gets it");
    mcp_result_say(out, "%s", buf_str(&line));
}

/* How to see what was cut, from byte from on; 0: nothing was. */
static void advise_rest(const struct mcp_tool_call *c, const json_t *result, json_int_t from,
                        struct mcp_result *out)
{
    const char *id = json_get_string(result, "runId");

    if (from > 0 && id && has(result, "expiresAt"))
        mcp_result_say(out,
                       "more output: %sget_run with runId %s and sinceByte %" JSON_INTEGER_FORMAT,
                       words_prefix(c), id, from);
    else if (from > 0)
        mcp_result_say(out, "to see all output, write it to a file and %sread_file that",
                       words_prefix(c));
}

static void say_next(const struct mcp_tool_call *c, const struct run_asked *asked, json_t *result,
                     const json_t *output, json_int_t rest_from, struct mcp_result *out)
{
    const char *note = json_get_string(result, "sessionNote");

    if (run_words_has_status(result, "running"))
        advise_running(c, result, rest_from, out);
    else
        advise_rest(c, result, rest_from, out);
    if (run_words_has_status(result, "ok") && json_string_length(output) == 0 &&
        json_array_size(json_object_get(result, "files")) == 0 &&
        !json_object_get(result, "newOutput") && !json_object_get(result, "results") &&
        !json_object_get(result, "left"))
        mcp_result_say(out, "printed nothing: print what you want to see");
    advise(c, asked, result, output, out);
    if (note)
        mcp_result_say(out, "%s", note);
}

/* ---- all ---- */

/* The bytes of the output that the first len bytes of its text stand for: what was no UTF-8 is
 * three bytes there. */
static json_int_t bytes_of(const char *text, size_t len)
{
    json_int_t bytes = (json_int_t)len;

    for (size_t i = 0; i + 2 < len; i++)
        if (memcmp(text + i, "\xEF\xBF\xBD", 3) == 0)
            bytes -= 2;
    return bytes;
}

/* Returns from which byte of the output on there is more; 0: there is not. */
static json_int_t show_output(const struct mcp_tool_call *c, const char *detail,
                              const json_t *result, const json_t *output, struct mcp_result *out)
{
    const size_t room = detail_room(c, detail);
    const json_t *all = json_object_get(json_object_get(result, "truncation"), "output");
    const json_int_t total = number_of(all, "total");
    const char *text = json_string_value(output) ? json_string_value(output) : "";
    const size_t len = json_string_length(output);
    const bool piece = json_object_get(result, "newOutput") != NULL; /* not longer than asked for */
    AUTO_BUF struct buf shown = BUF_INIT(3 * len + 100);
    size_t head = printed_add(&shown, text, len, piece ? len : room, !detail_is_full(detail));

    mcp_result_show(out, buf_str(&shown), shown.len);
    if (piece)
        return number_of(result, "nextByte") < total ? number_of(result, "nextByte") : 0;
    return head > 0 ? bytes_of(text, head) : json_get_bool(all, "truncated", 0) ? 1 : 0;
}

/* What a command printed, and how it ended; the last one's end is said at the end.
 * true: not all was shown. */
static bool show_command(const struct mcp_tool_call *c, const json_t *row, bool last, bool brief,
                         size_t room, struct buf *text)
{
    static const char *const streams[] = {"stdout", "stderr"};
    const char *command = json_get_string(row, "command");
    bool cut = false;

    buf_addf(text, "$ %.*s\n", COMMAND_SAID, command ? command : "");
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        const json_t *stream = json_object_get(row, streams[i]);
        const char *printed = json_string_value(stream);

        cut |= printed_add(text, printed ? printed : "", json_string_length(stream), room, brief) >
               0;
        if (text->len > 0 && text->data[text->len - 1] != '\n')
            buf_add_char(text, '\n');
    }
    if (!last) {
        words_end(text, c, row);
        buf_add_char(text, '\n');
    }
    return cut;
}

/* Several commands, each with what it printed; returns as show_output. */
static json_int_t show_commands(const struct mcp_tool_call *c, const char *detail,
                                const json_t *rows, struct mcp_result *out)
{
    const size_t n = json_array_size(rows), room = detail_room(c, detail) / (2 * n);
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    bool cut = false;

    for (size_t i = 0; i < n; i++)
        cut |= show_command(c, json_array_get(rows, i), i == n - 1, !detail_is_full(detail), room,
                            &text);
    mcp_result_show(out, buf_str(&text), text.len);
    return cut;
}

/* What it wrote last may be half of it. */
static bool was_cut_off(const json_t *result)
{
    static const char *const ends[] = {"timeout",    "out_of_memory", "output_limit",
                                       "disk_limit", "cancelled",     "killed"};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (run_words_has_status(result, ends[i]))
            return true;
    return false;
}

void run_words(const struct mcp_tool_call *c, const struct run_wording *how, json_t *result,
               struct mcp_result *out)
{
    const json_t *fresh = json_object_get(result, "newOutput");
    const json_t *output = fresh ? fresh : json_object_get(result, "output");
    const json_t *rows = json_object_get(result, "results");
    json_int_t rest_from = 0;

    if (!fresh && json_array_size(rows) > 1)
        rest_from = show_commands(c, how->detail, rows, out);
    else if (!how->no_output)
        rest_from = show_output(c, how->detail, result, output, out);
    say_end(c, result, detail_is_full(how->detail), out);
    say_next(c, how->asked, result, output, rest_from, out);
    if (how->pictures)
        mcp_result_say(out, "%s", how->pictures);
    words_files(out, c, json_object_get(result, "files"),
                &(struct words_files){.omitted = (size_t)number_of(result, "filesOmitted"),
                                      .full = detail_is_full(how->detail),
                                      .cut_off = was_cut_off(result)});
}
