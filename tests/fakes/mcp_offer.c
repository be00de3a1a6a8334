#include "config.h"

#include "tests/fakes/mcp_offer.h"

#include "common/base/mem.h"
#include "common/mcp/events/event.h"
#include "common/mcp/features/content.h"
#include "common/rpc/json.h"
#include "tests/fakes/mcp_extra.h"

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

static const char any_object[] = "{\"type\":\"object\"}";

static const char region_schema[] = "{\"type\":\"object\",\"properties\":{"
                                    "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
                                    "\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"},"
                                    "\"yes\":{\"type\":\"boolean\",\"x-mcp-header\":\"Yes\"},"
                                    "\"deep\":{\"type\":\"object\",\"properties\":{"
                                    "\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}}}";

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
    const json_t *response = mcp_elicitation_response(c->elicitation, "user_name");
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
    json_int_t round = json_integer_value(c->elicitation->state);

    if (round < 2) {
        out->need.state = json_integer(round + 1);
        mcp_need_add(&out->need, round ? "second" : "first", "elicitation/create", form("?"));
        return;
    }
    mcp_result_add(out, TEXT(mcp_elicitation_response(c->elicitation, "second") ? "done" : "lost"));
}

static void ask_forever(const struct mcp_tool_call *c, struct mcp_result *out)
{
    (void)c;
    mcp_need_add(&out->need, "again", "elicitation/create", form("?"));
}

static void ask_url(const struct mcp_tool_call *c, struct mcp_result *out)
{
    if (mcp_elicitation_response(c->elicitation, "u"))
        mcp_result_add(out, TEXT("seen"));
    else
        mcp_need_add(&out->need, "u", "elicitation/create",
                     json_pack("{s:s, s:s, s:s}", "mode", "url", "message", "look", "url",
                               "https://x.test/"));
}

static void tell(const struct mcp_tool_call *c, struct mcp_result *out)
{
    mcp_progress(c->channel, 0, 100, "begin");
    usleep(15000);
    mcp_progress(c->channel, 50, 100, NULL);
    mcp_progress(c->channel, 50, 100, "again");
    mcp_progress(c->channel, 100, 100, NULL);
    mcp_log(c->channel, "debug", "tests", "fine print");
    mcp_log(c->channel, "warning", NULL, "watch %s", "out");
    mcp_result_add(out, TEXT(mcp_progress_wanted(c->channel) ? "wanted" : "not wanted"));
    mcp_result_add(out, TEXT("told"));
}

static void hang_up(const struct mcp_tool_call *c, struct mcp_result *out)
{
    mcp_result_add(out, TEXT(mcp_hang_up(c->channel, 500) ? "hung up" : "stayed"));
}

/* Tells whether it was cancelled while it ran; the client does that in mcp_progress. */
static void wait_for_cancel(const struct mcp_tool_call *c, struct mcp_result *out)
{
    struct pollfd p = {.fd = c->cancel_fd, .events = POLLRDHUP};

    mcp_progress(c->channel, 1, 0, "now");
    poll(&p, 1, 0);
    mcp_result_add(out, TEXT(p.revents & (POLLHUP | POLLRDHUP) ? "cancelled" : "went on"));
}

static const char *end_of(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};

    poll(&p, 1, 0);
    return fd < 0 ? "none" : p.revents ? "gone" : "there";
}

/* Tells what it sees of its client's ends. */
static void watch(const struct mcp_tool_call *c, struct mcp_result *out)
{
    char text[64];

    snprintf(text, sizeof text, "cancel: %s, leave: %s", end_of(c->cancel_fd), end_of(c->leave_fd));
    mcp_result_add(out, TEXT(text));
}

static void produce(const struct mcp_tool_call *c, struct mcp_result *out)
{
    json_auto_t *piece = json_string("a piece\n");

    mcp_progress_text(c->channel, 5, piece, NULL);
    mcp_progress_text(c->channel, 5, piece, NULL);
    mcp_progress_text(c->channel, 6, piece, NULL);
    mcp_result_add(out, TEXT(mcp_silence_ms(c->channel) < 10000 ? "just said" : "silent"));
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
    out->task = mcp_task_created(&(struct mcp_task){.id = "t1",
                                                    .created_ms = 1785240000250,
                                                    .updated_ms = 1785240000250,
                                                    .ttl_ms = 60000,
                                                    .poll_ms = 1000});
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
TOOL(waits, wait_for_cancel, .frees = true);
TOOL(watches, watch);
TOOL(produces, produce);
TOOL(changes, change_all);
TOOL(sounds, sound);
TOOL(samples, change_all, .requires = needs_sampling);
TOOL(goes_on, go_on);
TOOL(must_go_on, go_on, .task_required = true);
static uint64_t version(void *app)
{
    (void)app;
    return 1;
}

static const struct mcp_tool region = {.name = "region",
                                       .version = version,
                                       .mirrors_arguments = true,
                                       .describe = describe,
                                       .input_schema = region_schema,
                                       .call = change_all};

const struct mcp_tool *const mcp_offer_tools[] = {
    &name,   &twice,   &forever, &url,     &tells,      &hangs_up, &waits,   &changes,
    &sounds, &samples, &region,  &goes_on, &must_go_on, &watches,  &produces};
const size_t mcp_offer_n_tools = ARRAY_LEN(mcp_offer_tools);

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
    const char *context = content_of(mcp_elicitation_response(c->elicitation, "user_context"));

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
const struct mcp_prompt *const mcp_offer_prompts[] = {&prompt_plain, &prompt_asking};
const size_t mcp_offer_n_prompts = ARRAY_LEN(mcp_offer_prompts);

/* ---- resources ---- */

static json_t *list(void *app, const char *tenant, const json_t *named, const char *cursor,
                    char **out_next, struct err *e)
{
    (void)app;
    (void)tenant;
    (void)named;
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
    else if (strcmp(uri, "test://closed") == 0)
        err_set(e, ERR_DENIED, "not for this tenant");
    else if (strcmp(uri, "test://broken") == 0)
        err_set(e, ERR_IO, "it cannot be read");
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

const struct mcp_resources mcp_offer_resources = {
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

const struct mcp_tasks mcp_offer_tasks = {
    .get = get_task, .update = update_task, .cancel = cancel_task};
