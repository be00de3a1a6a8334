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
#include "common/tools/schemas.h"

struct get_sandbox_status {
    const char *psandbox_id, *conversation;
};

static const struct arg_row get_sandbox_status_arguments[] = {
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

static int get(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
               struct err *e)
{
    const struct get_sandbox_status *x = arguments;
    const struct broker_client client = tools_client(c->app, c->cancel_fd);

    out->structured = broker_psandbox_status(&client, c->tenant, x->psandbox_id, x->conversation,
                                             e);
    return out->structured ? 0 : -1;
}

const struct mcp_tool tool_get_sandbox_status = {
    .name = "get_sandbox_status",
    .title = "Look at sandboxes",
    .description = "Tells which sandboxes that stay there are (create_sandbox, run_code with "
                   "session), the newest first, and what became of those that ended lately.",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = schema_get_sandbox_status,
    .arguments = get_sandbox_status_arguments,
    .arguments_size = sizeof(struct get_sandbox_status),
    .run = get,
};
