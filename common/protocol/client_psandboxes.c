/* Calls about persistent sandboxes (client_runs.h). */
#include "config.h"

#include "common/protocol/client_runs.h"

#include "common/base/tenants.h"
#include "common/protocol/run_body.h"
#include "common/rpc/json.h"

#include <string.h>

json_t *broker_create_psandbox(const struct broker_client *c,
                               const struct broker_psandbox_request *want, struct err *e)
{
    return client_ask(c, e, OP_CREATE_PSANDBOX, "{s:s, s:i, s:I, s:I, s:s*, s:s*, s:s*}",
                      "conversationId", want->conversation, "network", want->network, "idleMs",
                      (json_int_t)want->idle_ms, "totalMs", (json_int_t)want->total_ms, "language",
                      want->language, "image", want->image, "alias", want->alias);
}

json_t *broker_exec(const struct broker_client *c, const struct broker_exec_want *want,
                    const struct broker_callbacks *callbacks, struct err *e)
{
    /* As the wire knows them, commands are a run's arguments. */
    const struct run_request request = {.input = want->input,
                                        .args = want->commands,
                                        .n_args = want->n,
                                        .env = want->env,
                                        .n_env = want->n_env};
    json_auto_t *head = client_head_new(
        c, OP_EXEC, "{s:s*, s:I, s:I, s:b, s:b, s:b, s:I, s:b}", "sandboxId", want->psandbox_id,
        "timeoutMs", (json_int_t)want->timeout_ms, "waitMs", (json_int_t)want->options.wait_ms,
        "background", want->options.background, "live", callbacks && callbacks->live,
        "cancelOnDisconnect", want->options.cancel_on_disconnect, "keepOver",
        (json_int_t)want->options.keep_over, "stopAtFailure", want->stop_at_failure);
    AUTO_BUF struct buf body = BUF_INIT(WIRE_MESSAGE_MAX);
    const struct client_call call = {.client = c,
                                     .head = head,
                                     .pass_fd = -1,
                                     .body = &body,
                                     .cancel_on_hang_up = true,
                                     .callbacks = callbacks};
    return run_body_write(&request, want->cwd, &body, e) < 0 ? NULL : client_call(&call, e);
}

json_t *broker_psandbox_status(const struct broker_client *c, const char *psandbox_id,
                               const char *conversation, struct err *e)
{
    return client_ask(c, e, OP_PSANDBOX_STATUS, "{s:s*, s:s*}", "sandboxId", psandbox_id,
                      "conversationId", conversation);
}

json_t *broker_close_psandbox(const struct broker_client *c, const char *psandbox_id, struct err *e)
{
    return client_ask(c, e, OP_CLOSE_PSANDBOX, "{s:s*}", "sandboxId", psandbox_id);
}

json_t *broker_psandbox_logs(const struct broker_client *c, const char *psandbox_id, struct err *e)
{
    return client_ask(c, e, OP_PSANDBOX_LOGS, "{s:s*}", "sandboxId", psandbox_id);
}

/* Whether the row is of a live session in that language (NULL: any). */
static bool is_session(const json_t *row, const char *language)
{
    const char *its = json_get_string(row, "language");
    const char *status = json_get_string(row, "status");

    return json_get_bool(row, "session", 0) && status &&
           (strcmp(status, "running") == 0 || strcmp(status, "paused") == 0) &&
           (!language || (its && tenants_list_has(its, language)));
}

json_t *broker_reset_session(const struct broker_client *c, const char *conversation,
                             const char *language, struct err *e)
{
    json_auto_t *status = broker_psandbox_status(c, NULL, conversation, e);
    json_auto_t *closed = json_array();
    size_t i;
    json_t *row;

    if (!status)
        return NULL;
    json_array_foreach(json_object_get(status, "sandboxes"), i, row)
    {
        if (!is_session(row, language))
            continue;
        json_t *end = client_ask(c, e, OP_CLOSE_PSANDBOX, "{s:s*, s:s*}", "sandboxId",
                                 json_get_string(row, "sandboxId"), "language", language);
        if (!end)
            return NULL;
        json_array_append_new(closed, end);
    }
    return json_pack("{s:O}", "sessions", closed);
}
