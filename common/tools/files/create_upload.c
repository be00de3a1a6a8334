/* create_upload: a link to which a client PUTs a file of any size. */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_files.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

#include <inttypes.h>

struct create_upload {
    const char *conversation, *filename;
    struct arg_integer size;
};

static const struct arg_row create_upload_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct create_upload, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = CONVERSATION_HELP},
    {.name = "filename",
     .type = ARG_STRING,
     .offset = offsetof(struct create_upload, filename),
     .required = true,
     .max = FILES_NAME_MAX,
     .help =
         "Name below /data; may contain folders, which are made. An existing file is replaced."},
    {.name = "size",
     .type = ARG_INTEGER,
     .offset = offsetof(struct create_upload, size),
     .max_setting = ARG_SETTING(upload_max),
     .help = "The file's size in bytes, when it is known: a body of another size is then refused "
             "before it is sent."},
    {0},
};

static char *describe(void *app)
{
    const struct tools_app *a = app;

    return mem_printf(
        "Makes a link to upload one file of up to %" PRIu64 " bytes into the conversation's "
        "sandbox, for files that are too large for upload_file. Send the bytes with an HTTP PUT "
        "within %" PRIu64 " seconds, e.g.: curl -T FILE 'URL'. The link works once, needs no "
        "token, and must be kept secret until then. The answer to the PUT is JSON with the "
        "file's name, size and download link.",
        a->limits.upload_max, a->limits.upload_ttl_ms / 1000);
}

static int create_upload(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                         struct err *e)
{
    const struct create_upload *x = arguments;
    struct broker_client client = tools_client(c->app, c->cancel_fd);

    out->structured = broker_create_upload(&client, c->tenant, x->conversation, x->filename,
                                           x->size.value, e);
    return out->structured ? 0 : -1;
}

const struct mcp_tool tool_create_upload = {
    .name = "create_upload",
    .title = "Make an upload link",
    /* The link may replace a file. */
    .hints = {.destructive = true},
    .reach = MCP_REACH_HTTP,
    .output_schema = schema_create_upload,
    .describe = describe,
    .arguments = create_upload_arguments,
    .arguments_size = sizeof(struct create_upload),
    .run = create_upload,
};
