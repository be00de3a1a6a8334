/* debug_program: find out why a program fails, by running it. */
#include "config.h"

#include "common/mcp/features/content.h"
#include "common/sandbox/files/files.h"
#include "common/tools/prompts/prompts.h"

#include <string.h>

static const struct mcp_prompt_argument arguments[] = {
    {.name = "language",
     .title = "Language",
     .help = "The language that the program is written in.",
     .required = true},
    {.name = "program",
     .title = "Program",
     .help = "The program's text; or, together with conversationId, its file's name below /data.",
     .required = true},
    {.name = "problem",
     .title = "Problem",
     .help = "The error message, or what happens and what should happen instead.",
     .required = false},
    {.name = "conversationId",
     .title = "Conversation",
     .help = "The conversationId whose sandbox holds the program or the files that it reads.",
     .required = false},
    {0},
};

static bool is_file_name(const char *program)
{
    struct err e = ERR_INIT;

    return files_check_name("program", program, strlen(program), &e) == 0;
}

/* A file when the conversation has one of that name, else the text itself. */
static void add_program(const struct mcp_prompt_call *call, const char *conversation,
                        const char *program, struct buf *out)
{
    struct err e = ERR_INIT;

    if (conversation && is_file_name(program) &&
        prompt_add_file(call, conversation, program, out, &e) == 0)
        return;
    buf_add_str(out, "The program:\n\n");
    prompt_add_block(out, program, strlen(program));
    buf_add_char(out, '\n');
}

static void add_problem(const char *problem, struct buf *out)
{
    if (!problem) {
        buf_add_str(out, "What is wrong with it was not said: run it and see.\n\n");
        return;
    }
    buf_add_str(out, "What is wrong with it:\n\n");
    prompt_add_block(out, problem, strlen(problem));
    buf_add_char(out, '\n');
}

static void add_steps(const char *conversation, const char *language, struct buf *out)
{
    if (conversation)
        prompt_add_tool(conversation, out);
    else
        buf_add_str(out, "Use the tool run_code with one new conversationId for all runs.\n\n");
    buf_add_str(out, "Proceed like this, in ");
    content_clean_name(language, out);
    buf_add_str(
        out,
        ":\n\n"
        "1. Run the program as it is and reproduce the failure. If it needs input, arguments "
        "or files that are missing, make the smallest ones that do. If it does not fail, say "
        "so.\n"
        "2. Read the whole message, then say what you suspect and how a run can prove or refute "
        "it. Print values where you suspect it; change one thing at a time.\n"
        "3. When the cause is proved, make the smallest change that removes it. Do not rewrite "
        "what works, and do not hide the error.\n"
        "4. Run the changed program again with the input that failed and with one that worked.\n"
        "5. Answer with the cause in one or two sentences, the change as a diff, and what the "
        "last run printed.\n");
}

static json_t *get(const struct mcp_prompt_call *call, struct mcp_need *need, struct err *e)
{
    const char *conversation = prompt_argument(call, "conversationId");
    const char *language = prompt_argument(call, "language");
    const char *program = prompt_argument(call, "program");
    AUTO_BUF struct buf text = BUF_INIT(PROMPT_TEXT_MAX);

    (void)need;
    if (!language || !program) {
        err_set(e, ERR_INVALID, "arguments 'language' and 'program' must not be empty");
        return NULL;
    }
    buf_add_str(&text, "Find out why the program below fails, and mend it.\n\n");
    add_program(call, conversation, program, &text);
    add_problem(prompt_argument(call, "problem"), &text);
    add_steps(conversation, language, &text);
    return prompt_messages(&text, e);
}

const struct mcp_prompt prompt_debug_program = {
    .name = "debug_program",
    .title = "Debug a program",
    .help = "Reproduces a program's failure in the sandbox, proves its cause and mends it.",
    .arguments = arguments,
    .get = get,
    .complete = prompt_complete,
};
