/* upload_archive and download_archive: many files of a sandbox as one. */
#include "config.h"

#include "common/base/mem.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/files/content.h"
#include "common/tools/list.h"
#include "common/tools/tools_app.h"
#include "common/tools/words.h"

#include <string.h>

static int check_folder(const char *folder, struct err *e)
{
    return folder && *folder ? files_check_name("folder", folder, strlen(folder), e) : 0;
}

/* The arguments of both tools; each has some of them. */
struct archive {
    const char *conversation, *filename, *folder, *format;
    struct run_text content;
    bool overwrite;
};

/* ---- upload_archive ---- */

static const struct arg_row upload_archive_arguments[] = {
    CONVERSATION_ROW(struct archive),
    ARG_ROW(
        struct archive, filename, "filename", ARG_NAME, .max = FILES_NAME_MAX,
        .also = "path file filepath name",
        .help = "An archive that is in /data already, which stays there. Either this or content."),
    ARG_ROW(struct archive, content, "content", ARG_BASE64, .max_setting = ARG_SETTING(file_max),
            .also = "base64 data", .help = "The archive in base64."),
    ARG_ROW(
        struct archive, folder, "folder", ARG_NAME, .max = FILES_NAME_MAX, .folder = true,
        .also = "directory dir",
        .help = "Folder of /data to unpack into, made when absent; /data itself when not given."),
    ARG_ROW(
        struct archive, overwrite, "overwrite", ARG_BOOL, .also = "replace",
        .help = "Replace files of the same names? Else the archive is refused when there is one."),
    {0},
};

static json_t *upload_unpack(const struct mcp_tool_call *c, const struct archive *u, struct err *e)
{
    const struct tools_app *app = c->app;
    struct broker_client client = tools_client(app, c->tenant, c->cancel_fd);
    AUTO_BUF struct buf content = BUF_INIT(0);
    AUTO_FD int fd = -1;

    if (!u->filename &&
        content_decode("content", u->content, app->limits.file_max, &content, e) < 0)
        return NULL;
    if (!u->filename && (fd = content_fd((struct run_text){content.data, content.len}, e)) < 0)
        return NULL;
    const struct broker_unpack_want want = {.conversation = u->conversation,
                                            .archive = u->filename,
                                            .archive_fd = fd,
                                            .folder = u->folder ? u->folder : "",
                                            .replace = u->overwrite};
    return broker_unpack(&client, &want, e);
}

static int upload_archive(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                          struct err *e)
{
    const struct archive *u = arguments;
    const struct changes changes = {c->server, c->tenant, u->conversation};
    json_auto_t *files = json_array();
    json_t *name;

    if (!u->filename == (u->content.len == 0))
        return err_set(e, ERR_INVALID,
                       "give either 'filename' (an archive in the sandbox) or 'content'");
    if ((u->filename && files_check_name("filename", u->filename, strlen(u->filename), e) < 0) ||
        check_folder(u->folder, e) < 0)
        return -1;
    out->structured = upload_unpack(c, u, e);
    if (!out->structured)
        return -1;
    /* The answer names some of the files only; they stand for all. */
    for (size_t i = 0; (name = json_array_get(json_object_get(out->structured, "names"), i)); i++)
        json_array_append_new(files, json_pack("{s:O}", "name", name));
    changes_publish(&changes, files);
    words_unpacked(out, out->structured);
    report_notices(out->structured, out);
    return 0;
}

const struct mcp_tool tool_upload_archive = {
    .name = "upload_archive",
    .title = "Unpack an archive",
    .hints = {.destructive = true},
    .output_schema = schema_upload_archive,
    .description =
        "Unpacks an archive (zip, or tar plain or compressed by gzip, bzip2, xz or zstd) into the "
        "conversation's sandbox: all of it, or nothing when it is refused. Links and devices are "
        "left out; an archive with names that lead elsewhere is refused, as is one of more "
        "than " TEXT_OF(
            ARCHIVE_FILES_MAX) " entries. Should writing fail half-way, new files are "
                               "taken back, but not what was replaced. Modes are not kept.",
    ARGS_TABLE(upload_archive_arguments, struct archive),
    .run = upload_archive,
};

/* ---- download_archive ---- */

static json_t *archive_formats(const struct tools_app *app, const char *wanted)
{
    (void)app;
    (void)wanted;
    return json_pack("[s, s, s]", pack_format_name(PACK_TAR_GZ), pack_format_name(PACK_ZIP),
                     pack_format_name(PACK_TAR));
}

static const struct arg_row download_archive_arguments[] = {
    OLD_CONVERSATION_ROW(struct archive),
    ARG_ROW(struct archive, folder, "folder", ARG_NAME, .max = FILES_NAME_MAX, .folder = true,
            .also = "path directory dir",
            .help = "Only what is below this folder of /data; everything when absent."),
    ARG_ROW(struct archive, format, "format", ARG_STRING, .max = 16, .choices = archive_formats,
            .help = "tar.gz when absent."),
    {0},
};

static int download_archive(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                            struct err *e)
{
    const struct archive *d = arguments;
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    const char *format = d->format ? d->format : pack_format_name(PACK_TAR_GZ);

    if (check_folder(d->folder, e) < 0)
        return -1;
    out->structured = broker_archive_link(&client, d->conversation, d->folder ? d->folder : "",
                                          format, e);
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
    .description = "Makes a link at which the conversation's files (or those of one folder) can be "
                   "downloaded as one archive: regular files only, fewer than " TEXT_OF(
                       ARCHIVE_FILES_MAX) ".",
    ARGS_TABLE(download_archive_arguments, struct archive),
    .run = download_archive,
};
