/*
 * The charts of the set "interpreter": one fixed program (charts.py) draws them all in a container.
 * It gets the arguments as JSON on its standard input; no code is made from them.
 */
#include "config.h"

#include "common/base/b64.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/tools/files/content.h"
#include "common/tools/list.h"
#include "common/tools/profiles/interpreter.h"
#include "common/tools/schemas.h"

#include <string.h>

#define STDIN_MAX  (8u * 1024 * 1024)
#define ANSWER_MAX 4096
#define PATH_BYTES 4096

struct chart {
    const char *kind; /* as charts.py names it */
    const char *file; /* where it goes unless the call says */
};

/* In the order of interpreter_chart_tools. */
static const struct chart charts[INTERPRETER_CHART_TOOLS] = {
    {"line", "line_chart.png"},      {"bar", "bar_chart.png"},
    {"scatter", "scatter_plot.png"}, {"interactive", "interactive_chart.html"},
    {"heatmap", "heatmap.png"},
};
static const struct chart *const interactive_chart = &charts[3];

static const struct arg_row arguments[] = {
    INTERPRETER_SESSION,
    INTERPRETER_TEXT(path, "save_path", false, PATH_BYTES, "Where the chart is saved."),
    {0},
};

/* ---- drawing ---- */

static json_t *input_new(const struct interpreter_call *s, const struct chart *chart,
                         const char *name)
{
    json_auto_t *input = json_pack("{s:s, s:s, s:O}", "kind", chart->kind, "name", name,
                                   "arguments", s->mcp->arguments);
    AUTO_BUF struct buf text = BUF_INIT(STDIN_MAX);

    /* What does not fit is left to the tool's own limit to refuse. */
    return json_write(input, &text) == 0 ? json_stringn(buf_str(&text), text.len) : json_object();
}

/* What the program says is wrong, else how it ended; NULL: nothing. New reference. */
static json_t *problem_of(const json_t *result, const struct mcp_result *inner)
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
static int draw(const struct interpreter_call *s, const struct chart *chart, const char *name)
{
    AUTO_MCP_RESULT struct mcp_result inner = MCP_RESULT_INIT;
    struct err e = ERR_INIT;
    json_t *result = NULL;
    json_auto_t *problem = NULL;

    if (adapt_call(s->mcp, &tool_run_code,
                   json_pack("{s:s, s:s, s:s, s:o, s:i}", "conversationId", s->a.session,
                             "language", "python", "code", charts_py, "stdin",
                             input_new(s, chart, name), "waitMs", 0),
                   &inner, s->out, &result, &e) < 0)
        problem = json_string(interpreter_text(&e));
    else
        problem = problem_of(result, &inner);
    if (problem)
        interpreter_fail(s->out, "%s", json_string_value(problem));
    return problem ? -1 : 0;
}

/* ---- telling ---- */

static json_t *base64_new(const struct buf *content)
{
    AUTO_BUF struct buf text = BUF_INIT(B64_ENCODED_LEN(content->len));

    b64_encode(buf_str(content), content->len, &text);
    return json_stringn(buf_str(&text), text.len);
}

static void tell(const struct interpreter_call *s, const struct chart *chart, const char *path,
                 const char *name)
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
        is_page ? json_from_bytes(buf_str(&content), content.len) : base64_new(&content), "message",
        message);
}

static void chart_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    const struct chart *chart = &charts[c->tool - interpreter_chart_tools];
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};
    struct err e = ERR_INIT;

    if (!interpreter_begin_active(&s, arguments))
        return;
    const char *path = s.a.path && *s.a.path ? s.a.path : chart->file;
    AUTO_FREE char *name = interpreter_name(out, path);
    if (!name)
        return;
    if (files_check_name("save_path", name, strlen(name), &e) < 0)
        interpreter_fail(out, "%s", e.text);
    else if (draw(&s, chart, name) == 0)
        tell(&s, chart, path, name);
}

/* ---- the tools ---- */

#define ROW(chart, text)                                                                           \
    {                                                                                              \
        .name = "generate_" #chart, .description = (text), .input_schema = schema_##chart,         \
        .call = chart_tool                                                                         \
    }

const struct mcp_tool interpreter_chart_tools[INTERPRETER_CHART_TOOLS] = {
    ROW(line_chart, "Draws a line chart of data, a list of objects: x_key is across, each of "
                    "y_keys is a line. Saved as PNG in the sandbox."),
    ROW(bar_chart, "Draws a bar chart of data, a list of objects: a group of bars per "
                   "category_key, one for each of value_keys. Saved as PNG in the sandbox."),
    ROW(scatter_plot, "Draws a scatter plot of data, a list of objects: x_key against y_key, "
                      "perhaps with color_key and size_key. Saved as PNG in the sandbox."),
    ROW(interactive_chart, "Draws an interactive chart of data, a list of objects, as one HTML "
                           "page that needs nothing else. Saved in the sandbox."),
    ROW(heatmap, "Draws a heatmap of data, rows of numbers. Saved as PNG in the sandbox."),
};
