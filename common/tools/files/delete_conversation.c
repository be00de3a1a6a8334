/* delete_conversation: a conversation's files, links and results go. */
#include "config.h"

#include "common/base/mem.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_remove.h"
#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/files/changes.h"
#include "common/tools/list.h"
#include "common/tools/report.h"

#include <inttypes.h>
#include <string.h>

struct delete_conversation {
    const char *conversation;
};

static const struct arg_row arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct delete_conversation, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = "The conversation whose files are deleted, all of them."},
    {0},
};

static const char output_schema[] =
    "{\"type\":\"object\",\"required\":[\"deleted\",\"files\",\"bytes\"],\"properties\":{"
    "\"deleted\":{\"type\":\"boolean\"},"
    "\"files\":{\"type\":\"integer\",\"description\":\"files and folders there were\"},"
    "\"bytes\":{\"type\":\"integer\",\"description\":\"that they took on the disk\"}}}";

static char *describe(void *app)
{
    (void)app;
    return mem_strdup("Deletes all files of a conversation, their download links and the kept "
                      "results of its runs, for good. Nothing may be running in it. The "
                      "conversationId can be used again; it then begins empty.");
}

static json_t *input_schema(void *app)
{
    return args_schema(arguments, app);
}

static void answer(json_t *take_result, struct mcp_result *out)
{
    char text[160];

    snprintf(text, sizeof text,
             "The conversation is deleted: %" JSON_INTEGER_FORMAT
             " files and folders, %" JSON_INTEGER_FORMAT " bytes on the disk.",
             json_get_integer(take_result, "files", 0), json_get_integer(take_result, "bytes", 0));
    mcp_result_add(out, content_text_new(text, strlen(text)));
    out->structured = take_result;
}

static int delete_conversation(const struct mcp_tool_call *c, const struct delete_conversation *x,
                               struct mcp_result *out, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    const struct changes changes = {c->server, c->tenant, x->conversation};
    json_t *result = broker_delete_conversation(&client, c->tenant, x->conversation, e);

    if (!result)
        return -1;
    changes_tell_gone(&changes);
    answer(result, out);
    return 0;
}

static void call(const struct mcp_tool_call *c, struct mcp_result *out)
{
    struct delete_conversation x = {0};
    struct err e = ERR_INIT;

    if (args_fill(arguments, c->app, c->arguments, &x, &e) < 0 ||
        delete_conversation(c, &x, out, &e) < 0)
        report_failure(out, &e);
}

const struct mcp_tool tool_delete_conversation = {
    .name = "delete_conversation",
    .title = "Delete a conversation",
    .hints = {.destructive = true, .idempotent = true},
    .output_schema = output_schema,
    .describe = describe,
    .input_schema = input_schema,
    .call = call,
};
