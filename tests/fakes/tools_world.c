#include "config.h"

#include "tests/fakes/tools_world.h"

#include "common/mcp/features/tool.h"
#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "tests/fakes/fake_broker.h"

#include <assert.h>
#include <string.h>

static const char runners[] =
    "[{\"language\":\"bash\",\"image\":\"sandcgi-runner-bash:latest\",\"version\":\"5.2\","
    "\"libraries\":[],\"protocol\":1},"
    "{\"language\":\"python\",\"image\":\"sandcgi-runner-python:latest\",\"version\":\"3.11.2\","
    "\"libraries\":[{\"name\":\"numpy\",\"version\":\"1.24.2\"},"
    "{\"name\":\"pandas\",\"version\":\"1.5.3\"}],\"protocol\":1}]";

void tools_world_init(struct tools_world *w)
{
    fake_broker_reset();
    fake_broker_set_runners(runners);
    *w = (struct tools_world){
        .app = {.broker_path = "/nowhere",
                .limits = {.code_max = 1024,
                           .stdin_max = 512,
                           .file_max = 1000,
                           .env_max = 256,
                           .timeout_max_ms = 300000,
                           .timeout_ms = 30000,
                           .wait_ms = 50000,
                           .wait_max_ms = 300000,
                           .image_max = 4096,
                           .images_max = 3,
                           .network = NETWORK_PUBLIC}},
    };
    tools_app_init(&w->app);
    w->server = (struct mcp_server){.sessions_fd = -1,
                                    .name = "t",
                                    .version = "1",
                                    .app = &w->app,
                                    .arguments = &args_tables,
                                    .tools_cache = mcp_tools_cache_new()};
    w->server.tools = tools_all(&w->server.n_tools);
    w->server.prompts = tools_prompts(&w->server.n_prompts);
    w->server.resources = &tools_resources;
}

void tools_world_offer(struct tools_world *w, const char *name)
{
    const struct toolset *set = toolset_theirs(toolset_find(name));

    w->server.offer = set->name;
    w->server.error_style = set->error_style;
    w->server.tools = set->tools;
    w->server.n_tools = set->n_tools;
    w->server.resources = set->resources;
    w->server.n_prompts = 0;
}

void tools_world_clear(struct tools_world *w)
{
    mcp_tools_cache_free(w->server.tools_cache);
    tools_app_clear(&w->app);
    fake_broker_reset();
}

static json_t *ask_world(struct tools_world *w, json_t *take_message)
{
    struct mcp_origin origin = {.http = true,
                                .tenant = "me",
                                .reuse = w->reuse,
                                .network = w->network,
                                .cancel_fd = -1,
                                .protocol_version = "2025-11-25"};
    struct mcp_answer answer;
    json_t *value;

    mcp_handle(&w->server, &origin, take_message, &answer);
    json_decref(take_message);
    value = json_object_get(answer.body, "result");
    if (!value)
        value = json_object_get(answer.body, "error");
    json_incref(value); /* outlives the envelope */
    json_decref(answer.body);
    return value;
}

json_t *tools_world_call(struct tools_world *w, const char *tool, const char *arguments)
{
    json_t *parsed = json_loads(arguments, JSON_ALLOW_NUL, NULL);

    assert(parsed);
    return ask_world(w,
                     json_pack("{s:s, s:i, s:s, s:{s:s, s:o}}", "jsonrpc", "2.0", "id", 1, "method",
                               "tools/call", "params", "name", tool, "arguments", parsed));
}

const char *tools_world_text(const json_t *result, size_t n)
{
    return json_get_string(json_array_get(json_object_get(result, "content"), n), "text");
}

json_t *tools_world_row(struct tools_world *w, const char *tool)
{
    json_auto_t *result = ask_world(
        w, json_pack("{s:s, s:i, s:s}", "jsonrpc", "2.0", "id", 1, "method", "tools/list"));
    size_t i;
    json_t *row;

    json_array_foreach(json_object_get(result, "tools"), i, row)
    {
        if (strcmp(json_get_string(row, "name"), tool) == 0)
            return json_incref(row);
    }
    return NULL;
}
