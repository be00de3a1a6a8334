/*
 * The telnet tools of the set "interpreter". Theirs connect from the server's own host, wherever a
 * caller says: a way into the operator's network. Here they say so and do nothing.
 */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/profiles/interpreter.h"

#define REFUSAL "this server makes no connections from its own host"

static void connect_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    out->structured = json_pack("{s:n, s:b, s:O?, s:O?, s:s, s:s}", "session_id", "connected", 0,
                                "host", json_object_get(c->arguments, "host"), "port",
                                json_object_get(c->arguments, "port"), "initial_response", "",
                                "error", REFUSAL);
}

static void command_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    (void)c;
    out->structured = json_pack("{s:b, s:s, s:s}", "success", 0, "response", "", "error", REFUSAL);
}

static void disconnect_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    (void)c;
    out->structured = json_pack("{s:b, s:s}", "success", 0, "message", REFUSAL);
}

static void list_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    (void)c;
    out->structured = json_pack("{s:i, s:[]}", "count", 0, "connections");
}

const struct mcp_tool interpreter_telnet_tools[INTERPRETER_TELNET_TOOLS] = {
    {.name = "connect",
     .description = "Not available: " REFUSAL ".",
     .input_schema = "{\"type\":\"object\",\"required\":[\"host\",\"port\"],\"properties\":{"
                     "\"host\":{\"type\":\"string\"},\"port\":{\"type\":\"integer\"},"
                     "\"timeout\":{\"type\":\"integer\",\"default\":30}}}",
     .call = connect_tool},
    {.name = "send_command",
     .description = "Not available: " REFUSAL ".",
     .input_schema = "{\"type\":\"object\",\"required\":[\"session_id\",\"command\"],"
                     "\"properties\":{\"session_id\":{\"type\":\"string\"},"
                     "\"command\":{\"type\":\"string\"},"
                     "\"timeout\":{\"type\":\"integer\",\"default\":10}}}",
     .call = command_tool},
    {.name = "disconnect",
     .description = "Not available: " REFUSAL ".",
     .input_schema = "{\"type\":\"object\",\"required\":[\"session_id\"],"
                     "\"properties\":{\"session_id\":{\"type\":\"string\"}}}",
     .call = disconnect_tool},
    {.name = "list_connections",
     .hints = {.read_only = true},
     .description = "Lists telnet connections: there are none, since " REFUSAL ".",
     .input_schema = "{\"type\":\"object\"}",
     .call = list_tool},
};
