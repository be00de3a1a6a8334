/* list_files: what is in a folder of a conversation's sandbox. */
#include "config.h"

#include "common/base/glob.h"
#include "common/base/mem.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

#define ROWS_DEFAULT 200
#define CURSOR_MAX   2048

struct list_files {
    const char *conversation;
    const char *folder;
    const char *glob;
    bool recursive;
    struct arg_integer limit;
    const char *cursor;
};

static const struct arg_row list_files_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct list_files, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = CONVERSATION_HELP},
    {.name = "folder",
     .type = ARG_STRING,
     .offset = offsetof(struct list_files, folder),
     .max = FILES_NAME_MAX,
     .help = "Folder below /data, without a slash at its end; left out: /data itself."},
    {.name = "glob",
     .type = ARG_STRING,
     .offset = offsetof(struct list_files, glob),
     .max = GLOB_MAX,
     .help = "Only these names, e.g. *.csv; with a slash for the path below folder: data/*.csv, "
             "**/test_*.py. *, ?, [a-z] do not match a slash, ** does."},
    {.name = "recursive",
     .type = ARG_BOOL,
     .offset = offsetof(struct list_files, recursive),
     .help = "Also what is in folders of the folder."},
    {.name = "limit",
     .type = ARG_INTEGER,
     .offset = offsetof(struct list_files, limit),
     .max = BROKER_LIST_MAX,
     .help = "Entries per answer; 200 when left out."},
    {.name = "cursor",
     .type = ARG_STRING,
     .offset = offsetof(struct list_files, cursor),
     .max = CURSOR_MAX,
     .help = "nextCursor of the answer before, with the other arguments as they were."},
    {0},
};

static int read_limit(struct arg_integer limit, size_t *out, struct err *e)
{
    *out = limit.given ? (size_t)limit.value : ROWS_DEFAULT;
    return *out > 0
               ? 0
               : err_set(e, ERR_INVALID, "argument 'limit' must be from 1 to %d", BROKER_LIST_MAX);
}

/* A conversation that has no sandbox yet has no files. */
static json_t *ask(const struct mcp_tool_call *c, const struct broker_listing *listing,
                   struct err *e)
{
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    json_t *page = broker_list_folder(&client, c->tenant, listing, e);

    if (page || e->kind != ERR_NOT_FOUND || listing->folder[0])
        return page;
    return json_pack("{s:[]}", "files");
}

static int list_files(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                      struct err *e)
{
    const struct list_files *l = arguments;
    struct broker_listing listing = {.conversation = l->conversation,
                                     .folder = l->folder ? l->folder : "",
                                     .glob = l->glob,
                                     .recursive = l->recursive,
                                     .after = l->cursor};

    if (read_limit(l->limit, &listing.max, e) < 0)
        return -1;
    json_auto_t *page = ask(c, &listing, e);
    if (!page)
        return -1;
    out->structured = json_pack("{s:O, s:O*, s:O*, s:O*}", "files", json_object_get(page, "files"),
                                "nextCursor", json_object_get(page, "next"), "incomplete",
                                json_object_get(page, "incomplete"), "filesExpireAt",
                                json_object_get(page, "filesExpireAt"));
    return 0;
}

const struct mcp_tool tool_list_files = {
    .name = "list_files",
    .title = "List files",
    .description = "Lists files and folders of the conversation's sandbox (/data for run_code), "
                   "by name; a folder comes before what is in it.",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = schema_list_files,
    .arguments = list_files_arguments,
    .arguments_size = sizeof(struct list_files),
    .run = list_files,
};
