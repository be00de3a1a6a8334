/* write_file: makes a file in a conversation's sandbox from text or base64. */
#include "config.h"

#include "common/base/mem.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/conversation_args.h"
#include "common/tools/files/store.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

#include <inttypes.h>

struct write_file {
    const char *conversation;
    const char *filename;
    struct run_text text;
    struct run_text base64;
    bool overwrite;
};

static const struct arg_row write_file_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct write_file, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = CONVERSATION_HELP},
    {.name = "filename",
     .type = ARG_STRING,
     .offset = offsetof(struct write_file, filename),
     .required = true,
     .max = FILES_NAME_MAX,
     .help = "Name below /data; may contain folders (src/main.py), which are made."},
    {.name = "text",
     .type = ARG_TEXT,
     .offset = offsetof(struct write_file, text),
     .max_setting = ARG_SETTING(file_max),
     .help = "The file's content as text, stored as UTF-8. Give this or base64."},
    {.name = "base64",
     .type = ARG_BASE64,
     .offset = offsetof(struct write_file, base64),
     .max_setting = ARG_SETTING(file_max),
     .help = "The file's content in base64 (standard alphabet, padded, no line breaks)."},
    {.name = "overwrite",
     .type = ARG_BOOL,
     .offset = offsetof(struct write_file, overwrite),
     .help = "Replace a file of that name; otherwise that is an error."},
    {0},
};

static char *describe(void *app)
{
    const struct tools_app *a = app;

    return mem_printf("Writes a file of the conversation's sandbox (/data/<filename> for run_code) "
                      "from text or base64, at most %" PRIu64 " bytes.",
                      a->limits.file_max);
}

static int write_file(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                      struct err *e)
{
    const struct write_file *w = arguments;
    const struct tools_app *app = c->app;
    AUTO_BUF struct buf decoded = BUF_INIT(0);
    struct store s = {.conversation = w->conversation,
                      .filename = w->filename,
                      .content = w->text,
                      .replace = w->overwrite};

    if (!w->text.data == !w->base64.data)
        return err_set(e, ERR_INVALID, "give the content either as 'text' or as 'base64'");
    if (w->base64.data) {
        if (store_decode("base64", w->base64, app->limits.file_max, &decoded, e) < 0)
            return -1;
        s.content = (struct run_text){buf_str(&decoded), decoded.len};
    }
    json_t *file = store_file(c, &s, out, e);
    if (!file && e->kind == ERR_EXISTS)
        err_set(e, ERR_EXISTS, "there is something of that name already: overwrite replaces it");
    if (!file)
        return -1;
    out->structured = json_pack("{s:o}", "file", file);
    store_add_retention(file, out->structured, out);
    return 0;
}

const struct mcp_tool tool_write_file = {
    .name = "write_file",
    .title = "Write a file",
    /* It replaces a file of that name only when it is told to. */
    .hints = {.destructive = true},
    .output_schema = schema_write_file,
    .describe = describe,
    .arguments = write_file_arguments,
    .arguments_size = sizeof(struct write_file),
    .run = write_file,
};
