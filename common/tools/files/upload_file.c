/* upload_file: puts a file into a conversation's sandbox. */
#include "config.h"

#include "common/base/mem.h"
#include "common/mcp/features/content.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/conversation_args.h"
#include "common/tools/files/store.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

#include <inttypes.h>

struct upload {
    const char *conversation;
    const char *filename;
    struct run_text content;
};

static const struct arg_row upload_file_arguments[] = {
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

static char *describe(void *app)
{
    const struct tools_app *a = app;

    return mem_printf(
        "Puts a file into the conversation's sandbox, where programs started by "
        "run_code with the same conversationId find it as /data/<filename>. The answer "
        "has its download link. At most %" PRIu64 " bytes.",
        a->limits.file_max);
}

static json_t *message_new(const struct upload *u, size_t len)
{
    AUTO_BUF struct buf message = BUF_INIT(8192);

    buf_add_str(&message, "File '");
    content_clean_name(u->filename, &message);
    buf_addf(&message, "' uploaded successfully (%zu bytes)", len);
    return json_stringn(buf_str(&message), message.len);
}

static int upload(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                  struct err *e)
{
    const struct upload *u = arguments;
    const struct tools_app *app = c->app;
    AUTO_BUF struct buf content = BUF_INIT(0);
    struct store s = {.conversation = u->conversation, .filename = u->filename, .replace = true};

    if (store_decode("content", u->content, app->limits.file_max, &content, e) < 0)
        return -1;
    s.content = (struct run_text){buf_str(&content), content.len};
    json_t *file = store_file(c, &s, out, e);
    if (!file)
        return -1;
    out->structured = json_pack("{s:b, s:o, s:o}", "success", 1, "message",
                                message_new(u, content.len), "file", file);
    store_add_retention(file, out->structured, out);
    return 0;
}

static const char *const aliases[] = {"sandbox.upload_file", NULL};

const struct mcp_tool tool_upload_file = {
    .name = "upload_file",
    .aliases = aliases,
    .title = "Upload a file",
    /* It replaces a file of that name, in a sandbox that is the conversation's own. */
    .hints = {.destructive = true, .idempotent = true},
    .output_schema = schema_upload_file,
    .describe = describe,
    .arguments = upload_file_arguments,
    .arguments_size = sizeof(struct upload),
    .run = upload,
};
