#include "config.h"

#include "common/tools/runs/run_report.h"

#include "common/base/buf.h"
#include "common/mcp/features/content.h"
#include "common/rpc/json.h"
#include "common/tools/report.h"
#include "common/tools/runs/run_files.h"

#include <inttypes.h>
#include <string.h>

const char *run_report_status(const json_t *result)
{
    const char *status = json_get_string(result, "status");

    return status ? status : "";
}

static bool has_status(const json_t *result, const char *status)
{
    return strcmp(run_report_status(result), status) == 0;
}

bool run_report_is_running(const json_t *result)
{
    return has_status(result, "running");
}

static json_t *nothing_printed(void)
{
    json_t *stream = json_pack("{s:b, s:i, s:i}", "truncated", 0, "kept", 0, "total", 0);
    json_t *truncation = json_pack("{s:O, s:O, s:O}", "stdout", stream, "stderr", stream, "output",
                                   stream);

    json_decref(stream);
    return truncation;
}

/* Whatever happened to a run, its result has the same shape, so that a client can look at its
 * status. */
static void complete(json_t *result)
{
    json_auto_t *blank = json_pack("{s:b, s:n, s:n, s:s, s:s, s:s, s:o, s:i, s:[]}", "success", 0,
                                   "exitCode", "signal", "stdout", "", "stderr", "", "output", "",
                                   "truncation", nothing_printed(), "durationMs", 0, "files");

    json_object_update_missing(result, blank);
}

static void say(struct mcp_result *out, const struct buf *text)
{
    mcp_result_add(out, content_text_new(buf_str(text), text->len));
}

/* A model that sees this for the first time has to know how to go on. */
static void tell_how_to_go_on(const json_t *result, struct mcp_result *out)
{
    AUTO_BUF struct buf text = BUF_INIT(1024);
    const char *id = json_get_string(result, "runId");
    json_int_t next = json_get_integer(result, "nextByte", 0);

    buf_addf(&text,
             "The program is still running; this is its output so far. To get more and its result, "
             "call get_run with runId \"%s\"",
             id ? id : "");
    if (next > 0)
        buf_addf(&text, " (and sinceByte %" JSON_INTEGER_FORMAT " for only what is new)", next);
    buf_add_str(&text, "; to end it, call cancel_run.");
    if (json_get_string(result, "notKept"))
        buf_add_str(&text, " Its result cannot be kept: only who waits for its end gets it.");
    say(out, &text);
}

static void tell_lost(const json_t *result, struct mcp_result *out)
{
    AUTO_BUF struct buf text = BUF_INIT(1024);
    const char *reason = json_get_string(result, "reason");

    buf_addf(&text, "The run is lost: %s", reason ? reason : "nobody knows its outcome");
    say(out, &text);
}

static void tell_session(const json_t *result, struct mcp_result *out)
{
    const char *note = json_get_string(result, "sessionNote");

    if (note)
        mcp_result_add(out, content_text_new(note, strlen(note)));
}

void run_report_tell(const struct mcp_tool_call *c, const struct run_telling *how,
                     json_t *take_result, struct mcp_result *out)
{
    const char *whose = how->conversation ? how->conversation
                                          : json_get_string(take_result, "conversationId");
    const struct run_files files = {.conversation = whose ? whose : "",
                                    .rows = json_object_get(take_result, "files"),
                                    .opened = how->opened,
                                    .brief = how->brief || !whose};

    complete(take_result);
    out->structured = take_result;
    out->is_error = has_status(take_result, "busy") || has_status(take_result, "lost");
    if (run_report_is_running(take_result))
        tell_how_to_go_on(take_result, out);
    if (has_status(take_result, "lost"))
        tell_lost(take_result, out);
    tell_session(take_result, out);
    report_notices(take_result, out);
    run_files_show(c, &files, out);
}

void run_report_busy(const struct err *e, const struct broker_busy *busy, struct mcp_result *out)
{
    AUTO_BUF struct buf text = BUF_INIT(1024);

    out->structured = json_pack("{s:s}", "status", "busy");
    complete(out->structured);
    out->is_error = true;
    buf_add_str(&text, e->text);
    if (busy->retry_after_ms > 0) {
        json_object_set_new(out->structured, "retryAfterMs",
                            json_integer((json_int_t)busy->retry_after_ms));
        json_object_set_new(out->structured, "position", json_integer((json_int_t)busy->position));
        buf_addf(&text, " (%" PRIu64 " waiting; try again in %.1f s)", busy->position,
                 (double)busy->retry_after_ms / 1000.0);
    }
    say(out, &text);
}
