/* get_sandbox_status: how the sandboxes that stay are. */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_psandboxes.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/sandboxes/sandbox_rows.h"

struct get_sandbox_status {
    const char *psandbox_id, *conversation;
};

static const struct arg_row arguments[] = {
    {.name = "sandboxId",
     .type = ARG_STRING,
     .offset = offsetof(struct get_sandbox_status, psandbox_id),
     .max = PSANDBOX_ID_MAX,
     .help = "Only this one."},
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct get_sandbox_status, conversation),
     .max = CONVERSATION_MAX,
     .help = "Only those of this conversation."},
    {0},
};

static char *describe(void *app)
{
    (void)app;
    return mem_strdup("Tells which sandboxes that stay there are (create_sandbox, run_code with "
                      "session), the newest first, and what became of those that ended lately.");
}

static json_t *input_schema(void *app)
{
    return args_schema(arguments, app);
}

static int get(const struct mcp_tool_call *c, const struct get_sandbox_status *x,
               struct mcp_result *out, struct err *e)
{
    const struct broker_client client = tools_client(c->app, c->cancel_fd);

    out->structured = broker_psandbox_status(&client, c->tenant, x->psandbox_id, x->conversation,
                                             e);
    return out->structured ? 0 : -1;
}

static void call(const struct mcp_tool_call *c, struct mcp_result *out)
{
    struct get_sandbox_status x = {0};
    struct err e = ERR_INIT;

    if (args_fill(arguments, c->app, c->arguments, &x, &e) < 0 || get(c, &x, out, &e) < 0)
        report_failure(out, &e);
}

const struct mcp_tool tool_get_sandbox_status = {
    .name = "get_sandbox_status",
    .title = "Look at sandboxes",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = "{\"type\":\"object\",\"required\":[\"sandboxes\"],\"properties\":{"
                     "\"sandboxes\":{\"type\":\"array\",\"items\":" SANDBOX_ROW_SCHEMA "}}}",
    .describe = describe,
    .input_schema = input_schema,
    .call = call,
};
