/*
 * The set "interpreter": how its calls begin and are answered; its files and charts. Paths are
 * those of the sandbox: "/" is its directory. One fixed program (charts.py) draws all charts in a
 * container; it gets the arguments as JSON on its standard input, so no code is made from them.
 */
#include "config.h"

#include "common/base/mem.h"
#include "common/base/tenants.h"
#include "common/protocol/client_files.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/tools/files/content.h"
#include "common/tools/list.h"
#include "common/tools/profiles/interpreter_call.h"
#include "common/tools/tools_app.h"

#include <stdarg.h>
#include <string.h>

#define PATH_MAX_BYTES 4096
#define TEXT_MAX       8192

void interpreter_call_clear(struct interpreter_call *s)
{
    json_decref(s->known);
    s->known = NULL;
}

void interpreter_fail(struct mcp_result *out, const char *fmt, ...)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    out->structured = json_pack("{s:o}", "error", json_from_bytes(buf_str(&text), text.len));
}

const char *interpreter_text(struct err *e)
{
    report_soften(e);
    return e->text;
}

bool interpreter_begin(struct interpreter_call *s, const struct arg_row *table)
{
    struct err e = ERR_INIT;

    if (adapt_fill(table, s->mcp, &s->a, &s->known, &e) == 0)
        return true;
    report_failure(s->out, &e);
    return false;
}

/* Is a row of broker_psandbox_status a running or paused interpreter? */
static bool is_interpreter(const json_t *row)
{
    const char *status = json_get_string(row, "status");
    const char *language = json_get_string(row, "language");

    return json_is_true(json_object_get(row, "session")) && status && language &&
           (strcmp(status, "running") == 0 || strcmp(status, "paused") == 0) &&
           tenants_list_has(language, "python");
}

json_t *interpreter_sessions(const struct mcp_tool_call *c, const char *session, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    json_auto_t *answer = broker_psandbox_status(&client, NULL, session, e);
    json_t *names = json_array(), *row;

    for (size_t i = 0; (row = json_array_get(json_object_get(answer, "sandboxes"), i)); i++) {
        if (is_interpreter(row))
            json_array_append(names, json_object_get(row, "conversationId"));
    }
    if (answer)
        return names;
    json_decref(names);
    return NULL;
}

int interpreter_is_active(const struct mcp_tool_call *c, const char *session, struct err *e)
{
    json_auto_t *names = interpreter_sessions(c, session, e);

    if (!names)
        return e->kind == ERR_NOT_FOUND ? 0 : -1;
    return json_array_size(names) > 0;
}

bool interpreter_begin_active(struct interpreter_call *s, const struct arg_row *table)
{
    struct err e = ERR_INIT;

    if (!interpreter_begin(s, table))
        return false;
    int active = interpreter_is_active(s->mcp, s->a.session, &e);
    if (active < 0)
        interpreter_fail(s->out, "%s", interpreter_text(&e));
    else if (active == 0)
        interpreter_fail(s->out, "No active sandbox found with session ID: %s", s->a.session);
    return active > 0;
}

char *interpreter_name(struct mcp_result *out, const char *path)
{
    static const char *const roots[] = {"/data", "/mnt/data", "/", NULL};
    struct err e = ERR_INIT;
    char *name = adapt_name(path, roots, &e);

    if (!name)
        interpreter_fail(out, "%s", e.text);
    return name;
}

/* ---- arguments ---- */

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
    ARG_ROW(struct interpreter_arguments, content, text, ARG_TEXT, .required = true,               \
            .max_setting = ARG_SETTING(file_max), .help = "The file's text.")

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

static void add_entries(const json_t *files, json_t *entries)
{
    json_t *row;

    for (size_t i = 0; (row = json_array_get(files, i)); i++) {
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
    struct err e = ERR_INIT;

    if (!interpreter_begin_active(&s, list_arguments))
        return;
    const char *path = s.a.path ? s.a.path : "/";
    AUTO_FREE char *folder = interpreter_name(out, path);
    if (!folder)
        return;
    if (adapt_list_folder(c, s.a.session, folder, add_entries, entries, &e) == 0)
        out->structured = json_pack("{s:s, s:O}", "path", path, "files", entries);
    else
        interpreter_fail(out, "%s", interpreter_text(&e));
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
    AUTO_MCP_RESULT struct mcp_result inner = {0};
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

#define STDIN_MAX  (8u * 1024 * 1024)
#define ANSWER_MAX 4096

struct chart {
    const char *kind; /* as charts.py names it */
    const char *file; /* default of save_path */
};

/* In the order of interpreter_chart_tools. */
static const struct chart charts[INTERPRETER_CHART_TOOLS] = {
    {"line", "line_chart.png"},      {"bar", "bar_chart.png"},
    {"scatter", "scatter_plot.png"}, {"interactive", "interactive_chart.html"},
    {"heatmap", "heatmap.png"},
};
static const struct chart *const interactive_chart = &charts[3];

static const struct arg_row chart_arguments[] = {
    INTERPRETER_SESSION,
    INTERPRETER_TEXT(path, "save_path", false, PATH_MAX_BYTES, "Where the chart is saved."),
    {0},
};

/* ---- drawing ---- */

static json_t *chart_input_new(const struct interpreter_call *s, const struct chart *chart,
                               const char *name)
{
    json_auto_t *input = json_pack("{s:s, s:s, s:O}", "kind", chart->kind, "name", name,
                                   "arguments", s->mcp->arguments);
    AUTO_BUF struct buf text = BUF_INIT(STDIN_MAX);

    /* run_code refuses an input that is still too long. */
    return json_write(input, &text) == 0 ? json_stringn(buf_str(&text), text.len) : json_object();
}

/* The error that the program reported, else how it ended; NULL: none. New reference. */
static json_t *chart_problem(const json_t *result, const struct mcp_result *inner)
{
    const char *text = json_get_string(result, "stdout");
    struct err e = ERR_INIT;

    if (inner->is_error)
        return json_string(mcp_result_text(inner));
    if (json_is_true(json_object_get(result, "success")) && text && strlen(text) < ANSWER_MAX) {
        json_auto_t *answer = json_parse(text, strlen(text), JSON_MAX_DEPTH, &e);
        if (json_is_true(json_object_get(answer, "ok")))
            return NULL;
        if (json_is_string(json_object_get(answer, "error")))
            return json_incref(json_object_get(answer, "error"));
    }
    return json_string("the chart could not be drawn");
}

/* 0: the chart is in the sandbox under this name; -1: out says why not. */
static int chart_draw(const struct interpreter_call *s, const struct chart *chart, const char *name)
{
    AUTO_MCP_RESULT struct mcp_result inner = {0};
    struct err e = ERR_INIT;
    json_t *result = NULL;
    json_auto_t *problem = NULL;

    if (adapt_call(s->mcp, &tool_run_code,
                   json_pack("{s:s, s:s, s:s, s:o}", "conversationId", s->a.session, "language",
                             "python", "code", charts_py, "stdin", chart_input_new(s, chart, name)),
                   &inner, s->out, &result, &e) < 0)
        problem = json_string(interpreter_text(&e));
    else
        problem = chart_problem(result, &inner);
    if (problem)
        interpreter_fail(s->out, "%s", json_string_value(problem));
    return problem ? -1 : 0;
}

/* ---- telling ---- */

static void chart_tell(const struct interpreter_call *s, const struct chart *chart,
                       const char *path, const char *name)
{
    const struct tools_app *app = s->mcp->app;
    AUTO_BUF struct buf content = BUF_INIT((size_t)app->limits.file_max);
    bool is_page = chart == interactive_chart;
    const char *chosen = json_get_string(s->mcp->arguments, "chart_type");
    const char *title = json_get_string(s->mcp->arguments, "title"), *type;
    AUTO_FREE char *message = mem_printf("Chart saved to %s", path);
    struct err e = ERR_INIT;

    if (content_read(app, s->mcp->tenant, s->a.session, name, &content, &type, &e) < 0) {
        interpreter_fail(s->out, "%s", interpreter_text(&e));
        return;
    }
    s->out->structured = json_pack(
        "{s:s, s:s, s:s, s:o, s:s}", "chart_type", is_page && chosen ? chosen : chart->kind,
        "title", title ? title : "", "file_path", path, is_page ? "html_content" : "base64_image",
        is_page ? json_from_bytes(buf_str(&content), content.len) : content_base64(&content),
        "message", message);
}

static void chart_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    const struct chart *chart = &charts[c->tool - interpreter_chart_tools];
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};
    struct err e = ERR_INIT;

    if (!interpreter_begin_active(&s, chart_arguments))
        return;
    const char *path = s.a.path && *s.a.path ? s.a.path : chart->file;
    AUTO_FREE char *name = interpreter_name(out, path);
    if (!name)
        return;
    if (files_check_name("save_path", name, strlen(name), &e) < 0)
        interpreter_fail(out, "%s", e.text);
    else if (chart_draw(&s, chart, name) == 0)
        chart_tell(&s, chart, path, name);
}

/* ---- the tools ---- */

#define CHART_TOOL(chart, text)                                                                    \
    {                                                                                              \
        .name = "generate_" #chart, .description = (text), .input_schema = schema_##chart,         \
        .call = chart_tool                                                                         \
    }

const struct mcp_tool interpreter_chart_tools[INTERPRETER_CHART_TOOLS] = {
    CHART_TOOL(line_chart,
               "Draws a line chart of data, a list of objects: x_key is across, each of "
               "y_keys is a line. Saved as PNG in the sandbox."),
    CHART_TOOL(bar_chart, "Draws a bar chart of data, a list of objects: a group of bars per "
                          "category_key, one for each of value_keys. Saved as PNG in the sandbox."),
    CHART_TOOL(scatter_plot,
               "Draws a scatter plot of data, a list of objects: x_key against y_key, "
               "perhaps with color_key and size_key. Saved as PNG in the sandbox."),
    CHART_TOOL(interactive_chart,
               "Draws an interactive chart of data, a list of objects, as one HTML "
               "page that needs nothing else. Saved in the sandbox."),
    CHART_TOOL(heatmap, "Draws a heatmap of data, rows of numbers. Saved as PNG in the sandbox."),
};
