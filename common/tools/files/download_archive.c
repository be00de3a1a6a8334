/* download_archive: a link to all files of a conversation, or of one of its folders, in one file.
 */
#include "config.h"

#include "common/base/mem.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

#include <string.h>

struct download {
    const char *conversation;
    const char *folder;
    const char *format;
};

static json_t *formats(const struct tools_app *app, const char *wanted)
{
    (void)app;
    (void)wanted;
    return json_pack("[s, s, s]", pack_format_name(PACK_TAR_GZ), pack_format_name(PACK_ZIP),
                     pack_format_name(PACK_TAR));
}

static const struct arg_row download_archive_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct download, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = CONVERSATION_HELP},
    {.name = "folder",
     .type = ARG_STRING,
     .offset = offsetof(struct download, folder),
     .max = FILES_NAME_MAX,
     .help = "Only what is below this folder of /data; everything when absent."},
    {.name = "format",
     .type = ARG_STRING,
     .offset = offsetof(struct download, format),
     .max = 16,
     .choices = formats,
     .help = "tar.gz when absent."},
    {0},
};

static char *describe(void *app)
{
    (void)app;
    return mem_printf("Makes a link at which the conversation's files (or those of one folder) can "
                      "be downloaded as one archive: regular files only, at most %d.",
                      ARCHIVE_FILES_MAX - 1);
}

static int check_folder(const char *folder, struct err *e)
{
    return folder && *folder ? files_check_name("folder", folder, strlen(folder), e) : 0;
}

static int download(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                    struct err *e)
{
    const struct download *d = arguments;
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    const char *format = d->format ? d->format : pack_format_name(PACK_TAR_GZ);

    if (check_folder(d->folder, e) < 0)
        return -1;
    out->structured = broker_archive_link(&client, c->tenant, d->conversation,
                                          d->folder ? d->folder : "", format, e);
    if (!out->structured)
        return -1;
    const char *url = json_get_string(out->structured, "url");
    const char *name = json_get_string(out->structured, "name");
    bool zip = strcmp(format, pack_format_name(PACK_ZIP)) == 0;
    mcp_result_add(out, content_link_new(url ? url : "", name ? name : "",
                                         zip ? "application/zip" : "application/gzip", -1));
    return 0;
}

const struct mcp_tool tool_download_archive = {
    .name = "download_archive",
    .title = "Download an archive",
    .hints = {.read_only = true, .idempotent = true},
    .reach = MCP_REACH_HTTP,
    .output_schema = schema_download_archive,
    .describe = describe,
    .arguments = download_archive_arguments,
    .arguments_size = sizeof(struct download),
    .run = download,
};
