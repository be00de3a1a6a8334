/* reset_session: forgets the variables that run_code with session keeps. */
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

#define LANGUAGE_MAX 64

struct reset_session {
    const char *conversation, *language;
};

static const struct arg_row reset_session_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct reset_session, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = "The conversation whose variables are to be forgotten."},
    {.name = "language",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct reset_session, language),
     .max = LANGUAGE_MAX,
     .help = "Only those of this language.",
     .choices = runners_languages},
    {0},
};

static int reset(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                 struct err *e)
{
    const struct reset_session *x = arguments;
    const struct broker_client client = tools_client(c->app, c->cancel_fd);

    out->structured = broker_reset_session(&client, c->tenant, x->conversation, x->language, e);
    return out->structured ? 0 : -1;
}

const struct mcp_tool tool_reset_session = {
    .name = "reset_session",
    .title = "Forget variables",
    .description = "Ends the interpreters in which run_code with session keeps variables: the "
                   "next such call begins anew. Files in /data stay. sessions is empty when "
                   "there was none.",
    .hints = {.destructive = true, .idempotent = true},
    .output_schema = schema_reset_session,
    .arguments = reset_session_arguments,
    .arguments_size = sizeof(struct reset_session),
    .version = runners_version,
    .run = reset,
};
