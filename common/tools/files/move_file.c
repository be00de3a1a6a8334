/* move_file: gives a file or folder of a conversation's sandbox another name. */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/files/changes.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

#include <string.h>

struct move_file {
    const char *conversation;
    const char *from;
    const char *to;
    bool overwrite;
};

static const struct arg_row move_file_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct move_file, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = CONVERSATION_HELP},
    {.name = "from",
     .type = ARG_STRING,
     .offset = offsetof(struct move_file, from),
     .required = true,
     .max = FILES_NAME_MAX,
     .help = "Name below /data of a file or folder."},
    {.name = "to",
     .type = ARG_STRING,
     .offset = offsetof(struct move_file, to),
     .required = true,
     .max = FILES_NAME_MAX,
     .help = "Its whole new name below /data (not the folder to put it in); missing folders are "
             "made."},
    {.name = "overwrite",
     .type = ARG_BOOL,
     .offset = offsetof(struct move_file, overwrite),
     .help = "Replace a file or empty folder of the new name; otherwise that is an error."},
    {0},
};

/* The files of a moved folder have come with their new names and gone with their old ones. */
static void tell_folder(const struct changes *changes, const struct broker_client *client,
                        const struct move_file *m)
{
    json_auto_t *came = changes_in_folder(changes, client, m->to);
    json_auto_t *gone = json_array();
    size_t i;
    json_t *row;

    json_array_foreach(came, i, row)
    {
        const char *name = json_get_string(row, "name");
        AUTO_FREE char *old = name ? mem_printf("%s%s", m->from, name + strlen(m->to)) : NULL;
        if (old)
            json_array_append_new(gone, json_pack("{s:s}", "name", old));
    }
    changes_tell(changes, came);
    changes_tell(changes, gone);
}

static int move_file(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                     struct err *e)
{
    const struct move_file *m = arguments;
    const struct changes changes = {c->server, c->tenant, m->conversation};
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    json_t *file = broker_move_file(&client, c->tenant, m->conversation, m->from, m->to,
                                    m->overwrite, e);

    if (!file)
        return -1;
    out->structured = json_pack("{s:o}", "file", file);
    if (!json_object_get(file, "url"))
        tell_folder(&changes, &client, m);
    changes_tell_file(&changes, m->from);
    changes_tell_file(&changes, m->to);
    return 0;
}

const struct mcp_tool tool_move_file = {
    .name = "move_file",
    .title = "Move a file",
    .description = "Renames or moves a file or folder within the conversation's sandbox.",
    /* It replaces what has the new name only when it is told to. */
    .hints = {.destructive = true},
    .output_schema = schema_move_file,
    .arguments = move_file_arguments,
    .arguments_size = sizeof(struct move_file),
    .run = move_file,
};
