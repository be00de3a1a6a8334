#include "config.h"

#include "tests/fakes/mcp_world.h"

#include "common/base/mem.h"
#include "common/mcp/content.h"
#include "common/mcp/event.h"
#include "common/mcp/listen.h"
#include "common/mcp/prompt.h"
#include "common/mcp/resource.h"
#include "common/mcp/session.h"
#include "common/mcp/stream.h"
#include "common/mcp/task.h"
#include "common/mcp/tool.h"
#include "common/rpc/json.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT(s) content_text_new(s, strlen(s))

/* ---- tools ---- */

static char *describe(void *app)
{
    (void)app;
    return mem_strdup("for tests");
}

static json_t *any_object(void *app)
{
    (void)app;
    return json_pack("{s:s}", "type", "object");
}

static json_t *region_schema(void *app)
{
    (void)app;
    return json_loads("{\"type\":\"object\",\"properties\":{"
                      "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
                      "\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"},"
                      "\"yes\":{\"type\":\"boolean\",\"x-mcp-header\":\"Yes\"},"
                      "\"deep\":{\"type\":\"object\",\"properties\":{"
                      "\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}}}",
                      0, NULL);
}

static json_t *form(const char *message)
{
    return json_pack("{s:s, s:s, s:{s:s, s:{s:{s:s}}}}", "mode", "form", "message", message,
                     "requestedSchema", "type", "object", "properties", "name", "type", "string");
}

static const char *content_of(const json_t *response)
{
    const char *action = json_get_string(response, "action");

    return action && strcmp(action, "accept") == 0
               ? json_get_string(json_object_get(response, "content"), "name")
               : NULL;
}

/* Greets; asks for the name first. */
static void ask_name(const struct mcp_tool_call *c, struct mcp_result *out)
{
    const json_t *response = mcp_ask_response(c->ask, "user_name");
    const char *name = content_of(response);
    char text[128];

    if (response && !name) {
        mcp_result_fail(out, "declined");
        return;
    }
    if (!name) {
        mcp_need_add(&out->need, "user_name", "elicitation/create", form("Your name?"));
        return;
    }
    snprintf(text, sizeof text, "Hello, %s!", name);
    mcp_result_add(out, TEXT(text));
}

/* Two rounds; counts them in the state. */
static void ask_twice(const struct mcp_tool_call *c, struct mcp_result *out)
{
    json_int_t round = json_integer_value(c->ask->state);

    if (round < 2) {
        out->need.state = json_integer(round + 1);
        mcp_need_add(&out->need, round ? "second" : "first", "elicitation/create", form("?"));
        return;
    }
    mcp_result_add(out, TEXT(mcp_ask_response(c->ask, "second") ? "done" : "lost"));
}

static void ask_forever(const struct mcp_tool_call *c, struct mcp_result *out)
{
    (void)c;
    mcp_need_add(&out->need, "again", "elicitation/create", form("?"));
}

static void ask_url(const struct mcp_tool_call *c, struct mcp_result *out)
{
    if (mcp_ask_response(c->ask, "u"))
        mcp_result_add(out, TEXT("seen"));
    else
        mcp_need_add(&out->need, "u", "elicitation/create",
                     json_pack("{s:s, s:s, s:s}", "mode", "url", "message", "look", "url",
                               "https://x.test/"));
}

static void tell(const struct mcp_tool_call *c, struct mcp_result *out)
{
    mcp_progress(c, 0, 100, "begin");
    usleep(15000);
    mcp_progress(c, 50, 100, NULL);
    mcp_progress(c, 50, 100, "again");
    mcp_progress(c, 100, 100, NULL);
    mcp_log(c, MCP_LOG_DEBUG, "tests", "fine print");
    mcp_log(c, MCP_LOG_WARNING, NULL, "watch %s", "out");
    mcp_result_add(out, TEXT(mcp_progress_wanted(c) ? "wanted" : "not wanted"));
    mcp_result_add(out, TEXT(c->trace ? c->trace : "no trace"));
}

static void hang_up(const struct mcp_tool_call *c, struct mcp_result *out)
{
    mcp_result_add(out, TEXT(mcp_hang_up(c, 500) ? "hung up" : "stayed"));
}

/* Tells whether it was cancelled while it ran; the client does that in mcp_progress. */
static void wait_for_cancel(const struct mcp_tool_call *c, struct mcp_result *out)
{
    struct pollfd p = {.fd = c->cancel_fd, .events = POLLRDHUP};

    mcp_progress(c, 1, 0, "now");
    poll(&p, 1, 0);
    mcp_result_add(out, TEXT(p.revents & (POLLHUP | POLLRDHUP) ? "cancelled" : "went on"));
}

static void change_all(const struct mcp_tool_call *c, struct mcp_result *out)
{
    mcp_publish(c->server, &(struct mcp_event){.kind = MCP_EVENT_TOOLS});
    mcp_publish(c->server, &(struct mcp_event){
                               .kind = MCP_EVENT_RESOURCE, .tenant = c->tenant, .uri = "test://a"});
    mcp_result_add(out, TEXT("changed"));
}

static void sound(const struct mcp_tool_call *c, struct mcp_result *out)
{
    (void)c;
    mcp_result_add(out, json_pack("{s:s, s:s, s:s}", "type", "audio", "data", "AA==", "mimeType",
                                  "audio/wav"));
}

/* Its work goes on as the task "t1" where that is possible. */
static void go_on(const struct mcp_tool_call *c, struct mcp_result *out)
{
    if (!c->can_task) {
        mcp_result_add(out, TEXT("done at once"));
        return;
    }
    out->task = mcp_task_new("t1");
    out->task->created_ms = out->task->updated_ms = 1785240000250;
    out->task->ttl_ms = 60000;
    out->task->poll_ms = 1000;
}

static const char *const needs_sampling[] = {"sampling/createMessage", NULL};

#define TOOL(c_name, function, ...)                                                                \
    static const struct mcp_tool c_name = {.name = #c_name,                                        \
                                           .describe = describe,                                   \
                                           .input_schema = any_object,                             \
                                           .call = function,                                       \
                                           ##__VA_ARGS__}

TOOL(name, ask_name);
TOOL(twice, ask_twice);
TOOL(forever, ask_forever);
TOOL(url, ask_url);
TOOL(tells, tell);
TOOL(hangs_up, hang_up);
TOOL(waits, wait_for_cancel);
TOOL(changes, change_all);
TOOL(sounds, sound);
TOOL(samples, change_all, .requires = needs_sampling);
TOOL(goes_on, go_on);
TOOL(must_go_on, go_on, .task_required = true);
static const struct mcp_tool region = {.name = "region",
                                       .mirrors_arguments = true,
                                       .describe = describe,
                                       .input_schema = region_schema,
                                       .call = change_all};

static const struct mcp_tool *const tools[] = {&name,     &twice,   &forever,   &url,    &tells,
                                               &hangs_up, &waits,   &changes,   &sounds, &samples,
                                               &region,   &goes_on, &must_go_on};

/* ---- prompts ---- */

static json_t *say(const char *text)
{
    return json_pack("[{s:s, s:o}]", "role", "user", "content", TEXT(text));
}

static json_t *get_plain(const struct mcp_prompt_call *c, struct mcp_need *need, struct err *e)
{
    const char *topic = json_get_string(c->arguments, "topic");

    (void)need;
    if (strcmp(topic, "bad") == 0) {
        err_set(e, ERR_INVALID, "no such topic");
        return NULL;
    }
    return say(topic);
}

static json_t *get_asking(const struct mcp_prompt_call *c, struct mcp_need *need, struct err *e)
{
    const char *context = content_of(mcp_ask_response(c->ask, "user_context"));

    (void)e;
    if (context)
        return say(context);
    mcp_need_add(need, "user_context", "elicitation/create", form("What about?"));
    return NULL;
}

static json_t *complete_topic(void *app, const char *tenant, const char *argument,
                              const char *value, const json_t *context)
{
    json_t *values = json_array();

    (void)app;
    (void)tenant;
    (void)context;
    if (strcmp(argument, "topic") != 0) {
        json_decref(values);
        return NULL;
    }
    for (int i = 0; i < 120; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s%d", value, i);
        json_array_append_new(values, json_string(text));
    }
    return values;
}

static const struct mcp_prompt_argument topic[] = {
    {.name = "topic", .title = "Topic", .help = "what it is about", .required = true}, {0}};
static const struct mcp_prompt prompt_plain = {.name = "plain",
                                               .title = "Plain",
                                               .help = "says it",
                                               .arguments = topic,
                                               .get = get_plain,
                                               .complete = complete_topic};
static const struct mcp_prompt prompt_asking = {.name = "asking", .get = get_asking};
static const struct mcp_prompt *const prompts[] = {&prompt_plain, &prompt_asking};

/* ---- resources ---- */

static json_t *list(void *app, const char *tenant, const char *cursor, char **out_next,
                    struct err *e)
{
    (void)app;
    (void)tenant;
    if (cursor && *cursor && strcmp(cursor, "2") != 0) {
        err_set(e, ERR_INVALID, "unknown cursor");
        return NULL;
    }
    if (!cursor || !*cursor)
        *out_next = mem_strdup("2");
    return json_pack("[{s:s, s:s}]", "uri", *out_next ? "test://a" : "test://b", "name", "a");
}

static json_t *templates(void *app)
{
    (void)app;
    return json_pack("[{s:s, s:s}]", "uriTemplate", "test://{x}", "name", "x");
}

static json_t *read_resource(void *app, const char *tenant, const char *uri, struct err *e)
{
    (void)app;
    (void)tenant;
    if (strcmp(uri, "test://a") == 0)
        return json_pack("[{s:s, s:s, s:s}]", "uri", uri, "mimeType", "text/plain", "text", "A");
    if (strcmp(uri, "test://big") == 0)
        err_set(e, ERR_LIMIT, "too large to be read whole");
    else
        err_set(e, ERR_NOT_FOUND, "not there");
    return NULL;
}

static bool can_subscribe(void *app, const char *tenant, const char *uri)
{
    (void)app;
    (void)tenant;
    return strncmp(uri, "test://", 7) == 0;
}

static const struct mcp_resources resources = {
    .list = list, .templates = templates, .read = read_resource, .can_subscribe = can_subscribe};

/* ---- tasks: t1 works, t2 asks, t3 is done, t4 failed, t5 was cancelled; they belong to "me" ----
 */

static int find_task(const struct mcp_tool_call *c, const char *id, struct err *e)
{
    if (strcmp(c->tenant, "me") != 0 || id[0] != 't' || id[1] < '1' || id[1] > '5' || id[2])
        return err_set(e, ERR_NOT_FOUND, "not this one");
    return id[1] - '1';
}

static int get_task(const struct mcp_tool_call *c, const char *id, bool brief, struct mcp_task *out,
                    struct err *e)
{
    int n = find_task(c, id, e);

    if (n < 0)
        return -1;
    snprintf(out->id, sizeof out->id, "%s", id);
    out->status = (enum mcp_task_status)n;
    out->updated_ms = 1;
    if (out->status == MCP_TASK_INPUT)
        out->requests = json_pack("{s:{s:s, s:{}}}", "k", "method", "roots/list", "params");
    if (out->status == MCP_TASK_COMPLETED)
        mcp_result_add(&out->result, TEXT(brief ? "brief" : "whole"));
    if (out->status == MCP_TASK_FAILED) {
        out->code = -32603;
        out->message = mem_strdup("broken");
    }
    return 0;
}

static int update_task(const struct mcp_tool_call *c, const char *id, const json_t *responses,
                       struct err *e)
{
    (void)responses;
    return find_task(c, id, e) < 0 ? -1 : 0;
}

static int cancel_task(const struct mcp_tool_call *c, const char *id, struct err *e)
{
    if (find_task(c, id, e) == MCP_TASK_FAILED)
        return err_set(e, ERR_UNAVAILABLE, "later");
    return find_task(c, id, e) < 0 ? -1 : 0;
}

static const struct mcp_tasks tasks = {
    .get = get_task, .update = update_task, .cancel = cancel_task};

/* ---- the client ---- */

static void publish(void *ctx, const struct mcp_event *event)
{
    struct mcp_world *w = ctx;

    json_array_append_new(w->events, mcp_event_encode(event));
}

/* Another worker gets the response; on stdio it is the next thing to be read. */
static void reply(struct mcp_world *w, const json_t *id, const json_t *result)
{
    json_auto_t *response = json_pack("{s:s, s:O, s:O}", "jsonrpc", "2.0", "id", id, "result",
                                      result);
    struct mcp_origin origin = {
        .http = true, .tenant = "me", .session = w->session, .cancel_fd = -1};
    struct mcp_answer answer;

    if (w->origin.pin) {
        json_array_append(w->inbox, response);
        return;
    }
    mcp_handle(&w->server, &origin, response, &answer);
    assert(answer.status == 202);
}

static void cancel(struct mcp_world *w)
{
    json_auto_t *message = json_pack("{s:s, s:s, s:{s:i}}", "jsonrpc", "2.0", "method",
                                     "notifications/cancelled", "params", "requestId", 1);
    struct mcp_origin origin = {
        .http = true, .tenant = "me", .session = w->session, .cancel_fd = -1};
    struct mcp_answer answer;

    mcp_handle(&w->server, &origin, message, &answer);
    assert(answer.status == 202);
}

static int send_message(void *ctx, const json_t *message)
{
    struct mcp_world *w = ctx;
    const json_t *id = json_object_get(message, "id");
    const json_t *result = json_object_get(w->replies, json_get_string(message, "method"));

    json_array_append_new(w->sent, json_deep_copy(message));
    if (w->out.store) {
        char event_id[MCP_EVENT_ID_MAX];
        struct err e = ERR_INIT;
        assert(mcp_stream_add(w->out.store, message, event_id, &e) == 0);
    }
    if (w->cancels)
        cancel(w);
    else if (id && result)
        reply(w, id, result);
    return 0;
}

static json_t *next_message(void *ctx, int timeout_ms)
{
    struct mcp_world *w = ctx;
    json_t *message = json_incref(json_array_get(w->inbox, 0)); /* leaves the array */

    (void)timeout_ms;
    json_array_remove(w->inbox, 0);
    return message;
}

static void on_hang_up(void *ctx, int retry_ms)
{
    struct mcp_world *w = ctx;

    w->hung_up_ms = retry_ms;
}

/* ---- the world ---- */

void mcp_world_init(struct mcp_world *w)
{
    static const char key[] = "0123456789abcdef0123456789abcdef";

    *w = (struct mcp_world){.hung_up_ms = -1, .pin = MCP_PIN_INIT};
    snprintf(w->folder, sizeof w->folder, "%s/mcp.XXXXXX", getenv("TMPDIR") ?: "/tmp");
    assert(mkdtemp(w->folder));
    w->events = json_array();
    w->sent = json_array();
    w->replies = json_object();
    w->inbox = json_array();
    w->server = (struct mcp_server){.name = "t",
                                    .version = "1",
                                    .tools = tools,
                                    .n_tools = ARRAY_LEN(tools),
                                    .prompts = prompts,
                                    .n_prompts = ARRAY_LEN(prompts),
                                    .resources = &resources,
                                    .tasks = &tasks,
                                    .sessions_fd = open(w->folder, O_RDONLY | O_DIRECTORY),
                                    .session_ttl_s = 3600,
                                    .seal_key = key,
                                    .seal_key_len = sizeof key - 1,
                                    .publish = publish,
                                    .publish_ctx = w};
    w->out = (struct mcp_out){.send = send_message, .hang_up = on_hang_up, .ctx = w};
    w->origin = (struct mcp_origin){.http = true,
                                    .tenant = "me",
                                    .cancel_fd = -1,
                                    .accept = "application/json, text/event-stream",
                                    .out = &w->out};
}

static void empty(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while ((entry = readdir(dir)))
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(folder);
}

void mcp_world_clear(struct mcp_world *w)
{
    mcp_stream_end(w->out.store);
    close(w->server.sessions_fd);
    empty(w->folder);
    mcp_pin_clear(&w->pin);
    json_decref(w->events);
    json_decref(w->sent);
    json_decref(w->replies);
    json_decref(w->inbox);
}

static void initialize(struct mcp_world *w, const char *revision, const char *capabilities)
{
    char text[1024];

    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
             "\"protocolVersion\":\"%s\",\"capabilities\":%s,"
             "\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}",
             revision, capabilities);
    struct asked a = mcp_world_ask(w, text);
    assert(a.answer.status == 200);
    memcpy(w->session, a.answer.session, sizeof w->session);
    asked_clear(&a);
}

void mcp_world_start(struct mcp_world *w, const char *revision, const char *capabilities)
{
    initialize(w, revision, capabilities);
    w->origin.session = w->session;
}

void mcp_world_start_stdio(struct mcp_world *w, const char *revision, const char *capabilities)
{
    w->pin.next_message = next_message;
    w->pin.ctx = w;
    w->origin.http = false;
    w->origin.pin = &w->pin;
    initialize(w, revision, capabilities);
}

struct asked mcp_world_ask(struct mcp_world *w, const char *message)
{
    return ask(&w->server, &w->origin, message);
}

struct asked mcp_world_modern(struct mcp_world *w, const char *method, const char *header_name,
                              const char *params, const char *capabilities, const char *meta)
{
    AUTO_FREE char *text = mem_printf(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s\"_meta\":{"
        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":%s%s}}}",
        method, params, capabilities, meta);

    w->origin.protocol_version = "2026-07-28";
    w->origin.method = method;
    w->origin.name = header_name;
    return mcp_world_ask(w, text);
}

char *mcp_world_sent(const struct mcp_world *w, size_t i)
{
    return json_dumps(json_array_get(w->sent, i), JSON_COMPACT);
}
