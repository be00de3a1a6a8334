/* The files of a session: upload, read, list; and its end. */
#include "config.h"

#include "common/base/b64.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/tools/files/content.h"
#include "common/tools/list.h"
#include "common/tools/profiles/session.h"
#include "common/tools/tools_app.h"

#include <string.h>

#define NAME_CHARS       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define FILENAME_LEN_MAX 255 /* as its clients know it */
#define PAGE_FILES       1000
#define PAGES_MAX        20

/* A run that has just answered is not quite over. */
#define CLOSE_PATIENCE_MS 1000

#define SESSION_ID(must)                                                                           \
    {                                                                                              \
        .name = "session_id", .type = ARG_STRING,                                                  \
        .offset = offsetof(struct session_arguments, session), .required = (must),                 \
        .max = SESSION_ID_MAX, .help = "The session."                                              \
    }

const struct arg_row session_upload_arguments[] = {
    ARG_ROW(struct session_arguments, filename, "filename", ARG_STRING, .required = true,
            .max = FILENAME_LEN_MAX, .help = "Letters, digits, '.', '_' and '-'."),
    ARG_ROW(struct session_arguments, content, "content_base64", ARG_BASE64, .required = true,
            .max_setting = ARG_SETTING(file_max), .help = "The file's content in base64."),
    SESSION_ID(false),
    ARG_ROW(struct session_arguments, overwrite, "overwrite", ARG_BOOL,
            .help = "Replace a file of that name."),
    {0},
};

const struct arg_row session_read_arguments[] = {
    SESSION_ID(true),
    ARG_ROW(struct session_arguments, path, "path", ARG_STRING, .required = true,
            .max = sizeof(SESSION_FOLDER) + FILES_NAME_MAX,
            .help = "The file's path, which begins with " SESSION_FOLDER "."),
    {0},
};

const struct arg_row session_id_arguments[] = {SESSION_ID(true), {0}};

/* ---- upload ---- */

static bool check_filename(const struct session_call *s)
{
    const char *name = s->a.filename;

    if (strstr(name, ".."))
        session_fail(s->out, "invalid_path", "filename must not contain '..'");
    else if (!*name || strlen(name) > FILENAME_LEN_MAX || name[strspn(name, NAME_CHARS)] ||
             strcmp(name, ".") == 0)
        session_fail(s->out, "invalid_filename",
                     "filename must be 1 to 255 letters, digits, '.', '_' and '-'");
    else
        return true;
    return false;
}

void session_upload(const struct mcp_tool_call *c, struct mcp_result *out)
{
    static const struct session_codes codes = {.invalid = "invalid_content"};
    AUTO_SESSION_CALL struct session_call s = {.mcp = c, .out = out, .bad_id = SESSION_ID_INVALID};
    AUTO_MCP_RESULT struct mcp_result inner = MCP_RESULT_INIT;
    struct err e = ERR_INIT;
    json_t *written;

    if (!session_begin(&s, session_upload_arguments, false) || !check_filename(&s))
        return;
    json_t *arguments = json_pack(
        "{s:s, s:s, s:O, s:b}", "conversationId", s.id, "filename", s.a.filename, "base64",
        json_object_get(s.known, "content_base64"), "overwrite", s.a.overwrite);
    if (adapt_call(c, &tool_write_file, arguments, &inner, out, &written, &e) == 0)
        session_tell(out, json_pack("{s:s, s:o}", "session_id", s.id, "path",
                                    json_sprintf(SESSION_FOLDER "%s", s.a.filename)));
    else
        session_fail_err(out, &e, &codes);
}

/* ---- read ---- */

/* The name below the folder; NULL when the path leads elsewhere. */
static const char *name_of_path(const char *path)
{
    size_t len = strlen(SESSION_FOLDER);
    struct err e = ERR_INIT;

    if (strncmp(path, SESSION_FOLDER, len) != 0 ||
        files_check_name("path", path + len, strlen(path + len), &e) < 0)
        return NULL;
    return path + len;
}

/* Too large to be read whole: how large, and where it can be had. */
static void fail_too_large(const struct session_call *s, const char *name, const char *message)
{
    json_auto_t *row = adapt_find_file(s->mcp, s->id, name);

    session_tell(s->out, json_pack("{s:s, s:s, s:O?, s:O?}", "error", "artifact_too_large",
                                   "message", message, "size_bytes", json_object_get(row, "size"),
                                   "download_url", json_object_get(row, "url")));
}

static void tell_content(const struct session_call *s, const char *name, const char *type,
                         const struct buf *content)
{
    AUTO_BUF struct buf base64 = BUF_INIT(B64_ENCODED_LEN(content->len));
    json_t *model = session_artifact(name, (json_int_t)content->len, type, NULL);

    b64_encode(buf_str(content), content->len, &base64);
    json_object_del(model, "download_url");
    json_object_set_new(model, "content_base64", json_stringn(buf_str(&base64), base64.len));
    session_tell(s->out, model);
}

void session_read(const struct mcp_tool_call *c, struct mcp_result *out)
{
    static const struct session_codes codes = {
        .invalid = "not_found", .not_found = "not_found", .limit = "artifact_too_large"};
    const struct tools_app *app = c->app;
    AUTO_SESSION_CALL struct session_call s = {.mcp = c, .out = out, .bad_id = SESSION_ID_UNKNOWN};
    AUTO_BUF struct buf content = BUF_INIT((size_t)app->limits.file_max);
    const char *name, *type;
    struct err e = ERR_INIT;

    if (!session_begin(&s, session_read_arguments, true))
        return;
    name = name_of_path(s.a.path);
    if (!name)
        session_fail(out, "invalid_path",
                     "path must be that of a file below " SESSION_FOLDER ", without '..'");
    else if (content_read(app, c->tenant, s.id, name, &content, &type, &e) == 0)
        tell_content(&s, name, type, &content);
    else if (e.kind == ERR_LIMIT)
        fail_too_large(&s, name, e.text);
    else
        session_fail_err(out, &e, &codes);
}

/* ---- list ---- */

static void add_artifacts(const json_t *files, json_t *artifacts)
{
    size_t i;
    json_t *file;

    json_array_foreach(files, i, file)
    {
        const char *name = json_get_string(file, "name");
        const char *url = json_get_string(file, "url");

        if (name && url) /* files have one */
            json_array_append_new(
                artifacts, session_artifact(name, json_get_integer(file, "size", 0), NULL, url));
    }
}

void session_list(const struct mcp_tool_call *c, struct mcp_result *out)
{
    static const struct session_codes codes = {.not_found = SESSION_ID_UNKNOWN};
    AUTO_SESSION_CALL struct session_call s = {.mcp = c, .out = out, .bad_id = SESSION_ID_INVALID};
    json_auto_t *artifacts = json_array();
    struct err e = ERR_INIT;
    json_auto_t *page = NULL;

    if (!session_begin(&s, session_id_arguments, true))
        return;
    for (int i = 0; i < PAGES_MAX; i++) {
        struct broker_client client = tools_client(c->app, c->cancel_fd);
        const struct broker_listing listing = {.conversation = s.id,
                                               .folder = "",
                                               .after = json_get_string(page, "next"),
                                               .max = PAGE_FILES};
        json_t *next = broker_list_folder(&client, c->tenant, &listing, &e);

        json_decref(page);
        page = next;
        if (!page) {
            session_fail_err(out, &e, &codes);
            return;
        }
        add_artifacts(json_object_get(page, "files"), artifacts);
        if (!json_get_string(page, "next"))
            break;
    }
    session_tell(out, json_pack("{s:O}", "artifacts", artifacts));
}

/* ---- close ---- */

void session_close(const struct mcp_tool_call *c, struct mcp_result *out)
{
    static const struct session_codes codes = {.busy = "session_busy"};
    AUTO_SESSION_CALL struct session_call s = {.mcp = c, .out = out, .bad_id = SESSION_ID_UNKNOWN};
    struct err e = ERR_INIT;

    if (!session_begin(&s, session_id_arguments, true))
        return;
    if (adapt_delete(c, s.id, CLOSE_PATIENCE_MS, &e) == 0)
        session_tell(out, json_pack("{s:s}", "status", "closed"));
    else
        session_fail_err(out, &e, &codes);
}
