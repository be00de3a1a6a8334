/* The files of a tenant's sandboxes as MCP resources. */
#include "config.h"

#include "common/base/b64.h"
#include "common/mcp/features/content.h"
#include "common/mcp/features/offer.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/media.h"
#include "common/tools/files/content.h"
#include "common/tools/files/uri.h"
#include "common/tools/list.h"
#include "common/tools/tools_app.h"

#include <string.h>
#include <time.h>

#define PAGE_FILES   100
#define CURSOR_MAX   8192 /* characters */
#define CURSOR_DEPTH 2

/* ---- cursors: the broker's position of the next page, as JSON in base64 ---- */

static char *cursor_new(const json_t *next)
{
    AUTO_BUF struct buf text = BUF_INIT(CURSOR_MAX);
    AUTO_BUF struct buf cursor = BUF_INIT(B64_ENCODED_LEN(CURSOR_MAX));

    if (!next || json_write(next, &text) < 0)
        return NULL;
    b64_encode(text.data, text.len, &cursor);
    return buf_take(&cursor);
}

static json_t *cursor_read(const char *cursor, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(B64_DECODED_MAX(CURSOR_MAX));
    size_t len = strlen(cursor);
    struct err why = ERR_INIT;
    json_t *after = NULL;

    if (len <= CURSOR_MAX && b64_decode(cursor, len, &text) == 0 && buf_ok(&text))
        after = json_parse(buf_str(&text), text.len, CURSOR_DEPTH, &why);
    if (!after)
        err_set(e, ERR_INVALID, "the cursor is not one of this server's");
    return after;
}

/* ---- the list ---- */

static json_t *time_new(int64_t unix_s)
{
    char text[40];
    time_t seconds = (time_t)unix_s;
    struct tm tm;

    /* A program may set any time; years that the format cannot express are left out. */
    if (unix_s < 0 || !gmtime_r(&seconds, &tm) || tm.tm_year > 9999 - 1900 ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        return NULL;
    return json_string(text);
}

static json_t *entry_new(const char *conversation, const char *name, const json_t *file)
{
    AUTO_FREE char *uri = uri_of_file(conversation, name);
    AUTO_BUF struct buf shown = BUF_INIT(3 * strlen(name) + 1);
    const char *type = media_type(name, NULL, 0);
    json_t *modified = time_new(json_get_integer(file, "modified", -1));
    json_t *entry = json_object();

    content_clean_name(name, &shown);
    json_object_set_new(entry, "uri", json_string(uri));
    json_object_set_new(entry, "name", json_string(buf_str(&shown)));
    /* Most types follow from the name; the others would take a request each. */
    if (strcmp(type, "application/octet-stream") != 0)
        json_object_set_new(entry, "mimeType", json_string(type));
    json_object_set_new(entry, "size", json_integer(json_get_integer(file, "size", 0)));
    if (modified)
        json_object_set_new(entry, "annotations", json_pack("{s:o}", "lastModified", modified));
    return entry;
}

static json_t *resources_list(void *app, const char *tenant, const json_t *named,
                              const char *cursor, char **out_next, struct err *e)
{
    struct broker_client client = tools_client(app, tenant, -1);
    json_auto_t *after = NULL;

    *out_next = NULL;
    if (cursor && *cursor && !(after = cursor_read(cursor, e)))
        return NULL;
    if (json_array_size(named) == 0)
        return json_array();
    json_auto_t *page = broker_list_files(&client, named, after, PAGE_FILES, e);
    if (!page) {
        report_soften(e);
        return NULL;
    }
    *out_next = cursor_new(json_object_get(page, "next"));
    json_t *entries = json_array(), *file;
    for (size_t i = 0; (file = json_array_get(json_object_get(page, "files"), i)); i++) {
        const char *conversation = json_get_string(file, "conversationId");
        const char *name = json_get_string(file, "name");

        if (conversation && name)
            json_array_append_new(entries, entry_new(conversation, name, file));
    }
    return entries;
}

static json_t *resources_templates(void *app)
{
    (void)app;
    return json_pack("[{s:s, s:s, s:s, s:s}, o]", "uriTemplate", URI_TEMPLATE, "name",
                     "sandbox-file", "title", "A file in a sandbox", "description",
                     "A file that upload_file or a program put into the sandbox of a conversation. "
                     "path is its name below /data.",
                     sandbox_logs_template());
}

/* ---- reading ---- */

static json_t *contents_new(const char *uri, const char *type, const struct buf *content)
{
    json_t *one = json_pack("{s:s, s:s}", "uri", uri, "mimeType", type);

    if (content_is_text(type, content))
        json_object_set_new(one, "text", json_stringn(buf_str(content), content->len));
    else
        json_object_set_new(one, "blob", content_base64(content));
    return json_pack("[o]", one);
}

static json_t *resources_read(void *app, const char *tenant, const char *uri, struct err *e)
{
    const struct tools_app *a = app;
    AUTO_URI_FILE struct uri_file f = {0};
    AUTO_BUF struct buf content = BUF_INIT((size_t)a->limits.file_max);
    const char *type;

    if (strncmp(uri, SANDBOX_LOGS_SCHEME, strlen(SANDBOX_LOGS_SCHEME)) == 0)
        return sandbox_logs_read(a, tenant, uri, e);
    if (uri_parse(uri, &f, e) < 0)
        return NULL;
    if (content_read(a, tenant, f.conversation, f.name, &content, &type, e) < 0) {
        /* One text, whichever part does not exist: it must not tell one tenant about another. */
        if (e->kind == ERR_NOT_FOUND || e->kind == ERR_INVALID)
            err_set(e, ERR_NOT_FOUND, "there is no such resource");
        report_soften(e);
        return NULL;
    }
    return contents_new(uri, type, &content);
}

static void resources_belongs(const char *uri, char **out_conversation, char **out_id)
{
    AUTO_URI_FILE struct uri_file f = {0};
    struct err e = ERR_INIT;

    if (strncmp(uri, SANDBOX_LOGS_SCHEME, strlen(SANDBOX_LOGS_SCHEME)) == 0)
        *out_id = sandbox_logs_id(uri);
    else if (uri_parse(uri, &f, &e) == 0)
        *out_conversation = TAKE_PTR(f.conversation);
}

static bool resources_can_subscribe(void *app, const char *tenant, const char *uri)
{
    (void)app;
    (void)tenant;
    return uri_is_ours(uri);
}

static json_t *resources_complete(void *app, const char *tenant, const char *uri_template,
                                  const char *argument, const char *value, const json_t *context)
{
    const char *conversation = json_get_string(context, URI_VARIABLE_CONVERSATION);

    if (strcmp(uri_template, URI_TEMPLATE) != 0)
        return NULL;
    return conversation && strcmp(argument, URI_VARIABLE_PATH) == 0
               ? complete_name(app, tenant, conversation, value)
               : NULL;
}

const struct mcp_resources tools_resources = {
    .list = resources_list,
    .templates = resources_templates,
    .read = resources_read,
    .belongs = resources_belongs,
    .can_subscribe = resources_can_subscribe,
    .complete = resources_complete,
};
