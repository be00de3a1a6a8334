#include "config.h"

#include "common/mcp/call.h"

#include "common/base/log.h"
#include "common/base/network.h"
#include "common/base/utf8.h"
#include "common/mcp/features/content.h"
#include "common/rpc/json.h"

#include <stdio.h>
#include <string.h>

#define NAME_SHOWN_MAX 100

__attribute__((format(printf, 5, 0))) static int
fail_va(struct mcp_failure *f, int status, int code, json_t *take_data, const char *fmt, va_list ap)
{
    vsnprintf(f->message, sizeof(f->message), fmt, ap);
    /* The cut at the end may have split a character, and JSON takes whole ones only. */
    f->message[utf8_cut(f->message, strlen(f->message), sizeof(f->message) - 4)] = '\0';
    f->status = status;
    f->code = code;
    json_decref(f->data);
    f->data = take_data;
    return -1;
}

int mcp_fail(struct mcp_failure *f, int status, int code, json_t *take_data, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fail_va(f, status, code, take_data, fmt, ap);
    va_end(ap);
    return -1;
}

int mcp_fail_params(struct mcp_call *call, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fail_va(&call->failure, 200, RPC_INVALID_PARAMS, NULL, fmt, ap);
    va_end(ap);
    return -1;
}

int mcp_fail_named(struct mcp_failure *f, int code, const char *text, const char *name)
{
    AUTO_BUF struct buf cut = BUF_INIT(NAME_SHOWN_MAX);
    AUTO_BUF struct buf clean = BUF_INIT(3 * NAME_SHOWN_MAX);

    buf_add(&cut, name, utf8_cut(name, strlen(name), NAME_SHOWN_MAX));
    content_clean_name(buf_str(&cut), &clean);
    return mcp_fail(f, 200, code, NULL, "%s%s", text, buf_str(&clean));
}

int mcp_fail_err(struct mcp_call *call, const struct err *e)
{
    bool theirs = e->kind == ERR_INVALID || e->kind == ERR_LIMIT || e->kind == ERR_DENIED ||
                  e->kind == ERR_NOT_FOUND;

    log_reason(err_kind_name(e->kind), NULL);
    return mcp_fail(&call->failure, 200, theirs ? RPC_INVALID_PARAMS : RPC_INTERNAL_ERROR, NULL,
                    "%s", e->text);
}

void mcp_failure_clear(struct mcp_failure *f)
{
    json_decref(f->data);
    f->data = NULL;
    f->status = 0;
}

const char *mcp_failure_reason(const struct mcp_failure *f)
{
    static const struct {
        int code;
        const char *reason;
    } reasons[] = {{RPC_PARSE_ERROR, "not_json"},
                   {RPC_INVALID_REQUEST, "request"},
                   {RPC_METHOD_NOT_FOUND, "unknown_method"},
                   {RPC_INVALID_PARAMS, "params"},
                   {MCP_RESOURCE_NOT_FOUND, "not_found"},
                   {MCP_HEADER_MISMATCH, "header"},
                   {MCP_MISSING_CAPABILITY, "capability"},
                   {MCP_UNSUPPORTED_VERSION, "version"}};

    if (f->code == RPC_INVALID_REQUEST && f->status == 404)
        return "session";
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].code == f->code)
            return reasons[i].reason;
    return "error";
}

int mcp_refuse_cursor(struct mcp_call *call)
{
    const json_t *cursor = json_object_get(call->params, "cursor");

    if (!cursor || json_is_null(cursor) ||
        (json_is_string(cursor) && json_string_length(cursor) == 0))
        return 0;
    return mcp_fail_params(call, "unknown cursor");
}

unsigned mcp_features_here(const struct mcp_server *server, const struct mcp_origin *origin,
                           unsigned features)
{
    bool in_text = server->in_text && !origin->structured;

    if (origin->network && network_named(origin->network) == NETWORK_NONE)
        features |= MCP_WITHOUT_NETWORK;
    return in_text ? (features & ~(unsigned)MCP_CAN_STRUCTURE) | MCP_IN_TEXT : features;
}

const json_t *mcp_call_capabilities(const struct mcp_call *call)
{
    if (call->era.features & MCP_IS_MODERN)
        return json_object_get(json_object_get(call->params, "_meta"), MCP_META_CAPABILITIES);
    if (call->session)
        return json_object_get(call->session->record, "capabilities");
    return call->origin->stdio_client ? call->origin->stdio_client->capabilities : NULL;
}

/* ---- what was named ---- */

static json_t *add_named(const json_t *now, void *ctx, struct err *e)
{
    json_t *values = json_is_array(now) ? json_copy((json_t *)(uintptr_t)now) : json_array();

    (void)e;
    json_array_remove(values, json_index_of(values, ctx)); /* ignored behind the end */
    json_array_append_new(values, json_string(ctx));
    if (json_array_size(values) > MCP_NAMED_MAX)
        json_array_remove(values, 0);
    return values;
}

const json_t *mcp_call_named(const struct mcp_call *call)
{
    if (call->origin->stdio_client)
        return call->origin->stdio_client->named;
    return call->session ? json_object_get(call->session->record, "named") : NULL;
}

void mcp_note_named(const struct mcp_call *call)
{
    struct mcp_stdio_client *stdio_client = call->origin->stdio_client;
    const char *name = call->server->named_argument;
    const char *value = name ? json_get_string(json_object_get(call->params, "arguments"), name)
                             : NULL;
    const json_t *known = mcp_call_named(call);
    struct err e = ERR_INIT;

    if (!value || !*value || strlen(value) > MCP_NAMED_LEN ||
        json_index_of(known, value) < json_array_size(known))
        return;
    if (stdio_client) {
        json_t *values = add_named(known, (void *)(uintptr_t)value, &e);
        json_decref(stdio_client->named);
        stdio_client->named = values;
    } else if (call->session &&
               !*call->session->node) { /* a record that is full keeps what it has */
        mcp_session_set(call->server, call->session, "named", add_named, (void *)(uintptr_t)value,
                        &e);
    }
}
