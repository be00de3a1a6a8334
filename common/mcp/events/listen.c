#include "config.h"

#include "common/mcp/events/listen.h"

#include "common/base/mem.h"
#include "common/mcp/call.h"
#include "common/mcp/features/task.h"
#include "common/rpc/json.h"

#include <string.h>

/* A modern listen has an id; a legacy stream a session, or a stdio_client (stdio). */
struct mcp_listen {
    char *tenant;
    bool tools, prompts, resources;
    json_t *uris;  /* array; NULL: none */
    json_t *tasks; /* array of ids; NULL: none */
    json_t *id;    /* of the listen request; NULL: legacy */
    unsigned features;
    char session[MCP_SESSION_ID_LEN + 1];
    const struct mcp_stdio_client *stdio_client; /* borrowed */
};

static struct mcp_listen *listen_new(const char *tenant)
{
    struct mcp_listen *l = mem_alloc(sizeof *l);

    l->tenant = mem_strdup(tenant ? tenant : "");
    return l;
}

void mcp_listen_free(struct mcp_listen *l)
{
    if (!l)
        return;
    free(l->tenant);
    json_decref(l->uris);
    json_decref(l->tasks);
    json_decref(l->id);
    free(l);
}

const char *mcp_listen_session_id(const struct mcp_listen *l)
{
    return l->session[0] ? l->session : NULL;
}

bool mcp_listen_is_empty(const struct mcp_listen *l)
{
    return l->id && !l->tools && !l->prompts && !l->resources && json_array_size(l->uris) == 0 &&
           json_array_size(l->tasks) == 0;
}

/* ---- modern: subscriptions/listen ---- */

static json_t *meta_new(const struct mcp_listen *l)
{
    return json_pack("{s:O}", MCP_META_SUBSCRIPTION, l->id);
}

static int check_uris(struct mcp_call *call, const json_t *uris)
{
    size_t bytes = 0;
    size_t i;
    json_t *one;

    if (!json_is_array(uris) || json_array_size(uris) > MCP_SUBSCRIPTIONS_MAX)
        return mcp_fail_params(call, "resourceSubscriptions must be an array of at most 256 URIs");
    json_array_foreach(uris, i, one)
    {
        if (!json_is_string(one))
            return mcp_fail_params(call, "resourceSubscriptions must be an array of strings");
        bytes += json_string_length(one);
    }
    if (bytes > MCP_SUBSCRIPTIONS_BYTES)
        return mcp_fail_params(call, "resourceSubscriptions is too long");
    return 0;
}

/* Those of the URIs that this tenant may subscribe to. Copies: the stream outlives the request. */
static json_t *honoured_uris(const struct mcp_call *call, const json_t *uris)
{
    json_t *honoured = json_array();
    size_t i;
    json_t *one;

    json_array_foreach(uris, i, one)
    {
        if (strlen(json_string_value(one)) == json_string_length(one) &&
            mcp_resource_can_subscribe(call->server, call->origin->tenant, json_string_value(one)))
            json_array_append_new(honoured, json_deep_copy(one));
    }
    return honoured;
}

static int check_task_ids(struct mcp_call *call, const json_t *ids)
{
    size_t i;
    json_t *one;

    if (!mcp_client_can_task(call))
        return mcp_fail_no_tasks(call);
    if (!json_is_array(ids) || json_array_size(ids) > MCP_TASK_IDS_MAX)
        return mcp_fail_params(call, "taskIds must be an array of at most 64 ids");
    json_array_foreach(ids, i, one)
    {
        if (!json_is_string(one) || json_string_length(one) > MCP_TASK_ID_MAX)
            return mcp_fail_params(call,
                                   "taskIds must be an array of strings of at most 128 bytes");
    }
    return 0;
}

static bool honour(const json_t *filter, const char *name, bool offered, json_t *honoured)
{
    bool yes = offered && json_is_true(json_object_get(filter, name));

    if (yes)
        json_object_set_new(honoured, name, json_true());
    return yes;
}

/* Honours what can change, and only if changes are published. */
int mcp_subscriptions_listen(struct mcp_call *call, json_t **out_result)
{
    const struct mcp_server *server = call->server;
    const json_t *filter = json_object_get(call->params, "notifications");
    const json_t *uris = json_object_get(filter, "resourceSubscriptions");
    const json_t *tasks = server->tasks ? json_object_get(filter, "taskIds") : NULL;
    bool live = server->publish != NULL;
    json_t *honoured;
    struct mcp_listen *l;

    if (!json_is_object(filter))
        return mcp_fail_params(call, "params.notifications must be an object");
    if ((uris && check_uris(call, uris) < 0) || (tasks && check_task_ids(call, tasks) < 0))
        return -1;
    l = listen_new(call->origin->tenant);
    honoured = json_object();
    l->id = json_deep_copy(call->id);
    l->features = call->era.features;
    l->tools = honour(filter, "toolsListChanged", live && mcp_tools_can_change(server), honoured);
    l->prompts = honour(filter, "promptsListChanged", live && server->n_prompts > 0, honoured);
    l->resources = honour(filter, "resourcesListChanged", live && server->resources, honoured);
    if (uris) {
        l->uris = honoured_uris(call, uris);
        json_object_set_new(honoured, "resourceSubscriptions", json_deep_copy(l->uris));
    }
    if (tasks && live) { /* all of them: the answer must not reveal which tasks exist */
        l->tasks = json_deep_copy(tasks);
        json_object_set_new(honoured, "taskIds", json_deep_copy(tasks));
    }
    call->answer->listen = l;
    *out_result = rpc_notification_new(
        "notifications/subscriptions/acknowledged",
        json_pack("{s:o, s:o}", "notifications", honoured, "_meta", meta_new(l)));
    return 0;
}

json_t *mcp_listen_end(const struct mcp_listen *l, const struct mcp_server *server)
{
    if (!l->id)
        return NULL;
    json_t *info = mcp_server_info_new(server, mcp_revision_features(MCP_2026_07_28));
    return rpc_result_new(l->id, json_pack("{s:s, s:{s:O, s:o}}", "resultType", "complete", "_meta",
                                           MCP_META_SUBSCRIPTION, l->id, MCP_META_SERVER, info));
}

/* ---- legacy: the stream of a session ---- */

static void set_session(struct mcp_listen *l, const struct mcp_session *s)
{
    memcpy(l->session, s->id, sizeof l->session);
    json_decref(l->uris);
    l->uris = json_deep_copy(json_object_get(s->record, "subscriptions"));
}

int mcp_listen_session(const struct mcp_server *server, const struct mcp_origin *origin,
                       struct mcp_listen **out_listen, struct mcp_answer *out)
{
    AUTO_MCP_SESSION struct mcp_session s = {.record = NULL};
    const char *version = origin->protocol_version, *accept = origin->accept;
    enum mcp_revision revision;
    struct mcp_listen *l;

    *out = (struct mcp_answer){.method = "session/listen", .detail = "", .status = 200};
    if (!origin->stdio_client && !origin->bare_stream) {
        /* Clients of the transport of 2024-11-05, which they try first, go on at 404 and 405. */
        if (!origin->session && server->sessions_fd >= 0)
            return mcp_stream_refuse(out, 405, "a stream needs the header Mcp-Session-Id");
        if (mcp_session_of_stream(server, origin, &s, out) < 0)
            return -1;
        if (accept && *accept && !strcasestr(accept, "text/event-stream") &&
            !strstr(accept, "*/*") && !strcasestr(accept, "text/*"))
            return mcp_stream_refuse(out, 406, "Accept must allow text/event-stream");
        if (version && *version && mcp_revision_parse(version, strlen(version), &revision) < 0)
            return mcp_stream_refuse(out, 400, "unsupported MCP-Protocol-Version");
    }
    l = listen_new(origin->tenant);
    l->tools = mcp_tools_can_change(server);
    l->prompts = true;
    l->resources = server->resources != NULL;
    l->stdio_client = origin->stdio_client;
    if (s.record)
        set_session(l, &s);
    *out_listen = l;
    return 0;
}

/* ---- events ---- */

static bool has_text(const json_t *texts, const char *text)
{
    return json_index_of(texts, text) < json_array_size(texts);
}

/* take_params may be NULL. */
static json_t *notification_new(const struct mcp_listen *l, const char *method, json_t *take_params)
{
    json_t *params = l->id && !take_params ? json_object() : take_params;

    if (l->id)
        json_object_set_new(params, "_meta", meta_new(l));
    return rpc_notification_new(method, params);
}

/* The session's subscriptions may have changed, or it has ended. */
static void listen_reload(struct mcp_listen *l, const struct mcp_server *server, bool *out_end)
{
    AUTO_MCP_SESSION struct mcp_session s = {.record = NULL};
    struct err e = ERR_INIT;

    if (mcp_session_load(server, l->session, l->tenant, &s, &e) < 0)
        *out_end = true;
    else
        set_session(l, &s);
}

static bool is_theirs(const struct mcp_listen *l, const struct mcp_event *event)
{
    return event->tenant && strcmp(l->tenant, event->tenant) == 0;
}

bool mcp_listen_wants_task(const struct mcp_listen *l, const char *tenant, const char *task)
{
    return strcmp(l->tenant, tenant) == 0 && has_text(l->tasks, task);
}

unsigned mcp_listen_features(const struct mcp_listen *l)
{
    return l->features;
}

json_t *mcp_listen_task_state(const struct mcp_server *server, unsigned features,
                              const char *tenant, const char *id)
{
    const struct mcp_tool_call call = {.server = server,
                                       .app = server->app,
                                       .tenant = tenant,
                                       .cancel_fd = -1,
                                       .leave_fd = -1,
                                       .in_text = features & MCP_IN_TEXT};
    AUTO_MCP_TASK struct mcp_task task = {.status = MCP_TASK_WORKING};
    struct err e = ERR_INIT;

    if (!server->tasks || server->tasks->get(&call, id, true, &task, &e) < 0)
        return NULL;
    return mcp_task_to_json(&task, features);
}

json_t *mcp_listen_task_message(const struct mcp_listen *l, const json_t *state)
{
    return notification_new(l, "notifications/tasks", json_copy((json_t *)(uintptr_t)state));
}

json_t *mcp_listen_message(struct mcp_listen *l, const struct mcp_server *server,
                           const struct mcp_event *event, bool *out_end)
{
    const json_t *uris = l->stdio_client ? l->stdio_client->subscriptions : l->uris;
    json_auto_t *state = NULL;

    *out_end = false;
    switch (event->kind) {
    case MCP_EVENT_TOOLS:
        return l->tools ? notification_new(l, "notifications/tools/list_changed", NULL) : NULL;
    case MCP_EVENT_PROMPTS:
        return l->prompts ? notification_new(l, "notifications/prompts/list_changed", NULL) : NULL;
    case MCP_EVENT_RESOURCES:
        return l->resources && is_theirs(l, event)
                   ? notification_new(l, "notifications/resources/list_changed", NULL)
                   : NULL;
    case MCP_EVENT_RESOURCE:
        return is_theirs(l, event) && has_text(uris, event->uri)
                   ? notification_new(l, "notifications/resources/updated",
                                      json_pack("{s:s}", "uri", event->uri))
                   : NULL;
    case MCP_EVENT_TASK:
        if (is_theirs(l, event) && has_text(l->tasks, event->task))
            state = mcp_listen_task_state(server, l->features, l->tenant, event->task);
        return state ? mcp_listen_task_message(l, state) : NULL;
    case MCP_EVENT_SESSION:
        if (l->session[0] && strcmp(l->session, event->session) == 0)
            listen_reload(l, server, out_end);
        break;
    }
    return NULL;
}
