/* delete_conversation: a conversation's files, links and results go. */
#include "config.h"

#include "common/base/mem.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/files/changes.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

#include <inttypes.h>
#include <string.h>

struct delete_conversation {
    const char *conversation;
};

static const struct arg_row delete_conversation_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct delete_conversation, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = "The conversation whose files are deleted, all of them."},
    {0},
};

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

static int delete_conversation(const struct mcp_tool_call *c, void *arguments,
                               struct mcp_result *out, struct err *e)
{
    const struct delete_conversation *x = arguments;
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    const struct changes changes = {c->server, c->tenant, x->conversation};
    json_t *result = broker_delete_conversation(&client, c->tenant, x->conversation, e);

    if (!result)
        return -1;
    changes_tell_gone(&changes);
    answer(result, out);
    return 0;
}

const struct mcp_tool tool_delete_conversation = {
    .name = "delete_conversation",
    .title = "Delete a conversation",
    .description = "Deletes all files of a conversation, their download links and the kept "
                   "results of its runs, for good. Nothing may be running in it. The "
                   "conversationId can be used again; it then begins empty.",
    .hints = {.destructive = true, .idempotent = true},
    .output_schema = schema_delete_conversation,
    .arguments = delete_conversation_arguments,
    .arguments_size = sizeof(struct delete_conversation),
    .run = delete_conversation,
};
