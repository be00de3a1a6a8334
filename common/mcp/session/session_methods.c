/* initialize, server/discover, ping; what legacy clients set for their session; cancelling. */
#include "config.h"

#include "common/base/log.h"
#include "common/mcp/call.h"
#include "common/mcp/client/notify.h"
#include "common/mcp/events/event.h"
#include "common/mcp/features/offer.h"
#include "common/mcp/features/task.h"
#include "common/mcp/session/mailbox.h"
#include "common/rpc/json.h"

#include <string.h>

/* ---- who we are and what we support ---- */

/* Prompts and resources are named even where there are none: the methods answer with empty lists.
 */
static json_t *capabilities_new(const struct mcp_server *server, unsigned features)
{
    const struct mcp_resources *resources = server->resources;
    bool live = server->publish != NULL; /* else no change is announced */
    json_t *yes = json_true();
    bool completes = resources && resources->complete;
    json_t *tasks = NULL;

    for (size_t i = 0; i < server->n_prompts; i++)
        completes |= server->prompts[i]->complete != NULL;
    if (server->tasks && (features & MCP_IS_MODERN))
        tasks = json_pack("{s:{}}", MCP_EXTENSION_TASKS);
    return json_pack("{s:{s:o*}, s:{s:o*, s:o*}, s:{s:o*}, s:{}, s:o*, s:o*}", "tools",
                     "listChanged", live && mcp_tools_can_change(server) ? yes : NULL, "resources",
                     "listChanged", live && resources ? yes : NULL, "subscribe",
                     live && resources && resources->can_subscribe ? yes : NULL, "prompts",
                     "listChanged", live && server->n_prompts > 0 ? yes : NULL, "logging",
                     "completions", completes ? json_object() : NULL, "extensions", tasks);
}

json_t *mcp_server_info_new(const struct mcp_server *server, unsigned features)
{
    return json_pack("{s:s, s:s*, s:s}", "name", server->name, "title",
                     features & MCP_CAN_TITLE ? server->title : NULL, "version", server->version);
}

/* Without a session (the directory is full, ...) the client is served all the same. */
static void session_start(struct mcp_call *call)
{
    const json_t *capabilities = json_object_get(call->params, "capabilities");
    const struct mcp_origin *origin = call->origin;
    char id[MCP_SESSION_ID_LEN + 1] = "";
    struct err e = ERR_INIT;

    if (origin->stdio_client) {
        json_decref(origin->stdio_client->capabilities);
        origin->stdio_client->capabilities = json_deep_copy(capabilities);
        origin->stdio_client->negotiated = mcp_revision_name(call->era.revision);
    } else if (origin->http && origin->tenant && call->server->sessions_fd >= 0) {
        if (mcp_session_create(call->server, origin->tenant, call->era.revision, capabilities,
                               json_object_get(call->params, "clientInfo"), id, &e) < 0)
            log_debug("%s", e.text);
        else
            node_add(id, call->answer->session, sizeof call->answer->session);
    }
}

/* era_decide has settled the revision. A client without protocolVersion gets ours. */
int mcp_initialize(struct mcp_call *call, json_t **out_result)
{
    const json_t *asked = json_object_get(call->params, "protocolVersion");

    if (asked && !json_is_string(asked))
        return mcp_fail_params(call, "params.protocolVersion must be a string");
    session_start(call);
    *out_result = json_pack("{s:s, s:o, s:o, s:s*}", "protocolVersion",
                            mcp_revision_name(call->era.revision), "capabilities",
                            capabilities_new(call->server, call->era.features), "serverInfo",
                            mcp_server_info_new(call->server, call->era.features), "instructions",
                            call->server->instructions);
    return 0;
}

/* Only modern revisions are named: clients retry with one of the list, without a handshake. */
int mcp_discover(struct mcp_call *call, json_t **out_result)
{
    *out_result = json_pack("{s:o, s:o, s:s*}", "supportedVersions",
                            mcp_revision_list(MCP_ANY_MODERN), "capabilities",
                            capabilities_new(call->server, call->era.features), "instructions",
                            call->server->instructions);
    return 0;
}

int mcp_ping(struct mcp_call *call, json_t **out_result)
{
    (void)call;
    *out_result = json_object();
    return 0;
}

static int session_fail(struct mcp_call *call, const struct err *e)
{
    if (e->kind == ERR_NOT_FOUND)
        return mcp_fail(&call->failure, 404, RPC_INVALID_REQUEST, NULL, "%s", e->text);
    return mcp_fail_err(call, e);
}

/* ---- logging ---- */

static json_t *level_set(const json_t *now, void *ctx, struct err *e)
{
    (void)now;
    (void)e;
    return json_string(ctx);
}

/* Without a session the level has no effect: no messages are sent. */
int mcp_set_level(struct mcp_call *call, json_t **out_result)
{
    const char *name = json_get_string(call->params, "level");
    int level = mcp_log_level_parse(name);
    struct err e = ERR_INIT;

    if (level < 0)
        return mcp_fail_params(call,
                               "params.level must be one of debug, info, notice, warning, error, "
                               "critical, alert, emergency");
    if (call->origin->stdio_client)
        call->origin->stdio_client->log_level = level;
    if (call->session && mcp_session_set(call->server, call->session, "logLevel", level_set,
                                         (void *)(uintptr_t)name, &e) < 0)
        return session_fail(call, &e);
    *out_result = json_object();
    return 0;
}

/* ---- subscriptions ---- */

static json_t *add_uri(const json_t *now, void *ctx, struct err *e)
{
    json_t *uris = json_is_array(now) ? json_copy((json_t *)(uintptr_t)now) : json_array();
    size_t bytes = strlen(ctx);
    size_t i;
    json_t *one;

    if (json_index_of(uris, ctx) < json_array_size(uris))
        return uris;
    json_array_foreach(uris, i, one) bytes += json_string_length(one);
    if (json_array_size(uris) >= MCP_SUBSCRIPTIONS_MAX || bytes > MCP_SUBSCRIPTIONS_BYTES) {
        err_set(e, ERR_LIMIT, "too many subscriptions (at most %d, %d bytes of URIs)",
                MCP_SUBSCRIPTIONS_MAX, MCP_SUBSCRIPTIONS_BYTES);
        json_decref(uris);
        return NULL;
    }
    json_array_append_new(uris, json_string(ctx));
    return uris;
}

static json_t *remove_uri(const json_t *now, void *ctx, struct err *e)
{
    json_t *uris = json_is_array(now) ? json_copy((json_t *)(uintptr_t)now) : json_array();

    (void)e;
    json_array_remove(uris, json_index_of(uris, ctx)); /* ignored behind the end */
    return uris;
}

typedef json_t *edit_uris(const json_t *now, void *ctx, struct err *e);

static int change_subscriptions(struct mcp_call *call, const char *uri, edit_uris *edit,
                                struct err *e)
{
    struct mcp_stdio_client *stdio_client = call->origin->stdio_client;
    void *ctx = (void *)(uintptr_t)uri;

    if (stdio_client) {
        json_t *uris = edit(stdio_client->subscriptions, ctx, e);
        if (!uris)
            return -1;
        json_decref(stdio_client->subscriptions);
        stdio_client->subscriptions = uris;
        return 0;
    }
    if (mcp_session_set(call->server, call->session, "subscriptions", edit, ctx, e) < 0)
        return -1;
    mcp_publish(call->server, &(struct mcp_event){.kind = MCP_EVENT_SESSION,
                                                  .tenant = call->origin->tenant,
                                                  .session = call->session->id});
    return 0;
}

static int subscriptions_edit(struct mcp_call *call, edit_uris *edit, json_t **out_result)
{
    const char *uri = json_get_string(call->params, "uri");
    struct err e = ERR_INIT;

    if (!uri)
        return mcp_fail_params(call, "params.uri must be a string");
    if (!call->session && !call->origin->stdio_client)
        return mcp_fail(&call->failure, 200, RPC_INVALID_REQUEST, NULL,
                        "subscriptions need a session: send Mcp-Session-Id as initialize gave it");
    if (edit == add_uri && !mcp_resource_can_subscribe(call->server, call->origin->tenant, uri)) {
        return mcp_fail(&call->failure, 200, MCP_RESOURCE_NOT_FOUND, json_pack("{s:s}", "uri", uri),
                        "there is no resource of this name to subscribe to");
    }
    if (change_subscriptions(call, uri, edit, &e) < 0)
        return session_fail(call, &e);
    *out_result = json_object();
    return 0;
}

int mcp_subscribe(struct mcp_call *call, json_t **out_result)
{
    return subscriptions_edit(call, add_uri, out_result);
}

int mcp_unsubscribe(struct mcp_call *call, json_t **out_result)
{
    return subscriptions_edit(call, remove_uri, out_result);
}

/* ---- cancelling ---- */

/* Calls of this session only. Modern clients close the stream; on stdio the front end handles
 * cancelling. */
int mcp_cancelled(struct mcp_call *call, json_t **out_result)
{
    const json_t *id = json_object_get(call->params, "requestId");

    (void)out_result;
    if (call->session && (json_is_string(id) || json_is_integer(id)))
        mcp_mailbox_cancel(call->server->sessions_fd, call->session->id, id);
    return 0;
}
