#include "config.h"

#include "common/protocol/client_runs.h"

#include "common/protocol/ops.h"
#include "common/protocol/run_body.h"
#include "common/rpc/json.h"

json_t *broker_run(const struct broker_client *c, const struct run_request *request,
                   const struct broker_run_options *how, struct err *e)
{
    static const struct broker_run_options plain = {0};
    if (!how)
        how = &plain;
    struct run_options options = how->options;
    options.live = how->callbacks.live != NULL;
    options.open_files = how->open_files != NULL;
    json_auto_t *head = wire_run_head_new(request, &options);
    client_head_add_limits(head);
    AUTO_BUF struct buf body = BUF_INIT(WIRE_MESSAGE_MAX);
    const struct client_call call = {.client = c,
                                     .head = head,
                                     .pass_fd = -1,
                                     .body = &body,
                                     .cancel_on_hang_up = true,
                                     .callbacks = &how->callbacks,
                                     .out_fds = how->open_files};
    return run_body_write(request, NULL, &body, e) < 0 ? NULL : client_call(&call, e);
}

json_t *broker_get_run(const struct broker_client *c, const char *run_id,
                       const struct broker_poll_options *options, struct err *e)
{
    json_auto_t *head = client_head_new(c, OP_GET_RUN, "{s:s, s:I, s:b, s:b, s:I}", "runId", run_id,
                                        "waitMs", (json_int_t)options->wait_ms, "toEnd",
                                        options->to_end, "live", options->callbacks.live != NULL,
                                        "newMax", (json_int_t)options->new_max);
    const struct client_call call = {
        .client = c, .head = head, .pass_fd = -1, .callbacks = &options->callbacks};

    if (options->since_given)
        json_object_set_new(head, "sinceByte", json_integer((json_int_t)options->since_byte));
    return client_call(&call, e);
}

json_t *broker_cancel_run(const struct broker_client *c, const char *run_id, struct err *e)
{
    return client_ask(c, e, OP_CANCEL_RUN, "{s:s}", "runId", run_id);
}

json_t *broker_list_runs(const struct broker_client *c, const char *conversation, struct err *e)
{
    return client_ask(c, e, OP_LIST_RUNS, "{s:s*}", "conversationId", conversation);
}

json_t *broker_status(const struct broker_client *c, struct err *e)
{
    return client_ask(c, e, OP_STATUS, "{}");
}

json_t *broker_runners(const struct broker_client *c, struct err *e)
{
    return client_ask(c, e, OP_RUNNERS, "{}");
}

int broker_ready(const struct broker_client *c, struct err *e)
{
    json_auto_t *result = client_ask(c, e, OP_READY, "{}");
    return result ? 0 : -1;
}

int broker_ping(const struct broker_client *c, struct err *e)
{
    json_auto_t *result = client_ask(c, e, OP_PING, "{}");
    return result ? 0 : -1;
}
