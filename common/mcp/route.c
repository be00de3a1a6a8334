#include "config.h"

#include "common/mcp/route.h"

#include "common/base/b64.h"
#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/node.h"
#include "common/mcp/features/offer.h"
#include "common/mcp/features/tool.h"
#include "common/mcp/session/sent_on.h"
#include "common/rpc/json.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CONVERSATION  "conversationId"
#define ALL_OF_TENANT "*" /* key of what only a tenant has */
#define STYLE         "_- "

/* Arguments of tools that name what is on one node. Ids come first: they name the node itself. */
static const struct {
    const char *argument, *header;
    bool is_id;
} names[] = {
    {"runId", "Run", true}, {"sandboxId", "Sandbox", true}, {CONVERSATION, "Conversation", false}};

const char *mcp_route_header(const char *argument)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i].argument, argument) == 0)
            return names[i].header;
    return NULL;
}

/* ---- names of conversations ---- */

void mcp_conversation_make(char out[MCP_MADE_MAX])
{
    snprintf(out, MCP_MADE_MAX, "c%0*" PRIu64, MCP_MADE_DIGITS,
             (uint64_t)crypto_random_u32() << 32 | crypto_random_u32());
}

static bool is_made(const char *name)
{
    return name[0] == 'c' && strspn(name + 1, "0123456789") == MCP_MADE_DIGITS &&
           !name[1 + MCP_MADE_DIGITS];
}

/* As a client sends it in Mcp-Param-Conversation: base64 if it is not printable ASCII, or would be
 * trimmed or decoded. "" when it is too long. */
static void key_of(const char *name, char out[MCP_KEY_MAX])
{
    AUTO_BUF struct buf base64 = BUF_INIT(MCP_KEY_MAX);
    size_t len = strlen(name), plain = 0;

    *out = '\0';
    if (len == 0 || len > MCP_CONVERSATION_MAX)
        return;
    while (plain < len && name[plain] >= ' ' && name[plain] <= '~')
        plain++;
    if (plain == len && name[0] != ' ' && name[len - 1] != ' ' && strncmp(name, "=?", 2) != 0) {
        snprintf(out, MCP_KEY_MAX, "%s", name);
        return;
    }
    b64_encode(name, len, &base64);
    snprintf(out, MCP_KEY_MAX, "=?base64?%s?=", buf_str(&base64));
}

/* ---- what a call belongs to ---- */

static void to_conversation(const char *name, struct mcp_route *route, struct mcp_elsewhere *out)
{
    key_of(name, out->name);
    out->by = *out->name ? MCP_BY_KEY : MCP_STAYS;
    if (*out->name)
        snprintf(route->conversation, sizeof route->conversation, "%s", name);
}

/* Only of an id that names another node. */
static void to_node_of(const char *id, struct mcp_elsewhere *out)
{
    char node[NODE_NAME_MAX + 1];

    if (!id || !node_other(id, node))
        return;
    out->by = MCP_BY_NODE;
    snprintf(out->name, sizeof out->name, "%s", node);
}

bool mcp_argument_is(const char *name, const char *argument)
{
    for (;; name++, argument++) {
        name += strspn(name, STYLE);
        argument += strspn(argument, STYLE);
        if (tolower((unsigned char)*name) != tolower((unsigned char)*argument))
            return false;
        if (!*name)
            return true;
    }
}

/* What tools take for name: its own spelling first. */
static const json_t *value_of(const json_t *arguments, const char *name)
{
    const json_t *own = json_object_get(arguments, name);
    const char *other;
    json_t *value;

    if (own && !json_is_null(own))
        return own;
    json_object_foreach((json_t *)arguments, other, value)
    {
        if (!json_is_null(value) && mcp_argument_is(other, name))
            return value;
    }
    return NULL;
}

/* An empty or blank one is as if left out. */
static const char *text_of(const json_t *arguments, const char *name)
{
    const json_t *value = value_of(arguments, name);
    const char *text = json_string_value(value);

    return text && text[strspn(text, " \t\r\n")] && strlen(text) == json_string_length(value)
               ? text
               : NULL;
}

/* The name that the edge has as this tenant's key; NULL: it has none. */
static const char *edge_key(const struct mcp_origin *origin)
{
    size_t len = origin->tenant ? strlen(origin->tenant) : 0;
    const char *route = origin->edge->route;

    return route && len > 0 && strncmp(route, origin->tenant, len) == 0 && route[len] == ':'
               ? route + len + 1
               : NULL;
}

/* Arguments of tools: ids say where they are, and else the conversation does. */
static void to_named(const struct mcp_call *call, const json_t *arguments, bool begins,
                     struct mcp_route *route, struct mcp_elsewhere *out)
{
    const char *conversation = text_of(arguments, CONVERSATION);
    const char *key = edge_key(call->origin);
    bool named = false;

    for (size_t i = 0; i < ARRAY_LEN(names) && !named; i++) {
        const char *id = names[i].is_id ? text_of(arguments, names[i].argument) : NULL;
        named = id != NULL;
        to_node_of(id, out);
    }
    if (named)
        return;
    if (!conversation && begins) {
        /* Its name is that of the key once the edge has sent it home. */
        if (key && is_made(key))
            snprintf(route->made, sizeof route->made, "%s", key);
        else
            mcp_conversation_make(route->made);
        conversation = route->made;
    }
    if (conversation)
        to_conversation(conversation, route, out);
}

static void to_tool(const struct mcp_call *call, struct mcp_route *route, struct mcp_elsewhere *out)
{
    const struct mcp_tool *tool = mcp_tool_called(call->server, call->params);
    enum mcp_routes_by by = tool ? call->server->routes_by(tool) : MCP_ROUTES_NOWHERE;

    if (by == MCP_ROUTES_NAMED || by == MCP_ROUTES_NEW)
        to_named(call, json_object_get(call->params, "arguments"), by == MCP_ROUTES_NEW, route,
                 out);
}

static void to_uri(const struct mcp_call *call, const char *uri, struct mcp_route *route,
                   struct mcp_elsewhere *out)
{
    const struct mcp_resources *r = call->server->resources;
    AUTO_FREE char *conversation = NULL;
    AUTO_FREE char *id = NULL;

    if (!uri || !r || !r->belongs)
        return;
    r->belongs(uri, &conversation, &id);
    if (conversation)
        to_conversation(conversation, route, out);
    else
        to_node_of(id, out);
}

/* A stream is of one node: that of the first task, or of the first resource. */
static void to_listen(const struct mcp_call *call, struct mcp_route *route,
                      struct mcp_elsewhere *out)
{
    const json_t *wanted = json_object_get(call->params, "notifications");
    const json_t *task = json_array_get(json_object_get(wanted, "taskIds"), 0);
    const json_t *uri = json_array_get(json_object_get(wanted, "resourceSubscriptions"), 0);

    if (json_is_string(task))
        to_node_of(json_string_value(task), out);
    else
        to_uri(call, json_string_value(uri), route, out);
}

static struct mcp_elsewhere belongs_to(const struct mcp_call *call, struct mcp_route *route)
{
    const json_t *context = json_object_get(json_object_get(call->params, "context"), "arguments");
    struct mcp_elsewhere to = {.by = MCP_STAYS};
    enum mcp_routes_by by = call->method ? call->method->routes_by : MCP_ROUTES_NOWHERE;

    if (by != MCP_ROUTES_NOWHERE && by != MCP_ROUTES_SESSION && !call->server->routes_by) {
        to.by = MCP_BY_KEY; /* ids of other servers' tools name no node */
        snprintf(to.name, sizeof to.name, ALL_OF_TENANT);
        return to;
    }
    if (by == MCP_ROUTES_TOOL)
        to_tool(call, route, &to);
    else if (by == MCP_ROUTES_TASK)
        to_node_of(text_of(call->params, "taskId"), &to);
    else if (by == MCP_ROUTES_URI)
        to_uri(call, text_of(call->params, "uri"), route, &to);
    else if (by == MCP_ROUTES_LISTEN)
        to_listen(call, route, &to);
    else if (by == MCP_ROUTES_CONTEXT && text_of(context, CONVERSATION))
        to_conversation(text_of(context, CONVERSATION), route, &to);
    else if (by == MCP_ROUTES_SESSION && call->session && *call->session->node)
        to_node_of(call->origin->session, &to);
    return to;
}

/* ---- where it goes ---- */

static int fail_away(struct mcp_call *call, const char *what, const char *node)
{
    return mcp_fail(&call->failure, 503, RPC_INTERNAL_ERROR,
                    json_pack("{s:i}", "retryAfterMs", MCP_AWAY_RETRY_MS),
                    "the machine %s%sthat has %s is away; try again later", node, *node ? " " : "",
                    what);
}

/* The call is about files that this node has while the home is away. */
static int stand_in(struct mcp_call *call, struct mcp_route *route)
{
    const struct mcp_edge *edge = call->origin->edge;
    struct err e = ERR_INIT;

    if (edge->refuses || !*route->conversation ||
        stand_in_open(call->server->sessions_fd, call->origin->tenant, route->conversation,
                      edge->home, route->inside, &e) < 0) {
        if (e.kind != ERR_NONE)
            log_warn("%s", e.text);
        return fail_away(call, "the files of this conversation", "");
    }
    node_stand_in(route->conversation, route->inside);
    return 0;
}

static int route_by_key(struct mcp_call *call, const struct mcp_elsewhere *to,
                        struct mcp_route *route)
{
    const struct mcp_edge *edge = call->origin->edge;
    const char *key = edge_key(call->origin);
    bool home = key && strcmp(key, to->name) == 0;

    if (home)
        return edge->home ? stand_in(call, route) : 0;
    if (edge->again)
        return mcp_fail(&call->failure, 500, RPC_INTERNAL_ERROR, NULL,
                        "the edge sent this call to the wrong node: it is in a batch with calls "
                        "for others, or the nodes have different tokens");
    call->answer->to = *to;
    return 1;
}

int mcp_route_request(struct mcp_call *call, struct mcp_route *route)
{
    const struct mcp_edge *edge = call->origin->edge;

    *route = (struct mcp_route){.made = ""};
    if (!edge || !call->origin->tenant)
        return 0;
    const struct mcp_elsewhere to = belongs_to(call, route);
    int rc = 0;
    if (to.by == MCP_BY_KEY)
        rc = route_by_key(call, &to, route);
    else if (to.by == MCP_BY_NODE && edge->home)
        rc = fail_away(call, "this", to.name);
    else if (to.by == MCP_BY_NODE && !edge->again) { /* else an id of nowhere */
        call->answer->to = to;
        rc = 1;
    }
    if (rc > 0 && call->session && !*call->session->node)
        sent_on_note(call->server->sessions_fd, call->session->id, call->id, &to);
    return rc;
}

void mcp_route_end(void)
{
    node_stand_in(NULL, NULL);
}

int mcp_route_other(const struct mcp_call *call, const struct rpc_message *message)
{
    const json_t *cancelled = json_object_get(message->params, "requestId");
    const struct mcp_edge *edge = call->origin->edge;
    struct mcp_elsewhere to = {.by = MCP_STAYS};

    if (!edge || edge->again || !call->session)
        return 0;
    if (message->kind == RPC_RESPONSE && json_is_string(message->id))
        to_node_of(json_string_value(message->id), &to);
    else if (call->method && call->method->handle == mcp_cancelled && cancelled &&
             !*call->session->node)
        sent_on_find(call->server->sessions_fd, call->session->id, cancelled, &to);
    call->answer->to = to;
    return to.by != MCP_STAYS;
}
