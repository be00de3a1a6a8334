#include "config.h"

#include "common/protocol/client_runs.h"

#include "common/base/auto.h"
#include "common/protocol/client_call.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

json_t *broker_run(const struct broker_client *c, const struct run_request *request,
                   const struct broker_run_options *how, struct err *e)
{
    static const struct broker_run_options plain = {0};
    if (!how)
        how = &plain;
    struct run_options options = how->options;
    options.live = how->callbacks.live != NULL;
    options.opened = how->opened != NULL;
    json_auto_t *head = wire_run_head_new(request, &options);
    json_auto_t *body = wire_run_body_new(request);
    const struct client_call call = {.client = c,
                                     .head = head,
                                     .pass_fd = -1,
                                     .body = body,
                                     .cancel_on_hang_up = true,
                                     .callbacks = &how->callbacks,
                                     .out_fds = how->opened};
    return client_call(&call, e);
}

static json_t *run_message(enum broker_op op, const char *tenant, const char *run_id)
{
    return json_pack("{s:s, s:s, s:s}", "op", op_name(op), "tenant", tenant, "runId", run_id);
}

/* A run may end while its supervisor is asked, and what it leaves is found by asking again. */
static json_t *ask_about_run(const struct broker_client *c, const json_t *head,
                             const struct broker_callbacks *callbacks, struct err *e)
{
    const struct client_call call = {
        .client = c, .head = head, .pass_fd = -1, .callbacks = callbacks};
    struct err first = ERR_INIT;
    json_t *result = client_call(&call, &first);
    if (result)
        return result;
    if (first.kind == ERR_LOST)
        return client_call(&call, e);
    *e = first;
    return NULL;
}

json_t *broker_get_run(const struct broker_client *c, const char *tenant, const char *run_id,
                       const struct broker_poll_options *look, struct err *e)
{
    json_auto_t *head = run_message(OP_GET_RUN, tenant, run_id);
    if (look->since_given)
        json_object_set_new(head, "sinceByte", json_integer((json_int_t)look->since_byte));
    json_object_set_new(head, "waitMs", json_integer((json_int_t)look->wait_ms));
    json_object_set_new(head, "live", json_boolean(look->callbacks.live != NULL));
    return ask_about_run(c, head, &look->callbacks, e);
}

json_t *broker_cancel_run(const struct broker_client *c, const char *tenant, const char *run_id,
                          struct err *e)
{
    json_auto_t *head = run_message(OP_CANCEL_RUN, tenant, run_id);
    return ask_about_run(c, head, NULL, e);
}

json_t *broker_list_runs(const struct broker_client *c, const char *tenant,
                         const char *conversation, struct err *e)
{
    json_auto_t *head = json_pack("{s:s, s:s}", "op", op_name(OP_LIST_RUNS), "tenant", tenant);
    if (conversation)
        json_object_set_new(head, "conversationId", json_string(conversation));
    return client_ask(c, head, -1, NULL, e);
}

static json_t *file_message(enum broker_op op, const char *tenant, const char *conversation,
                            const char *name)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "op", op_name(op), "tenant", tenant, "conversationId",
                     conversation, "name", name);
}

json_t *broker_put_file(const struct broker_client *c, const char *tenant, const char *conversation,
                        const char *name, int fd, size_t size, bool replace, struct err *e)
{
    json_auto_t *message = file_message(OP_PUT, tenant, conversation, name);
    json_object_set_new(message, "size", json_integer((json_int_t)size));
    json_object_set_new(message, "replace", json_boolean(replace));
    return client_ask(c, message, fd, NULL, e);
}

int broker_open_file(const struct broker_client *c, const char *tenant, const char *conversation,
                     const char *name, struct stat *out, struct err *e)
{
    json_auto_t *message = file_message(OP_OPEN, tenant, conversation, name);
    AUTO_FD int fd = -1;
    json_auto_t *result = client_ask(c, message, -1, &fd, e);
    if (!result)
        return -1;
    if (fd < 0)
        return err_set(e, ERR_PROTOCOL, "the broker passed no file");
    if (fstat(fd, out) < 0)
        return err_errno(e, "looking at the file");
    return TAKE_FD(fd);
}

json_t *broker_list_files(const struct broker_client *c, const char *tenant, const json_t *after,
                          size_t max, struct err *e)
{
    json_auto_t *message = json_pack("{s:s, s:s, s:I}", "op", op_name(OP_LIST), "tenant", tenant,
                                     "max", (json_int_t)max);
    if (after) {
        json_t *copy = json_deep_copy(after);
        json_object_set_new(message, "after", copy);
    }
    return client_ask(c, message, -1, NULL, e);
}

json_t *broker_names(const struct broker_client *c, const char *tenant, const char *conversation,
                     const char *prefix, size_t max, struct err *e)
{
    json_auto_t *message = json_pack("{s:s, s:s, s:s, s:I}", "op", op_name(OP_NAMES), "tenant",
                                     tenant, "prefix", prefix, "max", (json_int_t)max);
    if (conversation)
        json_object_set_new(message, "conversationId", json_string(conversation));
    return client_ask(c, message, -1, NULL, e);
}

static json_t *simple_call(const struct broker_client *c, enum broker_op op, struct err *e)
{
    json_auto_t *message = json_pack("{s:s}", "op", op_name(op));
    return client_ask(c, message, -1, NULL, e);
}

json_t *broker_status(const struct broker_client *c, struct err *e)
{
    return simple_call(c, OP_STATUS, e);
}

json_t *broker_runners(const struct broker_client *c, struct err *e)
{
    return simple_call(c, OP_RUNNERS, e);
}

int broker_ping(const struct broker_client *c, struct err *e)
{
    json_auto_t *result = simple_call(c, OP_PING, e);
    return result ? 0 : -1;
}
