/* upload_file, write_file, create_upload and import_url: ways for a file into a conversation's
 * sandbox. */
#include "config.h"

#include "common/base/mem.h"
#include "common/fetch/fetch.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/files/media.h"
#include "common/tools/args.h"
#include "common/tools/files/content.h"
#include "common/tools/list.h"
#include "common/tools/tools_app.h"
#include "common/tools/words.h"

#include <inttypes.h>
#include <string.h>

#define LARGER "over HTTP create_upload makes a link for larger files"

/* The arguments of the tools; each has some of them. */
struct upload {
    const char *conversation, *filename, *url;
    struct run_text content, base64;
    bool overwrite;
    struct arg_integer size;
};

/* Stores content under filename, publishes the change, adds a link to *out. {name, size, url,
 * mimeType}; new reference, or NULL. */
static json_t *store_file(const struct mcp_tool_call *c, const struct upload *s,
                          struct mcp_result *out, struct err *e)
{
    const struct changes changes = {c->server, c->tenant, s->conversation};
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);

    if (files_check_name("filename", s->filename, strlen(s->filename), e) < 0)
        return NULL;
    AUTO_FD int fd = content_fd(s->content, e);
    if (fd < 0)
        return NULL;
    json_t *file = broker_put_file(&client, s->conversation, s->filename, fd, s->content.len,
                                   s->overwrite, e);
    if (!file)
        return NULL;
    const char *mime = media_type(s->filename, s->content.data, s->content.len);
    const char *url = json_get_string(file, "url");
    json_object_set_new(file, "mimeType", json_string(mime));
    changes_publish_file(&changes, s->filename);
    mcp_result_add(out, content_link_new(url ? url : "", s->filename, mime,
                                         json_get_integer(file, "size", 0)));
    return file;
}

/* Moves what the answer says about the conversation (filesExpireAt, notices) from file to result,
 * and says what there is now. */
static void store_add_retention(json_t *file, json_t *result, struct mcp_result *out)
{
    static const char *const names[] = {"filesExpireAt", "notices"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_t *value = json_object_get(file, names[i]);

        if (value)
            json_object_set(result, names[i], value);
        json_object_del(file, names[i]);
    }
    words_file(out, file);
    report_notices(result, out);
}

/* ---- upload_file ---- */

static const struct arg_row upload_file_arguments[] = {
    CONVERSATION_ROW(struct upload),
    FILENAME_ROW(struct upload, "Name below /data; folders are made."),
    ARG_ROW(struct upload, content, "content", ARG_BASE64, .required = true,
            .max_setting = ARG_SETTING(file_max), .also = "base64 data", .larger = LARGER,
            .help = "Its content in base64."),
    {0},
};

static char *upload_file_describe(void *app)
{
    const struct tools_app *a = app;

    return mem_printf("Puts a binary file of up to %" PRIu64
                      " MB into /data, and replaces one of that name.",
                      a->limits.file_max >> 20);
}

static int upload_file(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                       struct err *e)
{
    struct upload *u = arguments;
    const struct tools_app *app = c->app;
    AUTO_BUF struct buf content = BUF_INIT(0);
    AUTO_BUF struct buf message = BUF_INIT(8192);

    if (content_decode("content", u->content, app->limits.file_max, &content, e) < 0)
        return -1;
    u->content = (struct run_text){buf_str(&content), content.len};
    u->overwrite = true;
    json_t *file = store_file(c, u, out, e);
    if (!file)
        return -1;
    buf_add_str(&message, "File '");
    content_clean_name(u->filename, &message);
    buf_addf(&message, "' uploaded successfully (%zu bytes)", content.len);
    out->structured = json_pack("{s:b, s:o, s:o}", "success", 1, "message",
                                json_stringn(buf_str(&message), message.len), "file", file);
    store_add_retention(file, out->structured, out);
    return 0;
}

const struct mcp_tool tool_upload_file = {
    .name = "upload_file",
    .aliases = (const char *const[]){"sandbox.upload_file", NULL},
    .title = "Upload a file",
    /* It replaces a file of that name, in a sandbox that is the conversation's own. */
    .hints = {.destructive = true, .idempotent = true},
    .output_schema = schema_upload_file,
    .describe = upload_file_describe,
    ARGS_TABLE(upload_file_arguments, struct upload),
    .run = upload_file,
};

/* ---- write_file ---- */

static const struct arg_row write_file_arguments[] = {
    CONVERSATION_ROW(struct upload),
    FILENAME_ROW(struct upload, "Name below /data; folders are made."),
    ARG_ROW(struct upload, content, "text", ARG_TEXT, .max_setting = ARG_SETTING(file_max),
            .json_too = true, .larger = LARGER, .also = "content contents data body",
            .help = "Its content."),
    ARG_ROW(struct upload, base64, "base64", ARG_BASE64, .max_setting = ARG_SETTING(file_max),
            .listed = args_unlisted, .help = "Instead of text: its content in base64."),
    ARG_ROW(struct upload, overwrite, "overwrite", ARG_BOOL, .also = "replace",
            .help = "Replace a file of that name; else that is an error."),
    {0},
};

static int write_file(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                      struct err *e)
{
    struct upload *w = arguments;
    const struct tools_app *app = c->app;
    AUTO_BUF struct buf decoded = BUF_INIT(0);

    if (w->base64.len == 0 && w->content.data)
        w->base64.data = NULL; /* from a model that fills in everything */
    else if (w->content.len == 0 && w->base64.data)
        w->content.data = NULL;
    if (!w->content.data == !w->base64.data)
        return err_set(e, ERR_INVALID, "give the content either as 'text' or as 'base64'");
    if (w->base64.data) {
        if (content_decode("base64", w->base64, app->limits.file_max, &decoded, e) < 0)
            return -1;
        w->content = (struct run_text){buf_str(&decoded), decoded.len};
    }
    json_t *file = store_file(c, w, out, e);
    if (!file && e->kind == ERR_EXISTS)
        err_set(e, ERR_EXISTS,
                "argument 'filename': there is something of that name already; overwrite replaces "
                "it");
    if (!file)
        return -1;
    out->structured = json_pack("{s:o}", "file", file);
    store_add_retention(file, out->structured, out);
    return 0;
}

const struct mcp_tool tool_write_file = {
    .name = "write_file",
    .title = "Write a file",
    /* It replaces a file of that name only when overwrite is true. */
    .hints = {.destructive = true},
    .output_schema = schema_write_file,
    .description = "Writes a text file into /data, where programs find it.",
    ARGS_TABLE(write_file_arguments, struct upload),
    .run = write_file,
};

/* ---- create_upload ---- */

static const struct arg_row create_upload_arguments[] = {
    CONVERSATION_ROW(struct upload),
    FILENAME_ROW(struct upload,
                 "Name below /data; folders are made, a file of that name is replaced."),
    ARG_ROW(struct upload, size, "size", ARG_INTEGER, .max_setting = ARG_SETTING(upload_max),
            .help = "Its bytes, if known: another size is refused before it is sent."),
    {0},
};

static char *create_upload_describe(void *app)
{
    const struct tools_app *a = app;

    return mem_printf("Makes a link by which the user, or you, put one file of up to %" PRIu64
                      " MB into /data: curl -T FILE 'URL', within %" PRIu64 " s, once, without a "
                      "token. For the user's own and for large files.",
                      a->limits.upload_max >> 20, a->limits.upload_ttl_ms / 1000);
}

static int create_upload(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                         struct err *e)
{
    const struct upload *x = arguments;
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);

    out->structured = broker_create_upload(&client, x->conversation, x->filename, x->size.value, e);
    return out->structured ? 0 : -1;
}

const struct mcp_tool tool_create_upload = {
    .name = "create_upload",
    .title = "Make an upload link",
    /* The link may replace a file. */
    .hints = {.destructive = true},
    .reach = MCP_REACH_HTTP,
    .output_schema = schema_create_upload,
    .describe = create_upload_describe,
    ARGS_TABLE(create_upload_arguments, struct upload),
    .run = create_upload,
};

/* ---- import_url ---- */

static const struct arg_row import_url_arguments[] = {
    CONVERSATION_ROW(struct upload),
    ARG_ROW(struct upload, url, "url", ARG_STRING, .required = true, .max = FETCH_URL_MAX,
            .also = "uri link",
            .help = "An https:// URL on a public server, without user name or password."),
    ARG_ROW(
        struct upload, filename, "filename", ARG_NAME, .max = FILES_NAME_MAX,
        .also = "path file filepath name",
        .help =
            "Name below /data; may contain folders, which are made. An existing file is replaced. "
            "When absent: the last part of the URL's path."),
    {0},
};

static char *import_url_describe(void *app)
{
    const struct tools_app *a = app;

    return mem_printf(
        "Fetches a file of up to %" PRIu64 " bytes from a public https server into the "
        "conversation's sandbox, where programs find it as /data/<filename>. At most %d "
        "redirects; private, local and metadata addresses are refused. Returns when the file is "
        "there.",
        a->limits.upload_max, FETCH_REDIRECTS_MAX);
}

static int import_url(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                      struct err *e)
{
    const struct upload *x = arguments;
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    const struct changes changes = {c->server, c->tenant, x->conversation};

    if (fetch_check_url(x->url, e) < 0)
        return -1;
    json_auto_t *file = broker_import_url(&client, x->conversation, x->url, x->filename, e);
    if (!file)
        return -1;
    const char *name = json_get_string(file, "name"), *url = json_get_string(file, "url");
    if (!name || !url)
        return err_set(e, ERR_PROTOCOL, "the broker named no file");
    const char *mime = media_type(name, NULL, 0);
    json_int_t size = json_get_integer(file, "size", 0);
    changes_publish_file(&changes, name);
    mcp_result_add(out, content_link_new(url, name, mime, size));
    out->structured = json_pack("{s:s, s:s, s:I, s:s}", "name", name, "url", url, "size", size,
                                "mimeType", mime);
    store_add_retention(file, out->structured, out);
    return 0;
}

const struct mcp_tool tool_import_url = {
    .name = "import_url",
    .title = "Fetch a file by its URL",
    .hints = {.destructive = true, .idempotent = true, .open_world = true},
    .output_schema = schema_import_url,
    .describe = import_url_describe,
    .offered = tools_have_imports,
    ARGS_TABLE(import_url_arguments, struct upload),
    .run = import_url,
};
