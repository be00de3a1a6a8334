/*
 * JSON-RPC 2.0 envelopes: what kind of message a JSON value is, and making answers. Knows nothing
 * of HTTP or MCP.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#include <jansson.h>

/* JSON-RPC 2.0 section 5.1. */
enum rpc_code {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_METHOD_NOT_FOUND = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL_ERROR = -32603,
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

/* A view into a parsed value; everything is borrowed from it. */
struct rpc_message {
    enum rpc_kind kind;
    const json_t *id;     /* string or integer; NULL for notifications */
    const char *method;   /* NULL for responses */
    const json_t *params; /* object, or NULL when absent */
    const json_t *result; /* of responses */
    const json_t *error;  /* of responses */
};

/*
 * Classifies value. ERR_INVALID, naming the member, when it is not a JSON-RPC 2.0 message as MCP
 * allows it: "jsonrpc" must be "2.0", id a string or an integer (never null), method a string,
 * params an object, a response has exactly one of result and error. *out's id is set whenever the
 * value has a usable one, also on failure, so that the error can name it.
 */
int rpc_classify(const json_t *value, struct rpc_message *out, struct err *e);

/* {"jsonrpc":"2.0","method":method,"params":params}; takes params (NULL: none). */
json_t *rpc_notification_new(const char *method, json_t *take_params);

/* {"jsonrpc":"2.0","id":id,"result":result}; takes result. */
json_t *rpc_result_new(const json_t *id, json_t *take_result);

/* The same as text, of a result that is text already; check buf_ok(out). */
void rpc_result_text(const json_t *id, const struct buf *result, struct buf *out);

/* {"jsonrpc":"2.0","id":id,"error":{code,message,data}}; without "id" when id is NULL; takes data
 * (may be NULL). */
json_t *rpc_error_new(const json_t *id, int code, const char *message, json_t *take_data);
