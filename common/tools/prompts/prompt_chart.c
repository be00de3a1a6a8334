/* make_chart: a chart of a file's data. */
#include "config.h"

#include "common/tools/broker_access.h"
#include "common/tools/prompts/prompts.h"

#include <string.h>

static const struct mcp_prompt_argument arguments[] = {
    PROMPT_CONVERSATION,
    PROMPT_FILE,
    {.name = "show",
     .title = "What to show",
     .help = "What the chart is to show, e.g. sales per month and region.",
     .required = true},
    {.name = "format",
     .title = "Format",
     .help = "png (the default), svg or pdf.",
     .required = false},
    {0},
};

static const char *const formats[] = {"png", "svg", "pdf"};

static const char *format_of(const struct mcp_prompt_call *call, struct err *e)
{
    const char *format = prompt_argument(call, "format");

    if (!format)
        return formats[0];
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (strcmp(formats[i], format) == 0)
            return formats[i];
    err_set(e, ERR_INVALID, "argument 'format' must be one of: png, svg, pdf");
    return NULL;
}

static void add_task(const char *show, struct buf *out)
{
    buf_add_str(out, "Make a chart from the data file described below. It is to show:\n\n");
    prompt_add_block(out, show, strlen(show));
    buf_add_char(out, '\n');
}

static void add_steps(const struct tools_app *app, const char *format, struct buf *out)
{
    buf_addf(out, "Proceed like this%s:\n\n",
             runners_have(app, "python") ? ", in Python with pandas and matplotlib" : "");
    buf_addf(
        out,
        "1. Load the file and check that it holds what the chart needs: the columns, their "
        "types, missing values. If it does not, say so instead of drawing something else.\n"
        "2. Choose the kind of chart that fits the question: lines for time, bars for amounts of "
        "categories (starting at zero), points for relations, a histogram for a distribution.\n"
        "3. Give it a title that says what is to be seen, names and units on the axes, a legend "
        "only where there are several series, and labels that do not overlap.\n"
        "4. Save it as /data/chart.%s and look at the picture that comes back; when something "
        "cannot be read, draw it again.\n"
        "5. Give the link to the chart, and say in two sentences what it shows and which rows "
        "were left out, if any.\n",
        format);
}

static json_t *get(const struct mcp_prompt_call *call, struct mcp_need *need, struct err *e)
{
    const char *conversation = prompt_argument(call, "conversationId");
    const char *show = prompt_argument(call, "show");
    const char *format = format_of(call, e);
    AUTO_BUF struct buf text = BUF_INIT(PROMPT_TEXT_MAX);

    (void)need;
    if (!format)
        return NULL;
    if (!show) {
        err_set(e, ERR_INVALID, "argument 'show' must not be empty");
        return NULL;
    }
    add_task(show, &text);
    if (prompt_add_file(call, conversation, prompt_argument(call, "file"), &text, e) < 0)
        return NULL;
    prompt_add_tool(conversation, &text);
    add_steps(call->app, format, &text);
    return prompt_messages(&text, e);
}

static json_t *complete_format(const char *value)
{
    json_t *found = json_array();

    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (strncmp(formats[i], value, strlen(value)) == 0)
            json_array_append_new(found, json_string(formats[i]));
    return found;
}

static json_t *complete(void *app, const char *tenant, const char *argument, const char *value,
                        const json_t *context)
{
    if (strcmp(argument, "format") == 0)
        return complete_format(value);
    return prompt_complete(app, tenant, argument, value, context);
}

const struct mcp_prompt prompt_make_chart = {
    .name = "make_chart",
    .title = "Make a chart",
    .help = "Draws a readable chart from a file of the sandbox and gives its download link.",
    .arguments = arguments,
    .get = get,
    .complete = complete,
};
