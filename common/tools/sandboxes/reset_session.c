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

#define LANGUAGE_MAX 64

struct reset_session {
    const char *conversation, *language;
};

static const struct arg_row arguments[] = {
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

static char *describe(void *app)
{
    (void)app;
    return mem_strdup("Ends the interpreters in which run_code with session keeps variables: the "
                      "next such call begins anew. Files in /data stay. sessions is empty when "
                      "there was none.");
}

static json_t *input_schema(void *app)
{
    return args_schema(arguments, app);
}

static uint64_t version(void *app)
{
    return runners_version(app);
}

static int reset(const struct mcp_tool_call *c, const struct reset_session *x,
                 struct mcp_result *out, struct err *e)
{
    const struct broker_client client = tools_client(c->app, c->cancel_fd);

    out->structured = broker_reset_session(&client, c->tenant, x->conversation, x->language, e);
    return out->structured ? 0 : -1;
}

static void call(const struct mcp_tool_call *c, struct mcp_result *out)
{
    struct reset_session x = {0};
    struct err e = ERR_INIT;

    if (args_fill(arguments, c->app, c->arguments, &x, &e) < 0 || reset(c, &x, out, &e) < 0)
        report_failure(out, &e);
}

const struct mcp_tool tool_reset_session = {
    .name = "reset_session",
    .title = "Forget variables",
    .hints = {.destructive = true, .idempotent = true},
    .output_schema = "{\"type\":\"object\",\"required\":[\"sessions\"],\"properties\":{"
                     "\"sessions\":{\"type\":\"array\",\"description\":\"what was ended\","
                     "\"items\":" SANDBOX_ROW_SCHEMA "}}}",
    .describe = describe,
    .input_schema = input_schema,
    .version = version,
    .call = call,
};
