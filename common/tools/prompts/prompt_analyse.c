/* analyse_data_file: what is in a file, told with numbers that were computed. */
#include "config.h"

#include "common/tools/broker_access.h"
#include "common/tools/prompts/prompts.h"

#include <string.h>

static const struct mcp_prompt_argument arguments[] = {
    PROMPT_CONVERSATION,
    PROMPT_FILE,
    {.name = "question",
     .title = "Question",
     .help = "What you want to know; without it you get an overview.",
     .required = false},
    {0},
};

static void add_task(const char *question, struct buf *out)
{
    if (question) {
        buf_add_str(out, "Answer this question about the data file described below:\n\n");
        prompt_add_block(out, question, strlen(question));
    } else {
        buf_add_str(out, "Analyse the data file described below: what is in it, how good it is, "
                         "and what is remarkable about it.\n");
    }
    buf_add_char(out, '\n');
}

static void add_steps(const struct tools_app *app, struct buf *out)
{
    buf_addf(out, "Proceed like this%s:\n\n",
             runners_have(app, "python") ? ", in Python with pandas where that fits" : "");
    buf_add_str(
        out, "1. Load the file and look at it before you compute anything: rows, columns, types, "
             "missing values, duplicates, ranges. When the encoding, the separator, the dates or "
             "the numbers are not what they seem, find out rather than guess.\n"
             "2. Say what you take each column to mean, and where you are not sure.\n"
             "3. Compute. Every number in your answer must have been printed by a program.\n"
             "4. Where a picture says more than a table, write one chart as a PNG file to /data.\n"
             "5. Answer in a few sentences first; then the numbers; then what limits them (missing "
             "values, outliers, few rows). Do not claim causes that the data cannot show.\n");
}

static json_t *get(const struct mcp_prompt_call *call, struct mcp_need *need, struct err *e)
{
    const char *conversation = prompt_argument(call, "conversationId");
    AUTO_BUF struct buf text = BUF_INIT(PROMPT_TEXT_MAX);

    (void)need;
    add_task(prompt_argument(call, "question"), &text);
    if (prompt_add_file(call, conversation, prompt_argument(call, "file"), &text, e) < 0)
        return NULL;
    prompt_add_tool(conversation, &text);
    add_steps(call->app, &text);
    return prompt_messages(&text, e);
}

const struct mcp_prompt prompt_analyse_data_file = {
    .name = "analyse_data_file",
    .title = "Analyse a data file",
    .help = "Looks into a file of the sandbox (CSV, JSON, Excel, Parquet…) and answers a question "
            "about it, or gives an overview, with computed numbers.",
    .arguments = arguments,
    .get = get,
    .complete = prompt_complete,
};
