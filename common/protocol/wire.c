#include "config.h"

#include "common/protocol/wire.h"

#include "common/base/log.h"
#include "common/base/sock.h"
#include "common/protocol/ops.h"
#include "common/rpc/json.h"

#include <string.h>
#include <sys/socket.h>

#define FRAME_HEADER 4

static const char *const status_names[] = {
    [RUN_RUNNING] = "running",
    [RUN_OK] = "ok",
    [RUN_ERROR] = "error",
    [RUN_TIMEOUT] = "timeout",
    [RUN_OUT_OF_MEMORY] = "out_of_memory",
    [RUN_OUTPUT_LIMIT] = "output_limit",
    [RUN_DISK_LIMIT] = "disk_limit",
    [RUN_KILLED] = "killed",
    [RUN_BUSY] = "busy",
    [RUN_CANCELLED] = "cancelled",
    [RUN_LOST] = "lost",
};

bool run_needs_new(const struct run_request *request)
{
    return request->network != NETWORK_NONE || request->index;
}

const char *run_status_name(enum run_status s)
{
    return status_names[s];
}

static enum network_tier tier_of(const json_t *head, const char *name)
{
    json_int_t tier = json_get_integer(head, name, NETWORK_NONE);

    return tier < NETWORK_NONE || tier > NETWORK_LAN ? NETWORK_LAN : (enum network_tier)tier;
}

enum network_tier wire_network(const json_t *head)
{
    return tier_of(head, "network");
}

bool wire_network_suits(const json_t *head, enum network_tier session)
{
    enum network_tier wanted = wire_network(head);

    return wanted != NETWORK_NONE ? session == wanted : session <= tier_of(head, "sessionNetwork");
}

json_t *wire_run_head_new(const struct run_request *r, const struct run_options *m)
{
    json_t *head = op_head_new(
        m->session ? OP_SESSION : OP_RUN,
        "{s:s*, s:s*, s:s*, s:i, s:b, s:b, s:I, s:I, s:I, s:b, s:b, s:b, s:b, s:b, s:I}", "tenant",
        r->tenant, "conversationId", r->conversation, "language", r->language, "network",
        r->network, "singleUse", r->single_use, "index", r->index, "timeoutMs",
        (json_int_t)r->timeout_ms, "keepBytes", (json_int_t)r->keep_bytes, "waitMs",
        (json_int_t)m->wait_ms, "background", m->background, "live", m->live, "detach", m->detach,
        "cancelOnDisconnect", m->cancel_on_disconnect, "openFiles", m->open_files, "keepOver",
        (json_int_t)m->keep_over);
    json_t *imports = m->imports ? json_array() : NULL;

    /* The names choose among warm containers: the first suffice. */
    for (size_t i = 0; i < json_array_size(m->imports) && i < WIRE_IMPORTS_MAX; i++)
        json_array_append(imports, json_array_get(m->imports, i));
    if (imports)
        json_object_set_new(head, "imports", imports);
    if (m->session)
        json_object_set_new(head, "sessionNetwork", json_integer(m->session_network));
    return head;
}

static int decode_imports(const json_t *list, const json_t **out, struct err *e)
{
    size_t i;
    json_t *name;
    *out = list;
    if (!list)
        return 0;
    if (!json_is_array(list) || json_array_size(list) > WIRE_IMPORTS_MAX)
        return err_set(e, ERR_INVALID, "imports: at most %d names", WIRE_IMPORTS_MAX);
    json_array_foreach(list, i, name)
    {
        if (!json_is_string(name))
            return err_set(e, ERR_INVALID, "imports: every name must be a string");
    }
    return 0;
}

int wire_run_head_decode(const json_t *head, struct run_request *out, struct run_options *options,
                         struct err *e)
{
    json_int_t timeout = json_get_integer(head, "timeoutMs", 0);
    json_int_t keep = json_get_integer(head, "keepBytes", 0);
    json_int_t wait = json_get_integer(head, "waitMs", 0);
    json_int_t keep_over = json_get_integer(head, "keepOver", 0);

    *out = (struct run_request){
        .tenant = json_get_string(head, "tenant"),
        .conversation = json_get_string(head, "conversationId"),
        .language = json_get_string(head, "language"),
        .network = wire_network(head),
        .single_use = json_get_bool(head, "singleUse", 0),
        .index = json_get_bool(head, "index", 0),
        .timeout_ms = (uint64_t)timeout,
        .keep_bytes = (uint64_t)keep,
    };
    *options = (struct run_options){
        .wait_ms = (uint64_t)wait,
        .background = json_get_bool(head, "background", 0),
        .live = json_get_bool(head, "live", 0),
        .detach = json_get_bool(head, "detach", 0),
        .cancel_on_disconnect = json_get_bool(head, "cancelOnDisconnect", 0),
        .open_files = json_get_bool(head, "openFiles", 0),
        .keep_over = (uint64_t)keep_over,
    };
    if (timeout < 0 || keep < 0 || wait < 0 || keep_over < 0)
        return err_set(e, ERR_INVALID, "timeoutMs, keepBytes, waitMs or keepOver is negative");
    if (op_of(head) != OP_EXEC && (!out->tenant || !out->conversation || !out->language))
        return err_set(e, ERR_INVALID, "run: a required member is missing");
    return decode_imports(json_object_get(head, "imports"), &options->imports, e);
}

json_t *wire_hand_new(const struct handed_call *call, const char *run_id)
{
    /* O: the head stays the caller's. */
    return json_pack("{s:s, s:O, s:I, s:s, s:s*, s:s*}", "do", "hand", "head", call->head,
                     "queueMs", (json_int_t)call->queue_ms, "runId", run_id, "imageId",
                     call->image_id, "sandboxDir", call->sandbox_dir);
}

static int write_text(const json_t *message, struct buf *out, struct err *e)
{
    if (json_write(message, out) < 0)
        return err_set(e, ERR_LIMIT, "the message to the other process is over %u bytes",
                       WIRE_MESSAGE_MAX);
    return 0;
}

int wire_send(int fd, const json_t *message, int pass_fd, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(WIRE_MESSAGE_MAX);
    if (write_text(message, &text, e) < 0)
        return -1;
    return sock_send_message(fd, text.data, text.len, pass_fd, e);
}

int wire_post(int fd, const json_t *message, int pass_fd, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(WIRE_MESSAGE_MAX);
    if (write_text(message, &text, e) < 0)
        return -1;
    return sock_post_message(fd, text.data, text.len, pass_fd, e);
}

int wire_frame(const json_t *message, struct buf *out, struct err *e)
{
    size_t at = out->len;
    buf_add_u32(out, 0);
    if (write_text(message, out, e) < 0)
        return -1;
    u32_put(out->data + at, (uint32_t)(out->len - at - FRAME_HEADER));
    return 0;
}

json_t *wire_parse(const struct buf *text, struct err *e)
{
    json_t *value = json_parse(buf_str(text), text->len, JSON_MAX_DEPTH, e);
    if (value && !json_is_object(value)) {
        json_decref(value);
        err_set(e, ERR_PROTOCOL, "the message is not an object");
        return NULL;
    }
    return value;
}

json_t *wire_recv(int fd, int *out_fd, struct deadline d, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(WIRE_MESSAGE_MAX);
    if (sock_recv_message(fd, &text, out_fd, d, e) < 0)
        return NULL;
    return wire_parse(&text, e);
}

json_t *wire_result_new(json_t *take_result)
{
    return json_pack("{s:o}", "result", take_result);
}

json_t *wire_error_new(const struct err *problem)
{
    json_t *text = json_from_bytes(problem->text, strlen(problem->text));
    return json_pack("{s:{s:s, s:i, s:o}}", "error", "kind", err_kind_name(problem->kind), "errno",
                     problem->sys, "text", text);
}

int wire_error_take(const json_t *error, struct err *e)
{
    const char *kind = json_get_string(error, "kind"), *text = json_get_string(error, "text");
    err_set(e, err_kind_parse(kind ? kind : ""), "%s", text ? text : "the broker failed");
    e->sys = (int)json_get_integer(error, "errno", 0);
    return -1;
}

void reply_send(int take_fd, json_t *take_reply)
{
    struct err e = ERR_INIT;

    if (wire_post(take_fd, take_reply, -1, &e) < 0)
        log_debug("the caller left before the answer: %s", e.text);
    json_decref(take_reply);
    shutdown(take_fd, SHUT_RDWR);
    auto_close_fd(&take_fd);
}

void reply_send_error(int take_fd, const struct err *why)
{
    reply_send_refusal(take_fd, why, 0);
}

void reply_send_refusal(int take_fd, const struct err *why, int64_t retry_ms)
{
    json_t *reply = wire_error_new(why);

    if (retry_ms > 0)
        json_object_set_new(json_object_get(reply, "error"), "retryAfterMs",
                            json_integer(retry_ms));
    reply_send(take_fd, reply);
}
