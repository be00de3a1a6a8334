/* What legacy clients set for their session, and cancelling. */
#include "config.h"

#include "common/mcp/client/notify.h"
#include "common/mcp/client/stdio_client.h"
#include "common/mcp/events/event.h"
#include "common/mcp/methods.h"
#include "common/mcp/session/mailbox.h"
#include "common/rpc/json.h"

#include <string.h>

static int fail_params(struct mcp_call *call, const char *what)
{
    return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL, "%s", what);
}

static int fail_with(struct mcp_call *call, const struct err *e)
{
    if (e->kind == ERR_NOT_FOUND)
        return mcp_fail(&call->failure, 404, RPC_INVALID_REQUEST, NULL, "%s", e->text);
    return mcp_fail(&call->failure, 200,
                    e->kind == ERR_LIMIT ? RPC_INVALID_PARAMS : RPC_INTERNAL_ERROR, NULL, "%s",
                    e->text);
}

/* ---- logging ---- */

static json_t *set_text(const json_t *now, void *ctx, struct err *e)
{
    (void)now;
    (void)e;
    return json_string(ctx);
}

/* Without a session there is nothing to remember it by, and nothing is sent. */
int mcp_set_level(struct mcp_call *call, json_t **out_result)
{
    int level = mcp_log_level_parse(json_get_string(call->params, "level"));
    struct err e = ERR_INIT;

    if (level < 0)
        return fail_params(call, "params.level must be one of debug, info, notice, warning, error, "
                                 "critical, alert, emergency");
    if (call->origin->stdio_client)
        call->origin->stdio_client->log_level = level;
    if (call->session &&
        mcp_session_set(call->server, call->session, "logLevel", set_text,
                        (void *)(uintptr_t)mcp_log_level_name((enum mcp_log_level)level), &e) < 0)
        return fail_with(call, &e);
    *out_result = json_object();
    return 0;
}

/* ---- subscriptions ---- */

static size_t index_of(const json_t *uris, const char *uri)
{
    size_t i;
    json_t *one;

    json_array_foreach(uris, i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), uri) == 0)
            return i;
    }
    return i;
}

static json_t *add_uri(const json_t *now, void *ctx, struct err *e)
{
    json_t *uris = json_is_array(now) ? json_copy((json_t *)(uintptr_t)now) : json_array();
    size_t bytes = strlen(ctx);
    size_t i;
    json_t *one;

    if (index_of(uris, ctx) < json_array_size(uris))
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
    json_array_remove(uris, index_of(uris, ctx)); /* nothing happens behind the end */
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

static int subscriptions(struct mcp_call *call, edit_uris *edit, json_t **out_result)
{
    const char *uri = json_get_string(call->params, "uri");
    struct err e = ERR_INIT;

    if (!uri)
        return fail_params(call, "params.uri must be a string");
    if (!call->session && !call->origin->stdio_client)
        return mcp_fail(&call->failure, 200, RPC_INVALID_REQUEST, NULL,
                        "subscriptions need a session: send Mcp-Session-Id as initialize gave it");
    if (edit == add_uri && !mcp_resource_can_subscribe(call->server, call->origin->tenant, uri)) {
        json_t *data = json_object();
        json_object_set_new(data, "uri", json_string(uri));
        return mcp_fail(&call->failure, 200, MCP_RESOURCE_NOT_FOUND, data,
                        "there is no resource of this name to subscribe to");
    }
    if (change_subscriptions(call, uri, edit, &e) < 0)
        return fail_with(call, &e);
    *out_result = json_object();
    return 0;
}

int mcp_subscribe(struct mcp_call *call, json_t **out_result)
{
    return subscriptions(call, add_uri, out_result);
}

int mcp_unsubscribe(struct mcp_call *call, json_t **out_result)
{
    return subscriptions(call, remove_uri, out_result);
}

/* ---- cancelling ---- */

/* Calls of this session only: nobody can cancel what is not theirs. Modern clients close the
 * stream; on stdio the front end looks after it. */
int mcp_cancelled(struct mcp_call *call, json_t **out_result)
{
    const json_t *id = json_object_get(call->params, "requestId");

    (void)out_result;
    if (call->session && (json_is_string(id) || json_is_integer(id)))
        mcp_mailbox_cancel(call->server->sessions_fd, call->session->id, id);
    return 0;
}
