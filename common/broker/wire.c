#include "config.h"

#include "common/broker/wire.h"

#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/rpc/json.h"

#include <string.h>

static json_t *text_new(struct run_text t)
{
    return t.data ? json_stringn(t.data, t.len) : json_null();
}

json_t *wire_run_encode(const struct run_request *r)
{
    json_auto_t *args = json_array();
    for (size_t i = 0; i < r->n_args; i++)
        json_array_append_new(args, text_new(r->args[i]));
    json_auto_t *env = json_array();
    for (size_t i = 0; i < r->n_env; i++)
        json_array_append_new(env, json_pack("[s, s]", r->env[i].name, r->env[i].value));

    json_t *object = json_object();
    json_object_set_new(object, "op", json_string("run"));
    json_object_set_new(object, "tenant", json_string(r->tenant));
    json_object_set_new(object, "conversation", json_string(r->conversation));
    json_object_set_new(object, "language", json_string(r->language));
    json_object_set_new(object, "code", text_new(r->code));
    json_object_set_new(object, "stdin", text_new(r->input));
    json_object_set_new(object, "network", json_boolean(r->network));
    json_object_set_new(object, "timeoutMs", json_integer((json_int_t)r->timeout_ms));
    json_object_set_new(object, "keepBytes", json_integer((json_int_t)r->keep_bytes));
    json_object_set(object, "args", args);
    json_object_set(object, "env", env);
    return object;
}

static struct run_text text_of(const json_t *value)
{
    if (!json_is_string(value))
        return (struct run_text){0};
    return (struct run_text){json_string_value(value), json_string_length(value)};
}

static int decode_args(const json_t *list, struct run_request *out, struct err *e)
{
    size_t n = json_array_size(list);
    struct run_text *args = mem_array(n + 1, sizeof *args);
    out->args = args;
    for (size_t i = 0; i < n; i++) {
        args[i] = text_of(json_array_get(list, i));
        if (!args[i].data || memchr(args[i].data, 0, args[i].len))
            return err_set(e, ERR_INVALID, "args: every argument must be a string without NUL");
    }
    out->n_args = n;
    return 0;
}

static int decode_env(const json_t *list, struct run_request *out, struct err *e)
{
    size_t n = json_array_size(list);
    struct run_env *env = mem_array(n + 1, sizeof *env);
    out->env = env;
    for (size_t i = 0; i < n; i++) {
        const json_t *pair = json_array_get(list, i);
        env[i].name = json_string_value(json_array_get(pair, 0));
        env[i].value = json_string_value(json_array_get(pair, 1));
        if (!env[i].name || !env[i].value || strchr(env[i].name, '=') || !*env[i].name)
            return err_set(e, ERR_INVALID, "environment: names and values must be strings");
    }
    out->n_env = n;
    return 0;
}

int wire_run_decode(const json_t *object, struct run_request *out, struct err *e)
{
    *out = (struct run_request){
        .tenant = json_get_string(object, "tenant"),
        .conversation = json_get_string(object, "conversation"),
        .language = json_get_string(object, "language"),
        .code = text_of(json_object_get(object, "code")),
        .input = text_of(json_object_get(object, "stdin")),
        .network = json_get_bool(object, "network", 0),
    };
    json_int_t timeout = json_get_integer(object, "timeoutMs", 0);
    json_int_t keep = json_get_integer(object, "keepBytes", 0);

    if (!out->tenant || !out->conversation || !out->language || !out->code.data || timeout < 0 ||
        keep < 0)
        return err_set(e, ERR_INVALID, "run: a required member is missing");
    out->timeout_ms = (uint64_t)timeout;
    out->keep_bytes = (uint64_t)keep;
    if (decode_args(json_object_get(object, "args"), out, e) < 0)
        return -1;
    return decode_env(json_object_get(object, "env"), out, e);
}

void wire_run_decoded_clear(struct run_request *request)
{
    free((void *)(uintptr_t)request->args);
    free((void *)(uintptr_t)request->env);
    *request = (struct run_request){0};
}

int wire_send(int fd, const json_t *message, int pass_fd, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(WIRE_MESSAGE_MAX);
    if (json_write(message, &text) < 0)
        return err_set(e, ERR_LIMIT, "the message to the other process is over %u bytes",
                       WIRE_MESSAGE_MAX);
    return sock_send_message(fd, text.data, text.len, pass_fd, e);
}

json_t *wire_recv(int fd, int *out_fd, struct deadline d, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(WIRE_MESSAGE_MAX);
    if (sock_recv_message(fd, &text, out_fd, d, e) < 0)
        return NULL;
    json_t *value = json_parse(buf_str(&text), text.len, JSON_MAX_DEPTH, e);
    if (value && !json_is_object(value)) {
        json_decref(value);
        err_set(e, ERR_PROTOCOL, "the message is not an object");
        return NULL;
    }
    return value;
}

json_t *wire_result_new(json_t *take_result)
{
    return json_pack("{s:o}", "result", take_result);
}

json_t *wire_error_new(const struct err *problem)
{
    json_t *text = json_from_bytes(problem->text, strlen(problem->text));
    return json_pack("{s:{s:s, s:o}}", "error", "kind", err_kind_name(problem->kind), "text", text);
}
