#include "config.h"

#include "tests/fakes/mcp_offer.h"
#include "tests/fakes/mcp_world.h"

#include "common/base/mem.h"
#include "common/mcp/events/event.h"
#include "common/mcp/events/listen.h"
#include "common/mcp/session/session.h"
#include "common/mcp/session/stream.h"
#include "common/rpc/json.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

    if (w->origin.stdio_client) {
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

    *w = (struct mcp_world){.hung_up_ms = -1, .stdio_client = MCP_STDIO_CLIENT_INIT};
    snprintf(w->folder, sizeof w->folder, "%s/mcp.XXXXXX", getenv("TMPDIR") ?: "/tmp");
    assert(mkdtemp(w->folder));
    w->events = json_array();
    w->sent = json_array();
    w->replies = json_object();
    w->inbox = json_array();
    w->server = (struct mcp_server){.name = "t",
                                    .version = "1",
                                    .tools = mcp_offer_tools,
                                    .n_tools = mcp_offer_n_tools,
                                    .prompts = mcp_offer_prompts,
                                    .n_prompts = mcp_offer_n_prompts,
                                    .resources = &mcp_offer_resources,
                                    .named_argument = "topic",
                                    .tasks = &mcp_offer_tasks,
                                    .sessions_fd = open(w->folder, O_RDONLY | O_DIRECTORY),
                                    .session_ttl_s = 3600,
                                    .sessions_max = 20000,
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
    mcp_stdio_client_clear(&w->stdio_client);
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
    w->stdio_client.next_message = next_message;
    w->stdio_client.ctx = w;
    w->origin.http = false;
    w->origin.stdio_client = &w->stdio_client;
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
