#include "config.h"

#include "common/rpc/rpc.h"

#include "common/rpc/json.h"

#include <string.h>

static int invalid(struct err *e, const char *what)
{
    return err_set(e, ERR_INVALID, "not a JSON-RPC 2.0 message: %s", what);
}

static int classify_call(const json_t *value, const json_t *raw_id, struct rpc_message *out,
                         struct err *e)
{
    out->kind = raw_id ? RPC_REQUEST : RPC_NOTIFICATION;
    out->method = json_get_string(value, "method");
    out->params = json_object_get(value, "params");
    if (!out->method || !*out->method)
        return invalid(e, "\"method\" must be a string that is not empty");
    if (out->params && !json_is_object(out->params))
        return invalid(e, "\"params\" must be an object");
    if (json_object_get(value, "result") || json_object_get(value, "error"))
        return invalid(e, "\"method\" stands beside \"result\" or \"error\"");
    return 0;
}

static int classify_response(const json_t *value, struct rpc_message *out, struct err *e)
{
    out->kind = RPC_RESPONSE;
    out->result = json_object_get(value, "result");
    out->error = json_object_get(value, "error");
    if (!out->result && !out->error)
        return invalid(e, "\"method\" is missing");
    if (out->result && out->error)
        return invalid(e, "it has both \"result\" and \"error\"");
    /* An error may answer something whose id could not be read, so only a result needs one. */
    if (out->result && !out->id)
        return invalid(e, "\"id\" is missing");
    if (out->error &&
        (!json_is_object(out->error) || !json_is_integer(json_object_get(out->error, "code")) ||
         !json_is_string(json_object_get(out->error, "message"))))
        return invalid(e, "\"error\" must be an object with an integer \"code\" and a \"message\"");
    return 0;
}

int rpc_classify(const json_t *value, struct rpc_message *out, struct err *e)
{
    *out = (struct rpc_message){.kind = RPC_REQUEST};
    if (!json_is_object(value))
        return invalid(e, "it must be an object");
    const json_t *raw_id = json_object_get(value, "id");
    if (json_is_string(raw_id) || json_is_integer(raw_id))
        out->id = raw_id;
    const char *version = json_get_string(value, "jsonrpc");
    if (!version || strcmp(version, "2.0") != 0)
        return invalid(e, "\"jsonrpc\" must be \"2.0\"");
    if (raw_id && !out->id)
        return invalid(e, "\"id\" must be a string or an integer");
    if (json_object_get(value, "method"))
        return classify_call(value, raw_id, out, e);
    return classify_response(value, out, e);
}

json_t *rpc_notification_new(const char *method, json_t *take_params)
{
    return json_pack("{s:s, s:s, s:o*}", "jsonrpc", "2.0", "method", method, "params", take_params);
}

/* A copy of the id: the request's tree and the answer's have one owner each. */
json_t *rpc_result_new(const json_t *id, json_t *take_result)
{
    return json_pack("{s:s, s:o*, s:o}", "jsonrpc", "2.0", "id", json_deep_copy(id), "result",
                     take_result);
}

json_t *rpc_error_new(const json_t *id, int code, const char *message, json_t *take_data)
{
    return json_pack("{s:s, s:o*, s:{s:i, s:o, s:o*}}", "jsonrpc", "2.0", "id", json_deep_copy(id),
                     "error", "code", code, "message", json_from_bytes(message, strlen(message)),
                     "data", take_data);
}

void rpc_result_text(const json_t *id, const struct buf *result, struct buf *out)
{
    buf_add_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    json_write(id, out);
    buf_add_str(out, ",\"result\":");
    buf_add(out, result->data, result->len);
    buf_add_char(out, '}');
}
