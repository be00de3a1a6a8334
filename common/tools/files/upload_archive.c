/* upload_archive: unpacks an archive into a conversation's sandbox. */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/files/changes.h"
#include "common/tools/files/store.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

#include <inttypes.h>
#include <string.h>

struct upload {
    const char *conversation;
    const char *filename;
    struct run_text content;
    const char *folder;
    bool overwrite;
};

static const struct arg_row upload_archive_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct upload, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = CONVERSATION_HELP},
    {.name = "filename",
     .type = ARG_STRING,
     .offset = offsetof(struct upload, filename),
     .max = FILES_NAME_MAX,
     .help = "An archive that is in /data already, which stays there. Either this or content."},
    {.name = "content",
     .type = ARG_BASE64,
     .offset = offsetof(struct upload, content),
     .max_setting = ARG_SETTING(file_max),
     .help = "The archive in base64 (standard alphabet, padded, no line breaks)."},
    {.name = "folder",
     .type = ARG_STRING,
     .offset = offsetof(struct upload, folder),
     .max = FILES_NAME_MAX,
     .help = "Folder of /data to unpack into, made when absent; /data itself when not given."},
    {.name = "overwrite",
     .type = ARG_BOOL,
     .offset = offsetof(struct upload, overwrite),
     .help = "Replace files of the same names? Else the archive is refused when there is one."},
    {0},
};

static char *describe(void *app)
{
    (void)app;
    return mem_printf(
        "Unpacks an archive (zip, or tar plain or compressed by gzip, bzip2, xz or zstd) into the "
        "conversation's sandbox: all of it, or nothing when it is refused. Only files and folders: "
        "an archive with links, devices or names that lead elsewhere is refused, as is one of more "
        "than %d entries. Should writing fail half-way, new files are taken back, but not what was "
        "replaced. Modes are not kept.",
        ARCHIVE_FILES_MAX);
}

static int check(const struct upload *u, struct err *e)
{
    if (!u->filename == !u->content.data)
        return err_set(e, ERR_INVALID,
                       "give either 'filename' (an archive in the sandbox) or 'content'");
    if (u->filename && files_check_name("filename", u->filename, strlen(u->filename), e) < 0)
        return -1;
    return u->folder && *u->folder ? files_check_name("folder", u->folder, strlen(u->folder), e)
                                   : 0;
}

static json_t *unpack_it(const struct mcp_tool_call *c, const struct upload *u, struct err *e)
{
    const struct tools_app *app = c->app;
    struct broker_client client = tools_client(app, c->cancel_fd);
    AUTO_BUF struct buf content = BUF_INIT(0);
    AUTO_FD int fd = -1;

    if (!u->filename && store_decode("content", u->content, app->limits.file_max, &content, e) < 0)
        return NULL;
    if (!u->filename && (fd = store_fd((struct run_text){content.data, content.len}, e)) < 0)
        return NULL;
    const struct broker_unpack_want want = {.tenant = c->tenant,
                                            .conversation = u->conversation,
                                            .archive = u->filename,
                                            .archive_fd = fd,
                                            .folder = u->folder ? u->folder : "",
                                            .replace = u->overwrite};
    return broker_unpack(&client, &want, e);
}

/* Those that the answer names stand for all. */
static void tell(const struct mcp_tool_call *c, const struct upload *u, const json_t *names)
{
    const struct changes changes = {c->server, c->tenant, u->conversation};
    json_auto_t *files = json_array();
    const json_t *name;
    size_t i;

    json_array_foreach(names, i, name)
    {
        json_array_append_new(files, json_pack("{s:s}", "name", json_string_value(name)));
    }
    changes_tell(&changes, files);
}

static int upload_archive(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                          struct err *e)
{
    const struct upload *u = arguments;

    if (check(u, e) < 0)
        return -1;
    out->structured = unpack_it(c, u, e);
    if (!out->structured)
        return -1;
    tell(c, u, json_object_get(out->structured, "names"));
    report_notices(out->structured, out);
    return 0;
}

const struct mcp_tool tool_upload_archive = {
    .name = "upload_archive",
    .title = "Unpack an archive",
    .hints = {.destructive = true},
    .output_schema = schema_upload_archive,
    .describe = describe,
    .arguments = upload_archive_arguments,
    .arguments_size = sizeof(struct upload),
    .run = upload_archive,
};
