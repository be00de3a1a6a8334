/* import_url: fetches a file from a public server into a conversation's sandbox. */
#include "config.h"

#include "common/base/mem.h"
#include "common/fetch/fetch.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/files/media.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/files/changes.h"
#include "common/tools/files/store.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

#include <inttypes.h>

struct import_url {
    const char *conversation, *url, *filename;
};

static const struct arg_row import_url_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct import_url, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = CONVERSATION_HELP},
    {.name = "url",
     .type = ARG_STRING,
     .offset = offsetof(struct import_url, url),
     .required = true,
     .max = FETCH_URL_MAX,
     .help = "An https:// URL on a public server, without user name or password."},
    {.name = "filename",
     .type = ARG_STRING,
     .offset = offsetof(struct import_url, filename),
     .max = FILES_NAME_MAX,
     .help = "Name below /data; may contain folders, which are made. An existing file is replaced. "
             "When absent: the last part of the URL's path."},
    {0},
};

static char *describe(void *app)
{
    const struct tools_app *a = app;

    if (!a->limits.import)
        return mem_strdup("Switched off on this server.");
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
    const struct import_url *x = arguments;
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    const struct changes changes = {c->server, c->tenant, x->conversation};

    if (fetch_check_url(x->url, e) < 0)
        return -1;
    json_auto_t *file = broker_import_url(&client, c->tenant, x->conversation, x->url, x->filename,
                                          e);
    if (!file)
        return -1;
    const char *name = json_get_string(file, "name"), *url = json_get_string(file, "url");
    if (!name || !url)
        return err_set(e, ERR_PROTOCOL, "the broker named no file");
    const char *mime = media_type(name, NULL, 0);
    json_int_t size = json_get_integer(file, "size", 0);
    changes_tell_file(&changes, name);
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
    .describe = describe,
    .arguments = import_url_arguments,
    .arguments_size = sizeof(struct import_url),
    .run = import_url,
};
