/* close_sandbox: ends a sandbox that stays. */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_psandboxes.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/sandboxes/sandbox_rows.h"
#include "common/tools/schemas.h"

struct close_sandbox {
    const char *psandbox_id;
};

static const struct arg_row close_sandbox_arguments[] = {
    {.name = "sandboxId",
     .type = ARG_STRING,
     .offset = offsetof(struct close_sandbox, psandbox_id),
     .required = true,
     .max = PSANDBOX_ID_MAX,
     .help = SANDBOX_ID_HELP},
    {0},
};

static int close_psandbox(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                          struct err *e)
{
    const struct close_sandbox *x = arguments;
    const struct broker_client client = tools_client(c->app, c->cancel_fd);

    out->structured = broker_close_psandbox(&client, c->tenant, x->psandbox_id, e);
    return out->structured ? 0 : -1;
}

const struct mcp_tool tool_close_sandbox = {
    .name = "close_sandbox",
    .title = "Close a sandbox",
    .description = "Closes a sandbox that create_sandbox made: everything that runs in it ends, "
                   "files outside /data are gone, those in /data stay. One that has ended "
                   "already is not changed: the answer says how it ended.",
    .hints = {.destructive = true, .idempotent = true},
    .output_schema = schema_sandbox,
    .arguments = close_sandbox_arguments,
    .arguments_size = sizeof(struct close_sandbox),
    .run = close_psandbox,
};
