#include "config.h"

#include "common/mcp/server.h"

#include "common/base/log.h"
#include "common/base/trace.h"
#include "common/mcp/call.h"
#include "common/mcp/era.h"
#include "common/mcp/route.h"
#include "common/mcp/session/mailbox.h"
#include "common/rpc/json.h"

#include <string.h>

#define BATCH_MAX 32
/* Bytes of an id and of the frame around a result; a longer one is written anew. */
#define RPC_ID_MAX 4096

/*
 * tools/list changes when a runner image is added or removed, so it may be cached for a minute
 * only; it is the same for every caller. The result of server/discover changes with a new version
 * of the program.
 */
#define MINUTE_MS (60 * 1000)
#define HOUR_MS   (60 * MINUTE_MS)

static const struct mcp_method methods[] = {
    {"initialize", MCP_ANY_LEGACY, RPC_REQUEST, mcp_initialize, NULL, NULL, 0, MCP_ROUTES_NOWHERE,
     false},
    {"ping", MCP_ANY_LEGACY, RPC_REQUEST, mcp_ping, NULL, NULL, 0, MCP_ROUTES_NOWHERE, false},
    {"server/discover", MCP_ANY_MODERN, RPC_REQUEST, mcp_discover, NULL, "public", HOUR_MS,
     MCP_ROUTES_NOWHERE, false},
    {"tools/list", MCP_ANY_REVISION, RPC_REQUEST, mcp_tools_list, NULL, "public", MINUTE_MS,
     MCP_ROUTES_NOWHERE, true},
    {"tools/call", MCP_ANY_REVISION, RPC_REQUEST, mcp_tools_call, "name", NULL, 0, MCP_ROUTES_TOOL,
     true},
    {"resources/list", MCP_ANY_REVISION, RPC_REQUEST, mcp_resources_list, NULL, "private", 0,
     MCP_ROUTES_SESSION, true},
    {"resources/templates/list", MCP_ANY_REVISION, RPC_REQUEST, mcp_resources_templates, NULL,
     "public", HOUR_MS, MCP_ROUTES_NOWHERE, false},
    {"resources/read", MCP_ANY_REVISION, RPC_REQUEST, mcp_resources_read, "uri", "private", 0,
     MCP_ROUTES_URI, true},
    {"resources/subscribe", MCP_ANY_LEGACY, RPC_REQUEST, mcp_subscribe, NULL, NULL, 0,
     MCP_ROUTES_SESSION, false},
    {"resources/unsubscribe", MCP_ANY_LEGACY, RPC_REQUEST, mcp_unsubscribe, NULL, NULL, 0,
     MCP_ROUTES_SESSION, false},
    {"prompts/list", MCP_ANY_REVISION, RPC_REQUEST, mcp_prompts_list, NULL, "public", HOUR_MS,
     MCP_ROUTES_NOWHERE, false},
    {"prompts/get", MCP_ANY_REVISION, RPC_REQUEST, mcp_prompts_get, "name", NULL, 0,
     MCP_ROUTES_NOWHERE, true},
    {"completion/complete", MCP_ANY_REVISION, RPC_REQUEST, mcp_complete, NULL, NULL, 0,
     MCP_ROUTES_CONTEXT, true},
    {"tasks/get", MCP_ANY_MODERN, RPC_REQUEST, mcp_tasks_get, "taskId", NULL, 0, MCP_ROUTES_TASK,
     true},
    {"tasks/update", MCP_ANY_MODERN, RPC_REQUEST, mcp_tasks_update, "taskId", NULL, 0,
     MCP_ROUTES_TASK, true},
    {"tasks/cancel", MCP_ANY_MODERN, RPC_REQUEST, mcp_tasks_cancel, "taskId", NULL, 0,
     MCP_ROUTES_TASK, true},
    {"logging/setLevel", MCP_ANY_LEGACY, RPC_REQUEST, mcp_set_level, NULL, NULL, 0,
     MCP_ROUTES_SESSION, false},
    {"subscriptions/listen", MCP_ANY_MODERN, RPC_REQUEST, mcp_subscriptions_listen, NULL, NULL, 0,
     MCP_ROUTES_LISTEN, false},
    {"notifications/initialized", MCP_ANY_LEGACY, RPC_NOTIFICATION, NULL, NULL, NULL, 0,
     MCP_ROUTES_NOWHERE, false},
    {"notifications/cancelled", MCP_ANY_REVISION, RPC_NOTIFICATION, mcp_cancelled, NULL, NULL, 0,
     MCP_ROUTES_NOWHERE, false},
    {"notifications/progress", MCP_ANY_REVISION, RPC_NOTIFICATION, NULL, NULL, NULL, 0,
     MCP_ROUTES_NOWHERE, false},
    {"notifications/roots/list_changed", MCP_ANY_LEGACY, RPC_NOTIFICATION, NULL, NULL, NULL, 0,
     MCP_ROUTES_NOWHERE, false},
};

static const struct mcp_method *find_method(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static void answer_failure(const json_t *id, struct mcp_failure *f, struct mcp_answer *out)
{
    log_reason(mcp_failure_reason(f), NULL);
    out->status = f->status;
    out->error = err_kind_name(f->code == RPC_INTERNAL_ERROR ? ERR_INTERNAL : ERR_INVALID);
    out->body = rpc_error_new(id, f->code, f->message, TAKE_PTR(f->data));
}

/* What the modern revision requires of every result. */
static void decorate(const struct mcp_call *call, json_t *result)
{
    const struct mcp_method *method = call->method;

    if (!(call->era.features & MCP_IS_MODERN))
        return;
    if (!json_object_get(result, "resultType"))
        json_object_set_new(result, "resultType", json_string("complete"));
    if (method->cache_scope) {
        json_object_set_new(result, "ttlMs", json_integer(method->ttl_ms));
        json_object_set_new(result, "cacheScope", json_string(method->cache_scope));
    }
    json_object_set_new(
        result, "_meta",
        json_pack("{s:o}", MCP_META_SERVER, mcp_server_info_new(call->server, call->era.features)));
}

static int run_method(struct mcp_call *call, json_t **out_result)
{
    const struct mcp_method *method = call->method;
    const struct mcp_error_style *style = call->server->error_style;
    bool modern = call->era.features & MCP_IS_MODERN;

    if (method && method->kind == RPC_REQUEST &&
        (method->revisions & MCP_REVISION_BIT(call->era.revision)))
        return method->handle(call, out_result);
    if (style && !modern)
        return mcp_fail_named(&call->failure, RPC_METHOD_NOT_FOUND, style->unknown_method,
                              call->method_name);
    return mcp_fail(&call->failure, modern ? 404 : 200, RPC_METHOD_NOT_FOUND, NULL,
                    "there is no such method in revision %s",
                    mcp_revision_name(call->era.revision));
}

static void answer_accepted(struct mcp_answer *out)
{
    out->status = 202;
    out->body = NULL;
}

/* Every client requests the list of tools, which is long and the same each time. */
static bool answer_as_text(const struct mcp_call *call, const json_t *result,
                           struct mcp_answer *out)
{
    const struct buf *text = NULL;

    if (call->origin->takes_text && call->method->handle == mcp_tools_list)
        text = mcp_tools_cache_text(call->server, call->era.features, result);
    if (!text)
        return false;
    out->text = BUF_INIT(text->len + RPC_ID_MAX);
    rpc_result_text(call->id, text, &out->text);
    if (!buf_ok(&out->text))
        buf_clear(&out->text);
    return out->text.len > 0;
}

static void answer_result(struct mcp_call *call, json_t *take_result, struct mcp_answer *out)
{
    out->status = 200;
    if (out->listen) {
        out->body = take_result; /* the acknowledgement: a message of its own */
        return;
    }
    decorate(call, take_result);
    if (answer_as_text(call, take_result, out))
        json_decref(take_result);
    else
        out->body = rpc_result_new(call->id, take_result);
}

/* 1: another process answers it; 0: it is answered here; -1: it is refused. */
static int hand_over(const struct mcp_origin *origin, struct mcp_failure *f)
{
    const struct mcp_stdio_client *stdio_client = origin->stdio_client;
    struct err e = ERR_INIT;
    int where = 0;

    if (stdio_client && stdio_client->hand_over)
        where = stdio_client->hand_over(stdio_client->ctx, &e);
    if (where < 0)
        mcp_fail(f, 400, e.kind == ERR_INVALID ? RPC_INVALID_REQUEST : RPC_INTERNAL_ERROR, NULL,
                 "%s", e.text);
    return where;
}

static void answer_request(struct mcp_call *call, const struct rpc_message *message,
                           struct mcp_answer *out)
{
    struct mcp_stdio_client *stdio_client = call->origin->stdio_client;
    struct mcp_route route;
    json_t *result = NULL;
    int rc;

    /* On stdio a modern request settles the era of the process; server/discover does not. */
    if (stdio_client && (call->era.features & MCP_IS_MODERN) &&
        strcmp(message->method, "server/discover") != 0)
        stdio_client->modern = true;
    call->era.features = mcp_features_here(call->server, call->origin, call->era.features);
    trace_take(json_get_string(json_object_get(call->params, "_meta"), "traceparent"));
    mcp_note_named(call); /* here: on stdio another process may run it, or another node */
    rc = mcp_route_request(call, &route);
    call->new_conversation = route.made;
    if (rc == 0 && call->method && call->method->waits)
        rc = hand_over(call->origin, &call->failure);
    if (rc == 0)
        rc = run_method(call, &result);
    mcp_route_end();
    if (call->cancelled || rc > 0) {
        json_decref(result);
        answer_accepted(out);
    } else if (rc < 0) {
        answer_failure(call->id, &call->failure, out);
    } else {
        answer_result(call, result, out);
    }
    if (call->detail)
        out->detail = call->detail;
}

static bool is_initialize(const struct rpc_message *message)
{
    return message->kind == RPC_REQUEST && strcmp(message->method, "initialize") == 0;
}

/* The session that a legacy client names, if we keep any; its revision is the one that counts. */
static int find_session(struct mcp_call *call, const struct rpc_message *message,
                        struct mcp_session *out, struct mcp_failure *f)
{
    const struct mcp_origin *origin = call->origin;
    struct err e = ERR_INIT;

    if (!origin->http || !origin->session || !*origin->session || call->server->sessions_fd < 0 ||
        (call->era.features & MCP_IS_MODERN) || is_initialize(message))
        return 0;
    if (mcp_session_load(call->server, origin->session, origin->tenant, out, &e) < 0)
        return mcp_fail(f, 404, RPC_INVALID_REQUEST, NULL, "%s", e.text);
    call->session = out;
    call->era.revision = out->revision;
    call->era.features = mcp_revision_features(out->revision);
    return 0;
}

static struct mcp_call call_of(const struct mcp_server *server, const struct mcp_origin *origin,
                               const struct rpc_message *message, struct mcp_answer *answer)
{
    return (struct mcp_call){.server = server,
                             .origin = origin,
                             .id = message->id,
                             .params = message->params,
                             .method = find_method(message->method),
                             .method_name = message->method,
                             .answer = answer};
}

/* A notification, or a response to a request of ours: the call that waits for it may run in another
 * worker. */
static void take_other(struct mcp_call *call, const struct rpc_message *message,
                       const json_t *whole)
{
    const struct mcp_method *method = call->method;

    if (message->kind == RPC_RESPONSE && call->session && message->id)
        mcp_mailbox_deliver(call->server->sessions_fd, call->session->id, message->id, whole);
    if (message->kind == RPC_NOTIFICATION && method && method->kind == RPC_NOTIFICATION &&
        method->handle)
        method->handle(call, NULL);
}

static void answer_message(const struct mcp_server *server, const struct mcp_origin *origin,
                           const struct rpc_message *message, const json_t *whole,
                           struct mcp_answer *out)
{
    struct mcp_call call = call_of(server, origin, message, out);
    const struct mcp_method *method = call.method;
    AUTO_MCP_FAILURE struct mcp_failure refusal = {0};
    AUTO_MCP_SESSION struct mcp_session session = {.record = NULL};

    if (method)
        out->method = method->name;
    if (era_decide(message, origin, method ? method->name_param : NULL, &call.era, &refusal) < 0 ||
        find_session(&call, message, &session, &refusal) < 0)
        answer_failure(message->id, &refusal, out);
    else if (message->kind == RPC_REQUEST)
        answer_request(&call, message, out);
    else
        answer_accepted(out);
    if (out->status == 202 && message->kind != RPC_REQUEST && !mcp_route_other(&call, message))
        take_other(&call, message, whole);
    mcp_failure_clear(&call.failure);
}

static int check_batch_element(const json_t *element, size_t i, struct mcp_failure *f)
{
    struct rpc_message message = {0};
    struct err e = ERR_INIT;

    if (rpc_classify(element, &message, &e) < 0)
        return mcp_fail(f, 400, RPC_INVALID_REQUEST, NULL, "message %zu of the batch: %s", i + 1,
                        e.text);
    if (json_object_get(json_object_get(message.params, "_meta"), MCP_META_VERSION))
        return mcp_fail(f, 400, RPC_INVALID_REQUEST, NULL,
                        "message %zu of the batch names a revision that has no batches", i + 1);
    if (is_initialize(&message))
        return mcp_fail(f, 400, RPC_INVALID_REQUEST, NULL,
                        "initialize must not be part of a batch");
    return 0;
}

/* A session's revision decides, else the headers. */
static int check_batch_revision(const struct mcp_server *server, const struct mcp_origin *origin,
                                struct mcp_failure *f)
{
    AUTO_MCP_SESSION struct mcp_session session = {.record = NULL};
    const struct rpc_message any = {.kind = RPC_NOTIFICATION};
    struct mcp_call call = {.server = server, .origin = origin};
    const char *version = origin->protocol_version ? origin->protocol_version : "";
    int rc = era_decide_batch(origin, &call.era, f);

    if (mcp_version_is_modern(version, strlen(version)))
        return rc;
    if (find_session(&call, &any, &session, f) < 0)
        return -1;
    if (!call.session)
        return rc;
    if (call.era.features & MCP_CAN_BATCH) {
        mcp_failure_clear(f);
        return 0;
    }
    return mcp_fail(f, 400, RPC_INVALID_REQUEST, NULL, "batches exist in revision %s only",
                    mcp_revision_name(MCP_2025_03_26));
}

/* A batch with one wrong element is refused before any of it is processed. */
static int check_batch(const struct mcp_server *server, const struct mcp_origin *origin,
                       const json_t *batch, struct mcp_failure *f)
{
    size_t i;
    json_t *element;

    if (check_batch_revision(server, origin, f) < 0)
        return -1;
    if (json_array_size(batch) == 0)
        return mcp_fail(f, 400, RPC_INVALID_REQUEST, NULL, "the batch is empty");
    if (json_array_size(batch) > BATCH_MAX)
        return mcp_fail(f, 400, RPC_INVALID_REQUEST, NULL, "the batch has more than %d messages",
                        BATCH_MAX);
    json_array_foreach(batch, i, element)
    {
        if (check_batch_element(element, i, f) < 0)
            return -1;
    }
    return 0;
}

static bool waits(const json_t *message)
{
    const struct mcp_method *method = find_method(json_get_string(message, "method"));

    return method && method->waits;
}

static bool batch_waits(const json_t *batch)
{
    size_t i;
    json_t *element;

    json_array_foreach(batch, i, element)
    {
        if (waits(element))
            return true;
    }
    return false;
}

/* A batch is one request: it goes where its first message that belongs elsewhere does. */
static bool batch_goes_on(const struct mcp_server *server, const struct mcp_origin *origin,
                          const json_t *batch, struct mcp_answer *out)
{
    size_t i;
    json_t *element;

    json_array_foreach(batch, i, element)
    {
        AUTO_MCP_SESSION struct mcp_session session = {.record = NULL};
        AUTO_MCP_FAILURE struct mcp_failure refusal = {0};
        struct rpc_message message = {0};
        struct err e = ERR_INIT;
        struct mcp_route route;

        if (rpc_classify(element, &message, &e) < 0)
            continue;
        struct mcp_call call = call_of(server, origin, &message, out);
        if (find_session(&call, &message, &session, &refusal) < 0)
            continue;
        int rc = message.kind == RPC_REQUEST ? mcp_route_request(&call, &route)
                                             : mcp_route_other(&call, &message);
        mcp_route_end();
        mcp_failure_clear(&call.failure);
        if (rc > 0)
            return true;
    }
    return false;
}

static void answer_batch(const struct mcp_server *server, const struct mcp_origin *origin,
                         const json_t *batch, struct mcp_answer *out)
{
    AUTO_MCP_FAILURE struct mcp_failure refusal = {0};
    int rc = check_batch(server, origin, batch, &refusal);
    json_t *answers;
    size_t i;
    json_t *element;

    out->method = "batch";
    if (rc == 0 && origin->edge && batch_goes_on(server, origin, batch, out)) {
        answer_accepted(out);
        return;
    }
    if (rc == 0 && batch_waits(batch))
        rc = hand_over(origin, &refusal);
    if (rc < 0) {
        answer_failure(NULL, &refusal, out);
        return;
    }
    struct mcp_origin quiet = *origin; /* the answers come together, so nothing is sent before */
    quiet.out = NULL;
    quiet.takes_text = false;
    answers = json_array();
    json_array_foreach(batch, i, element)
    {
        struct mcp_answer one = {.method = "-", .detail = ""};
        struct rpc_message message = {0};
        struct err e = ERR_INIT;

        if (rc > 0 && waits(element))
            continue; /* the rest is for this process, too: it keeps what the client sets */
        if (rpc_classify(element, &message, &e) == 0)
            answer_message(server, &quiet, &message, element, &one);
        if (one.error && origin->refused)
            origin->refused(&one);
        log_forget_reason();
        if (one.body)
            json_array_append_new(answers, one.body);
    }
    out->status = 200;
    out->body = answers;
    if (rc > 0 || json_array_size(answers) == 0) {
        json_decref(answers);
        answer_accepted(out);
    }
}

void mcp_handle(const struct mcp_server *server, const struct mcp_origin *origin,
                const json_t *message, struct mcp_answer *out)
{
    struct rpc_message parsed = {0};
    struct err e = ERR_INIT;

    *out = (struct mcp_answer){.method = "-", .detail = ""};
    if (json_is_array(message))
        answer_batch(server, origin, message, out);
    else if (rpc_classify(message, &parsed, &e) == 0)
        answer_message(server, origin, &parsed, message, out);
    else {
        out->status = 400;
        out->body = rpc_error_new(parsed.id, RPC_INVALID_REQUEST, e.text, NULL);
    }
}

bool mcp_frees(const struct mcp_server *server, const json_t *message)
{
    static const char *const freeing[] = {"notifications/cancelled", "tasks/cancel",
                                          "resources/unsubscribe"};
    struct rpc_message parsed = {0};
    struct err e = ERR_INIT;

    if (rpc_classify(message, &parsed, &e) < 0)
        return false;
    if (parsed.kind == RPC_RESPONSE)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(freeing); i++)
        if (strcmp(parsed.method, freeing[i]) == 0)
            return true;
    return strcmp(parsed.method, "tools/call") == 0 && mcp_tool_frees(server, parsed.params);
}

void mcp_parse_failed(const struct mcp_server *server, const struct err *problem,
                      struct mcp_answer *out)
{
    struct mcp_failure f = {0};

    *out = (struct mcp_answer){.method = "-", .detail = ""};
    if (server->error_style)
        mcp_fail(&f, 400, RPC_PARSE_ERROR, json_string(problem->text), "%s",
                 server->error_style->parse_error);
    else
        mcp_fail(&f, 400, RPC_PARSE_ERROR, NULL, "%s%s",
                 problem->kind == ERR_LIMIT ? "" : "not JSON: ", problem->text);
    /* Without an id, MCP omits the member; JSON-RPC sets it to null. */
    answer_failure(server->error_style ? json_null() : NULL, &f, out);
}

void mcp_stdio_client_clear(struct mcp_stdio_client *stdio_client)
{
    json_decref(stdio_client->capabilities);
    json_decref(stdio_client->subscriptions);
    json_decref(stdio_client->named);
    *stdio_client = MCP_STDIO_CLIENT_INIT;
}
