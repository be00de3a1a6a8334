/* delete_file: deletes a file or folder of a conversation's sandbox. */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_files.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/files/changes.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

struct delete_file {
    const char *conversation;
    const char *filename;
    bool recursive;
};

static const struct arg_row delete_file_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct delete_file, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = CONVERSATION_HELP},
    {.name = "filename",
     .type = ARG_STRING,
     .offset = offsetof(struct delete_file, filename),
     .required = true,
     .max = FILES_NAME_MAX,
     .help = "Name below /data of a file, a link (the link itself goes) or a folder."},
    {.name = "recursive",
     .type = ARG_BOOL,
     .offset = offsetof(struct delete_file, recursive),
     .help = "A folder with everything in it; otherwise only an empty one."},
    {0},
};

static int delete_file(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                       struct err *e)
{
    const struct delete_file *d = arguments;
    const struct changes changes = {c->server, c->tenant, d->conversation};
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    json_auto_t *below = d->recursive ? changes_in_folder(&changes, &client, d->filename) : NULL;

    out->structured = broker_delete_file(&client, c->tenant, d->conversation, d->filename,
                                         d->recursive, e);
    /* A folder may be half gone. */
    changes_tell(&changes, below);
    if (!out->structured)
        return -1;
    changes_tell_file(&changes, d->filename);
    return 0;
}

const struct mcp_tool tool_delete_file = {
    .name = "delete_file",
    .title = "Delete a file",
    .description = "Deletes a file or folder of the conversation's sandbox for good.",
    .hints = {.destructive = true},
    .output_schema = schema_delete_file,
    .arguments = delete_file_arguments,
    .arguments_size = sizeof(struct delete_file),
    .run = delete_file,
};
