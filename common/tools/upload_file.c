/* upload_file: puts a file into a conversation's sandbox. */
#include "config.h"

#include "common/base/b64.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/mcp/content.h"
#include "common/rpc/json.h"
#include "common/sandbox/files.h"
#include "common/sandbox/media.h"
#include "common/tools/args.h"
#include "common/tools/changes.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/run_code.h"
#include "common/tools/runners.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct upload {
    const char *conversation;
    const char *filename;
    struct run_text content;
};

static const struct arg_row arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct upload, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = CONVERSATION_HELP},
    {.name = "filename",
     .type = ARG_STRING,
     .offset = offsetof(struct upload, filename),
     .required = true,
     .max = FILES_NAME_MAX,
     .help = "Name below /data; may contain folders (reports/may.csv), which are made. An existing "
             "file is replaced."},
    {.name = "content",
     .type = ARG_BASE64,
     .offset = offsetof(struct upload, content),
     .required = true,
     .max_setting = ARG_SETTING(file_max),
     .help =
         "The file's content in base64 (standard alphabet, padded, no line breaks). Empty makes "
         "an empty file."},
    {0},
};

static const char output_schema[] =
    "{\"type\":\"object\",\"required\":[\"success\",\"message\",\"file\"],\"properties\":{"
    "\"success\":{\"type\":\"boolean\"},"
    "\"message\":{\"type\":\"string\"},"
    "\"file\":{\"type\":\"object\",\"required\":[\"name\",\"url\",\"size\",\"mimeType\"],"
    "\"properties\":{"
    "\"name\":{\"type\":\"string\"},"
    "\"url\":{\"type\":\"string\",\"description\":\"download link\"},"
    "\"size\":{\"type\":\"integer\",\"description\":\"bytes\"},"
    "\"mimeType\":{\"type\":\"string\"}}}}}";

static char *describe(void *app)
{
    const struct tools_app *a = app;

    return mem_printf(
        "Puts a file into the conversation's sandbox, where programs started by "
        "run_code with the same conversationId find it as /data/<filename>. The answer "
        "has its download link. At most %" PRIu64 " bytes.",
        a->limits.file_max);
}

static json_t *input_schema(void *app)
{
    return args_schema(arguments, app);
}

/* An anonymous file in memory, since the broker takes content as a descriptor. */
static int content_to_fd(const struct buf *content, struct err *e)
{
    AUTO_FD int fd = memfd_create("upload", MFD_CLOEXEC);

    if (fd < 0)
        return err_errno(e, "making room for the file");
    if (fdio_write_all(fd, content->data, content->len, e) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_errno(e, "rewinding the file");
    return TAKE_FD(fd);
}

static int decode(const struct upload *u, uint64_t max, struct buf *out, struct err *e)
{
    out->max = (size_t)max;
    if (b64_decode(u->content.data, u->content.len, out) == 0 && buf_ok(out))
        return 0;
    if (!buf_ok(out))
        return err_set(e, ERR_LIMIT, "argument 'content' decodes to more than %" PRIu64 " bytes",
                       max);
    return err_set(e, ERR_INVALID,
                   "argument 'content' is not base64 (standard alphabet, padded with '=', without "
                   "blanks or line breaks)");
}

static json_t *store(const struct mcp_tool_call *c, const struct upload *u,
                     const struct buf *content, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    AUTO_FD int fd = content_to_fd(content, e);

    if (fd < 0)
        return NULL;
    return broker_put_file(&client, c->tenant, u->conversation, u->filename, fd, content->len, true,
                           e);
}

/* What the broker says about the file, and what is known from its content. */
static void answer(const struct upload *u, const struct buf *content, json_t *take_file,
                   struct mcp_result *out)
{
    const char *mime = media_type(u->filename, buf_str(content), content->len);
    const char *url = json_get_string(take_file, "url");
    AUTO_BUF struct buf message = BUF_INIT(8192);

    buf_add_str(&message, "File '");
    content_clean_name(u->filename, &message);
    buf_addf(&message, "' uploaded successfully (%zu bytes)", content->len);
    json_object_set_new(take_file, "mimeType", json_string(mime));
    mcp_result_add(out, content_link_new(url ? url : "", u->filename, mime,
                                         json_get_integer(take_file, "size", 0)));
    out->structured = json_pack("{s:b, s:s, s:o}", "success", 1, "message", buf_str(&message),
                                "file", take_file);
}

static int upload(const struct mcp_tool_call *c, const struct upload *u, struct mcp_result *out,
                  struct err *e)
{
    const struct tools_app *app = c->app;
    const struct changes changes = {c->server, c->tenant, u->conversation};
    AUTO_BUF struct buf content = BUF_INIT(0);
    json_t *file;

    if (files_check_name("filename", u->filename, strlen(u->filename), e) < 0 ||
        decode(u, app->limits.file_max, &content, e) < 0)
        return -1;
    file = store(c, u, &content, e);
    if (!file)
        return -1;
    changes_tell_file(&changes, u->filename);
    answer(u, &content, file, out);
    return 0;
}

static void call(const struct mcp_tool_call *c, struct mcp_result *out)
{
    struct upload u = {0};
    struct err e = ERR_INIT;

    if (args_fill(arguments, c->app, c->arguments, &u, &e) < 0 || upload(c, &u, out, &e) < 0)
        report_failure(out, &e);
    args_clear(arguments, &u);
}

static const char *const aliases[] = {"sandbox.upload_file", NULL};

const struct mcp_tool tool_upload_file = {
    .name = "upload_file",
    .aliases = aliases,
    .title = "Upload a file",
    /* It replaces a file of that name, in a sandbox that is the conversation's own. */
    .hints = {.destructive = true, .idempotent = true},
    .output_schema = output_schema,
    .describe = describe,
    .input_schema = input_schema,
    .call = call,
};
