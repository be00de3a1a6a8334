#include "config.h"

#include "common/mcp/server.h"

#include "common/mcp/client/stdio_client.h"
#include "common/mcp/features/tools_list.h"
#include "common/mcp/methods.h"
#include "common/mcp/session/mailbox.h"
#include "common/rpc/json.h"

#include <string.h>

#define BATCH_MAX 32
#define RPC_ID_MAX                                                                                 \
    4096 /* bytes of an id, and of what stands around a result; a longer one is written anew */

static void answer_failure(const json_t *id, struct mcp_failure *f, struct mcp_answer *out)
{
    out->status = f->status;
    out->body = rpc_error_new(id, f->code, f->message, TAKE_PTR(f->data));
}

/* What the modern revision wants on every result. */
static void decorate(const struct mcp_call *call, const struct mcp_method *method, json_t *result)
{
    json_t *meta;

    if (!(call->era.features & MCP_IS_MODERN))
        return;
    if (!json_object_get(result, "resultType"))
        json_object_set_new(result, "resultType", json_string("complete"));
    if (method->cache_scope) {
        json_object_set_new(result, "ttlMs", json_integer(method->ttl_ms));
        json_object_set_new(result, "cacheScope", json_string(method->cache_scope));
    }
    meta = json_object();
    json_object_set_new(meta, MCP_META_SERVER,
                        mcp_server_info_new(call->server, call->era.features));
    json_object_set_new(result, "_meta", meta);
}

static bool method_exists(const struct mcp_method *method, const struct era_verdict *era)
{
    return method && method->kind == RPC_REQUEST &&
           (method->revisions & MCP_REVISION_BIT(era->revision));
}

static int run_method(struct mcp_call *call, const struct mcp_method *method, json_t **out_result)
{
    bool modern = call->era.features & MCP_IS_MODERN;

    if (!method_exists(method, &call->era) && call->server->error_style && !modern)
        return mcp_fail_named(&call->failure, RPC_METHOD_NOT_FOUND,
                              call->server->error_style->unknown_method, call->method_name);
    if (!method_exists(method, &call->era))
        return mcp_fail(&call->failure, modern ? 404 : 200, RPC_METHOD_NOT_FOUND, NULL,
                        "there is no such method in revision %s",
                        mcp_revision_name(call->era.revision));
    return method->handle(call, out_result);
}

/* On stdio a served modern request settles the era of the process; asking what there is does not.
 */
static void pin_era(const struct mcp_origin *origin, const struct rpc_message *message,
                    const struct era_verdict *era)
{
    if (origin->stdio_client && (era->features & MCP_IS_MODERN) &&
        strcmp(message->method, "server/discover") != 0)
        origin->stdio_client->modern = true;
}

static void answer_accepted(struct mcp_answer *out)
{
    out->status = 202;
    out->body = NULL;
}

static bool is_hex(const char *s, size_t n)
{
    return strspn(s, "0123456789abcdef") >= n && strspn(s, "0") < n;
}

/* W3C trace context, version 00: "00-<32 hex>-<16 hex>-<2 hex>". Anything else stays out of the
 * log.
 */
static void read_trace(const json_t *params, char out[56])
{
    const char *t = json_get_string(json_object_get(params, "_meta"), "traceparent");

    if (t && strlen(t) == 55 && memcmp(t, "00-", 3) == 0 && t[35] == '-' && t[52] == '-' &&
        is_hex(t + 3, 32) && is_hex(t + 36, 16) && strspn(t + 53, "0123456789abcdef") == 2)
        memcpy(out, t, 56);
}

/* The list of tools is asked for by every client, long, and the same each time. */
static bool answer_as_text(const struct mcp_call *call, const json_t *result,
                           struct mcp_answer *out)
{
    const struct buf *text = NULL;

    if (call->origin->takes_text && call->method->handle == mcp_tools_list)
        text = mcp_lists_text(call->server, call->era.features, result);
    if (!text)
        return false;
    out->text = (struct buf)BUF_INIT(text->len + RPC_ID_MAX);
    rpc_result_text(call->id, text, &out->text);
    if (!buf_ok(&out->text))
        buf_clear(&out->text);
    return out->text.len > 0;
}

static void answer_result(struct mcp_call *call, json_t *take_result, struct mcp_answer *out)
{
    if (out->listen) {
        out->status = 200;
        out->body = take_result; /* the acknowledgement: a message of its own */
    } else {
        decorate(call, call->method, take_result);
        out->status = 200;
        if (answer_as_text(call, take_result, out))
            json_decref(take_result);
        else
            out->body = rpc_result_new(call->id, take_result);
    }
}

static void answer_request(struct mcp_call *call, const struct rpc_message *message,
                           struct mcp_answer *out)
{
    json_t *result = NULL;
    int rc;

    pin_era(call->origin, message, &call->era);
    read_trace(call->params, call->trace);
    memcpy(out->trace, call->trace, sizeof out->trace);
    rc = run_method(call, call->method, &result);
    if (call->cancelled) {
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

/* A response to something that we asked: the call that waits for it may be another worker's. */
static void answer_response(const struct mcp_call *call, const struct rpc_message *message,
                            const json_t *whole, struct mcp_answer *out)
{
    if (call->session && message->id)
        mcp_mailbox_deliver(call->server->sessions_fd, call->session->id, message->id, whole);
    answer_accepted(out);
}

static void answer_notification(struct mcp_call *call, struct mcp_answer *out)
{
    if (call->method && call->method->kind == RPC_NOTIFICATION && call->method->handle)
        call->method->handle(call, NULL);
    answer_accepted(out);
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

static void answer_message(const struct mcp_server *server, const struct mcp_origin *origin,
                           const struct rpc_message *message, const json_t *whole,
                           struct mcp_answer *out)
{
    const struct mcp_method *method = message->method ? mcp_method_find(message->method) : NULL;
    struct mcp_call call = {.server = server,
                            .origin = origin,
                            .id = message->id,
                            .params = message->params,
                            .method = method,
                            .method_name = message->method,
                            .answer = out};
    AUTO_MCP_FAILURE struct mcp_failure refusal = {0};
    AUTO_MCP_SESSION struct mcp_session session = {.record = NULL};

    if (method)
        out->method = method->name;
    if (era_decide(message, origin, method ? method->name_param : NULL, &call.era, &refusal) < 0 ||
        find_session(&call, message, &session, &refusal) < 0)
        answer_failure(message->id, &refusal, out);
    else if (message->kind == RPC_REQUEST)
        answer_request(&call, message, out);
    else if (message->kind == RPC_RESPONSE)
        answer_response(&call, message, whole, out);
    else
        answer_notification(&call, out);
    mcp_failure_clear(&call.failure);
}

static void answer_not_rpc(const struct rpc_message *message, const struct err *e,
                           struct mcp_answer *out)
{
    out->status = 400;
    out->body = rpc_error_new(message->id, RPC_INVALID_REQUEST, e->text, NULL);
}

static int check_batch_element(const json_t *element, size_t i, struct mcp_failure *f)
{
    struct rpc_message message = {0};
    struct err e = ERR_INIT;

    if (rpc_classify(element, &message, &e) < 0)
        return mcp_fail(f, 400, RPC_INVALID_REQUEST, NULL, "message %zu of the batch: %s", i + 1,
                        e.text);
    if (era_has_claim(&message))
        return mcp_fail(f, 400, RPC_INVALID_REQUEST, NULL,
                        "message %zu of the batch names a revision that has no batches", i + 1);
    if (message.kind == RPC_REQUEST && strcmp(message.method, "initialize") == 0)
        return mcp_fail(f, 400, RPC_INVALID_REQUEST, NULL,
                        "initialize must not be part of a batch");
    return 0;
}

/* A session's revision decides, else what the headers say. */
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

/* All or nothing: a batch with one wrong element is refused before anything of it has been done. */
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

static void answer_batch(const struct mcp_server *server, const struct mcp_origin *origin,
                         const json_t *batch, struct mcp_answer *out)
{
    AUTO_MCP_FAILURE struct mcp_failure refusal = {0};
    struct mcp_origin quiet = *origin; /* the answers come together, so nothing goes before */
    json_t *answers;
    size_t i;
    json_t *element;

    out->method = "batch";
    quiet.out = NULL;
    quiet.takes_text = false;
    if (check_batch(server, origin, batch, &refusal) < 0) {
        answer_failure(NULL, &refusal, out);
        return;
    }
    answers = json_array();
    json_array_foreach(batch, i, element)
    {
        struct mcp_answer one = {.method = "-", .detail = ""};
        struct rpc_message message = {0};
        struct err e = ERR_INIT;

        if (rpc_classify(element, &message, &e) == 0)
            answer_message(server, &quiet, &message, element, &one);
        if (one.body)
            json_array_append_new(answers, one.body);
    }
    out->status = 200;
    out->body = answers;
    if (json_array_size(answers) == 0) {
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
    else if (rpc_classify(message, &parsed, &e) < 0)
        answer_not_rpc(&parsed, &e, out);
    else
        answer_message(server, origin, &parsed, message, out);
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
        mcp_fail(&f, 400, RPC_PARSE_ERROR, NULL, "not JSON: %s", problem->text);
    /* MCP has an answer without an id be one without that member, JSON-RPC with null in it. */
    answer_failure(server->error_style ? json_null() : NULL, &f, out);
}
