/* Files of the set "interpreter". Paths are those of the sandbox: "/" is its directory. */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/tools/files/content.h"
#include "common/tools/list.h"
#include "common/tools/profiles/interpreter.h"
#include "common/tools/tools_app.h"

#include <string.h>

#define PATH_MAX_BYTES 4096
#define PAGE_FILES     1000
#define PAGES_MAX      20

static const struct arg_row list_arguments[] = {
    INTERPRETER_SESSION,
    INTERPRETER_TEXT(path, "path", false, PATH_MAX_BYTES, "The folder; / when absent."),
    {0},
};

static const struct arg_row read_arguments[] = {
    INTERPRETER_SESSION,
    INTERPRETER_TEXT(path, "file_path", true, PATH_MAX_BYTES, "The file to read."),
    {0},
};

#define CONTENT_ROW(text)                                                                          \
    {                                                                                              \
        .name = (text), .type = ARG_TEXT,                                                          \
        .offset = offsetof(struct interpreter_arguments, content), .required = true,               \
        .max_setting = ARG_SETTING(file_max), .help = "The file's text."                           \
    }

static const struct arg_row write_arguments[] = {
    INTERPRETER_SESSION,
    INTERPRETER_TEXT(path, "file_path", true, PATH_MAX_BYTES, "The file to write."),
    CONTENT_ROW("content"),
    {0},
};

static const struct arg_row upload_arguments[] = {
    INTERPRETER_SESSION,
    INTERPRETER_TEXT(file_name, "file_name", true, FILES_NAME_MAX, "Name of the file."),
    CONTENT_ROW("file_content"),
    INTERPRETER_TEXT(destination, "destination_path", false, PATH_MAX_BYTES,
                     "The folder to put it into; / when absent."),
    {0},
};

/* ---- list_files ---- */

static json_t *page_of(const struct interpreter_call *s, const char *folder, const char *after,
                       struct err *e)
{
    struct broker_client client = tools_client(s->mcp->app, s->mcp->cancel_fd);
    const struct broker_listing listing = {
        .conversation = s->a.session, .folder = folder, .after = after, .max = PAGE_FILES};

    return broker_list_folder(&client, s->mcp->tenant, &listing, e);
}

static void add_entries(const json_t *page, json_t *entries)
{
    size_t i;
    json_t *row;

    json_array_foreach(json_object_get(page, "files"), i, row)
    {
        const char *name = json_get_string(row, "name");
        const char *type = json_get_string(row, "type");
        const char *slash = name ? strrchr(name, '/') : NULL;

        if (name && type)
            json_array_append_new(entries,
                                  json_pack("{s:s, s:s, s:o}", "name", slash ? slash + 1 : name,
                                            "type", strcmp(type, "folder") == 0 ? "dir" : type,
                                            "path", json_sprintf("/%s", name)));
    }
}

static void list_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};
    json_auto_t *entries = json_array();
    json_auto_t *page = NULL;
    struct err e = ERR_INIT;

    if (!interpreter_begin_active(&s, list_arguments))
        return;
    const char *path = s.a.path ? s.a.path : "/";
    AUTO_FREE char *folder = interpreter_name(out, path);
    for (int i = 0; folder && i < PAGES_MAX; i++) {
        json_t *next = page_of(&s, folder, json_get_string(page, "next"), &e);

        json_decref(page);
        page = next;
        if (!page) {
            interpreter_fail(out, "%s", interpreter_text(&e));
            return;
        }
        add_entries(page, entries);
        if (!json_get_string(page, "next"))
            break;
    }
    if (folder)
        out->structured = json_pack("{s:s, s:O}", "path", path, "files", entries);
}

/* ---- read_file ---- */

static void read_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    const struct tools_app *app = c->app;
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};
    AUTO_BUF struct buf content = BUF_INIT((size_t)app->limits.file_max);
    struct err e = ERR_INIT;
    const char *type;

    if (!interpreter_begin_active(&s, read_arguments))
        return;
    AUTO_FREE char *name = interpreter_name(out, s.a.path);
    if (!name)
        return;
    if (files_check_name("file_path", name, strlen(name), &e) < 0 ||
        content_read(app, c->tenant, s.a.session, name, &content, &type, &e) < 0) {
        interpreter_fail(out, "%s", interpreter_text(&e));
        return;
    }
    json_t *text = json_stringn(buf_str(&content), content.len);
    if (text)
        out->structured = json_pack("{s:s, s:o}", "path", s.a.path, "content", text);
    else
        interpreter_fail(out, "%s is not text", s.a.path);
}

/* ---- write_file, upload_file ---- */

static void write_text(const struct interpreter_call *s, const char *path, const char *content,
                       const char *done)
{
    AUTO_MCP_RESULT struct mcp_result inner = MCP_RESULT_INIT;
    AUTO_FREE char *name = interpreter_name(s->out, path);
    struct err e = ERR_INIT;
    json_t *written;

    if (!name)
        return;
    if (adapt_call(s->mcp, &tool_write_file,
                   json_pack("{s:s, s:s, s:O, s:b}", "conversationId", s->a.session, "filename",
                             name, "text", json_object_get(s->known, content), "overwrite", 1),
                   &inner, s->out, &written, &e) == 0)
        s->out->structured = json_pack("{s:s, s:s}", "path", path, "message", done);
    else
        interpreter_fail(s->out, "%s", interpreter_text(&e));
}

static void write_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};

    if (interpreter_begin_active(&s, write_arguments))
        write_text(&s, s.a.path, "content", "File written successfully");
}

static void upload_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};

    if (!interpreter_begin_active(&s, upload_arguments))
        return;
    const char *folder = s.a.destination && *s.a.destination ? s.a.destination : "/";
    const char *between = folder[strlen(folder) - 1] == '/' ? "" : "/";
    AUTO_FREE char *path = mem_printf("%s%s%s", folder, between, s.a.file_name);
    write_text(&s, path, "file_content", "File uploaded successfully");
}

/* ---- the tools ---- */

const struct mcp_tool interpreter_file_tools[INTERPRETER_FILE_TOOLS] = {
    {.name = "list_files",
     .hints = {.read_only = true},
     .description = "Lists the files of a folder in a sandbox.",
     .arguments = list_arguments,
     .call = list_tool},
    {.name = "read_file",
     .hints = {.read_only = true},
     .description = "Reads a text file of a sandbox.",
     .arguments = read_arguments,
     .call = read_tool},
    {.name = "write_file",
     .hints = {.destructive = true, .idempotent = true},
     .description = "Writes a text file of a sandbox.",
     .arguments = write_arguments,
     .call = write_tool},
    {.name = "upload_file",
     .hints = {.destructive = true, .idempotent = true},
     .description = "Puts a text file into a folder of a sandbox.",
     .arguments = upload_arguments,
     .call = upload_tool},
};
