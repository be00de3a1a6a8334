#include "config.h"

#include "common/tools/runs/run_report.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"
#include "common/tools/args.h"
#include "common/tools/list.h"
#include "common/tools/runs/gallery.h"
#include "common/tools/runs/run_files.h"
#include "common/tools/tools_app.h"
#include "common/tools/words.h"

#include <inttypes.h>
#include <string.h>

#define TASK_AFTER_MS 3000 /* what runs longer becomes a task, where it can */
#define POLL_MS       1000 /* how often a client should call tasks/get */
#define BRIEF_MS      1000 /* limit of a request for a notification: others wait behind it */
#define TICK_MS       500
#define SILENCE_MS    3000          /* before a sign of life */
#define ABOUT_MAX     (256u * 1024) /* of a line with names */

/* _meta of progress messages: what tells a program's output from the server's own words. */
#define META_STREAM    "sandcgi/stream"   /* of a piece of output: "stdout" or "stderr" */
#define META_SKIPPED   "sandcgi/skipped"  /* bytes of output that are left out here */
#define META_NEXT_BYTE "sandcgi/nextByte" /* offset in the output behind the piece or gap */
#define META_POSITION  "sandcgi/position" /* place in the queue */

static json_t *nothing_printed(void)
{
    json_t *stream = json_pack("{s:b, s:i, s:i}", "truncated", 0, "kept", 0, "total", 0);
    json_t *truncation = json_pack("{s:O, s:O, s:O}", "stdout", stream, "stderr", stream, "output",
                                   stream);

    json_decref(stream);
    return truncation;
}

/* Every result has the same shape, so that a client only needs to look at its status. */
static void add_missing_members(json_t *result)
{
    json_auto_t *blank = json_pack("{s:b, s:n, s:n, s:s, s:s, s:s, s:o, s:i, s:[]}", "success", 0,
                                   "exitCode", "signal", "stdout", "", "stderr", "", "output", "",
                                   "truncation", nothing_printed(), "durationMs", 0, "files");

    json_object_update_missing(result, blank);
}

static const char *lost_reason(const json_t *result)
{
    const char *reason = json_get_string(result, "reason");

    return reason ? reason : "its outcome is unknown";
}

void run_report_tell(const struct mcp_tool_call *c, const struct run_telling *how,
                     json_t *take_result, struct mcp_result *out)
{
    const char *whose = how->conversation ? how->conversation
                                          : json_get_string(take_result, "conversationId");
    const struct run_files files = {.conversation = whose ? whose : "",
                                    .rows = json_object_get(take_result, "files"),
                                    .open_files = how->open_files,
                                    .brief = how->brief || !whose};
    struct run_wording words = how->words;
    AUTO_BUF struct buf pictures = BUF_INIT(ABOUT_MAX);

    add_missing_members(take_result);
    out->structured = take_result;
    out->is_error = run_words_has_status(take_result, "busy") ||
                    run_words_has_status(take_result, "lost");
    run_files_type(c, &files);
    if (!files.brief && !c->to_its_end)
        gallery_show(c, &files, out, &pictures);
    run_files_link(&files, out);
    words.pictures = pictures.len > 0 ? buf_str(&pictures) : NULL;
    run_words(c, &words, take_result, out);
    report_notices(take_result, out);
}

void run_report_busy(const struct err *e, const struct broker_busy *busy, struct mcp_result *out)
{
    out->structured = json_pack("{s:s}", "status", "busy");
    add_missing_members(out->structured);
    out->is_error = true;
    out->failure = ERR_BUSY;
    if (busy->retry_after_ms == 0) {
        mcp_result_say(out, "%s", e->text);
        return;
    }
    json_object_set_new(out->structured, "retryAfterMs",
                        json_integer((json_int_t)busy->retry_after_ms));
    json_object_set_new(out->structured, "position", json_integer((json_int_t)busy->position));
    if (busy->position == 0)
        mcp_result_say(out, "%s (try again in %.1f s)", e->text,
                       (double)busy->retry_after_ms / 1000.0);
    else
        mcp_result_say(out, "%s (%" PRIu64 " waiting; try again in %.1f s)", e->text,
                       busy->position, (double)busy->retry_after_ms / 1000.0);
}

/* ---- while the call waits ---- */

/* A client that takes tasks need not wait for long, unless it imports output as it comes. */
struct run_options run_options_of(const struct mcp_tool_call *c, const struct run_waiting *how)
{
    const struct tools_app *app = c->app;
    const bool task = how->may_task && c->can_task && !mcp_progress_wanted(c->channel);
    const bool at_once = how->background || (how->wait_ms.given && how->wait_ms.value == 0);
    struct run_options options = {.detach = c->leave_fd >= 0,
                                  .cancel_on_disconnect = c->single_client,
                                  .keep_over = c->in_text ? detail_room(c, how->detail) : 0};

    if (c->to_its_end)
        return options;
    options.background = at_once;
    options.wait_ms = how->wait_ms.given ? how->wait_ms.value
                      : task             ? TASK_AFTER_MS
                                         : app->limits.wait_ms;
    return options;
}

static double seconds_of(const struct run_life *l)
{
    return (double)(clock_mono_ms() - l->began_ms) / 1000.0;
}

/* The limit does not include the queue and the start of the container. */
static void send_sign(const struct run_life *l)
{
    double seconds = seconds_of(l);
    double limit = (double)l->limit_ms / 1000.0;
    AUTO_FREE char *text = NULL;

    if (l->queued)
        text = mem_printf("%s has been queued or running for %.0f s", l->subject, seconds);
    else if (limit > 0)
        text = mem_printf("%s has been running for %.0f of at most %g s", l->subject, seconds,
                          limit);
    else
        text = mem_printf("%s is running; waited for %.0f s", l->subject, seconds);
    mcp_progress(l->call->channel, seconds, !l->queued && seconds <= limit ? limit : 0, text);
}

static void life_tick(void *ctx)
{
    const struct run_life *l = ctx;

    if (mcp_silence_ms(l->call->channel) >= SILENCE_MS)
        send_sign(l);
}

static void send_output(void *ctx, const struct broker_live *piece)
{
    const struct run_life *l = ctx;
    const bool skipped = piece->kind == BROKER_LIVE_SKIPPED;
    const char *stream = piece->kind == BROKER_LIVE_STDERR ? "stderr" : "stdout";
    json_auto_t *text = NULL;
    json_auto_t *meta = json_pack("{s:s*, s:o*, s:I}", META_STREAM, skipped ? NULL : stream,
                                  META_SKIPPED,
                                  skipped ? json_integer((json_int_t)piece->skipped) : NULL,
                                  META_NEXT_BYTE, (json_int_t)piece->next_byte);

    if (skipped) {
        AUTO_FREE char *note = mem_printf("(%" PRIu64 " bytes of output came too fast to be shown "
                                          "here)",
                                          piece->skipped);
        text = json_string(note);
    } else {
        text = json_stringn(piece->text.data, piece->text.len);
    }
    mcp_progress_text(l->call->channel, seconds_of(l), text, meta);
}

static void send_queue_position(void *ctx, uint64_t position)
{
    struct run_life *l = ctx;
    AUTO_FREE char *note = mem_printf("%s waits for a free place: number %" PRIu64 " in the queue",
                                      l->subject, position);
    json_auto_t *text = json_string(note);
    json_auto_t *meta = json_pack("{s:I}", META_POSITION, (json_int_t)position);

    l->queued = true;
    mcp_progress_text(l->call->channel, seconds_of(l), text, meta);
}

void run_life_begin(struct run_life *l, const struct mcp_tool_call *call, const char *subject,
                    uint64_t limit_ms, struct broker_client *client,
                    struct broker_callbacks *callbacks)
{
    bool wanted = mcp_progress_wanted(call->channel);

    *l = (struct run_life){
        .call = call, .subject = subject, .limit_ms = limit_ms, .began_ms = clock_mono_ms()};
    if (!wanted)
        return;
    client->tick = life_tick;
    client->tick_ctx = l;
    client->tick_ms = TICK_MS;
    *callbacks = (struct broker_callbacks){
        .live = send_output, .queued = send_queue_position, .ctx = l, .busy = callbacks->busy};
}

/* ---- tasks ---- */

static enum mcp_task_status task_status(const json_t *result)
{
    static const struct {
        const char *name;
        enum mcp_task_status status;
    } special[] = {{"running", MCP_TASK_WORKING},
                   {"cancelled", MCP_TASK_CANCELLED},
                   {"lost", MCP_TASK_FAILED}};
    const char *name = run_words_status(result);

    for (size_t i = 0; i < ARRAY_LEN(special); i++)
        if (strcmp(name, special[i].name) == 0)
            return special[i].status;
    return MCP_TASK_COMPLETED;
}

static int64_t unix_ms(const json_t *result, const char *name)
{
    return (int64_t)json_get_integer(result, name, 0) * 1000;
}

/* Sets all members but the outcome. */
static void task_fill(const json_t *result, struct mcp_task *t)
{
    int64_t now = clock_unix_s() * 1000;
    int64_t created = unix_ms(result, "createdAt");
    int64_t ended = unix_ms(result, "endedAt");
    int64_t expires = unix_ms(result, "expiresAt");

    json_copy_string(result, "runId", t->id, sizeof t->id);
    t->status = task_status(result);
    t->created_ms = created > 0 ? created : now;
    t->updated_ms = ended > 0 ? ended : now;
    t->ttl_ms = expires > t->created_ms ? expires - t->created_ms : 0;
    t->poll_ms = POLL_MS;
}

json_t *run_tasks_new(const json_t *result)
{
    struct mcp_task task;

    if (!json_get_string(result, "runId"))
        return NULL;
    task = (struct mcp_task){.status = MCP_TASK_WORKING};
    task_fill(result, &task);
    return mcp_task_created(&task);
}

static int task_fail(struct err *e)
{
    report_soften(e);
    return -1;
}

static json_t *task_poll(const struct mcp_tool_call *c, const char *id, bool brief, struct err *e)
{
    const struct broker_poll_options options = {.wait_ms = 0};
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);

    client.limit_ms = brief ? BRIEF_MS : 0;
    return broker_get_run(&client, id, &options, e);
}

static int task_get(const struct mcp_tool_call *c, const char *id, bool brief, struct mcp_task *out,
                    struct err *e)
{
    json_t *result = task_poll(c, id, brief, e);

    if (!result)
        return task_fail(e);
    task_fill(result, out);
    if (out->status == MCP_TASK_COMPLETED) {
        run_report_tell(c, &(struct run_telling){.brief = brief}, result, &out->result);
        /* The task's creation did not name a conversation that was made for the call. */
        if (json_get_string(out->result.structured, "conversationId"))
            args_tell_conversation(json_get_string(out->result.structured, "conversationId"),
                                   &out->result);
        return 0;
    }
    if (out->status == MCP_TASK_FAILED) {
        out->code = RPC_INTERNAL_ERROR;
        out->message = mem_printf("the run was lost: %s", lost_reason(result));
    }
    json_decref(result);
    return 0;
}

/* A run asks nothing, so there are no responses to take. */
static int task_update(const struct mcp_tool_call *c, const char *id, const json_t *responses,
                       struct err *e)
{
    json_auto_t *result = task_poll(c, id, false, e);

    (void)responses;
    return result ? 0 : task_fail(e);
}

static int task_cancel(const struct mcp_tool_call *c, const char *id, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    json_auto_t *result = broker_cancel_run(&client, id, e);

    return result ? 0 : task_fail(e);
}

const struct mcp_tasks tools_tasks = {
    .get = task_get, .update = task_update, .cancel = task_cancel};
