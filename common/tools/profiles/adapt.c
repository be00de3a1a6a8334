#include "config.h"

#include "common/tools/profiles/adapt.h"

#include "common/base/mem.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/tools/tools_app.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

#define RETRY_MS     50
#define SENTENCE_MAX (64u * 1024)
#define PAGE_FILES   1000
#define PAGES_MAX    20

/* Tools bound their results long before this. */
#define TEXT_MAX (128u * 1024 * 1024)

json_t *adapt_known(const struct arg_row *table, const json_t *arguments)
{
    json_t *known = json_object();

    for (const struct arg_row *row = table; row->name; row++) {
        json_t *value = json_object_get(arguments, row->name);

        if (value)
            json_object_set(known, row->name, value); /* shared with the call, never changed */
    }
    return known;
}

int adapt_fill(const struct arg_row *table, const struct mcp_tool_call *c, void *out,
               json_t **out_known, struct err *e)
{
    *out_known = adapt_known(table, c->arguments);
    return args_fill(table, c->app, *out_known, out, e);
}

int adapt_call(const struct mcp_tool_call *c, const struct mcp_tool *tool, json_t *take_arguments,
               struct mcp_result *inner, struct mcp_result *out, json_t **out_object, struct err *e)
{
    json_auto_t *arguments = take_arguments;
    struct mcp_tool_call call = *c;
    const char *name;
    json_t *value;
    void *next;

    json_object_foreach_safe(arguments, next, name, value) if (json_is_null(value))
        json_object_del(arguments, name);
    call.tool = tool;
    call.arguments = arguments;
    call.can_task = false;
    call.to_its_end = true; /* their clients know no run that goes on */
    args_call_exactly(&call, inner);
    if (!mcp_need_is_empty(&inner->need)) {
        out->need = inner->need;
        inner->need = (struct mcp_need){.requests = NULL};
        return -1;
    }
    *out_object = inner->structured;
    if (inner->structured)
        return 0;
    return err_set(e, inner->failure ? inner->failure : ERR_INTERNAL, "%s", mcp_result_text(inner));
}

/* The part of path behind root; NULL when path is not below it. */
static const char *path_below(const char *path, const char *root)
{
    size_t len = strlen(root);

    if (strncmp(path, root, len) != 0 || (root[len - 1] != '/' && path[len] && path[len] != '/'))
        return NULL;
    return path + len;
}

char *adapt_name(const char *path, const char *const *roots, struct err *e)
{
    AUTO_BUF struct buf name = BUF_INIT(strlen(path) + 1);
    const char *rest = path[0] == '/' ? NULL : path;

    for (; !rest && *roots; roots++)
        rest = path_below(path, *roots);
    while (rest && *rest) {
        size_t len = strcspn(rest, "/");

        if (len == 2 && memcmp(rest, "..", 2) == 0)
            rest = NULL;
        else if (len > 0 && !(len == 1 && rest[0] == '.'))
            buf_addf(&name, "%s%.*s", name.len ? "/" : "", (int)len, rest);
        if (rest)
            rest += len + (rest[len] == '/');
    }
    if (rest)
        return buf_take(&name);
    err_set(e, ERR_INVALID, "%s is not below the sandbox's directory", path);
    return NULL;
}

int adapt_list_folder(const struct mcp_tool_call *c, const char *conversation, const char *folder,
                      void (*add)(const json_t *files, json_t *list), json_t *list, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    json_auto_t *page = NULL;

    for (int i = 0; i < PAGES_MAX; i++) {
        const struct broker_listing listing = {.conversation = conversation,
                                               .folder = folder,
                                               .after = json_get_string(page, "next"),
                                               .max = PAGE_FILES};
        json_t *next = broker_list_folder(&client, &listing, e);

        json_decref(page);
        page = next;
        if (!page)
            return -1;
        add(json_object_get(page, "files"), list);
        if (!json_get_string(page, "next"))
            break;
    }
    return 0;
}

int adapt_delete(const struct mcp_tool_call *c, const char *conversation, int timeout_ms,
                 struct err *e)
{
    const struct timespec delay = {.tv_nsec = RETRY_MS * 1000000L};
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);

    for (;; timeout_ms -= RETRY_MS) {
        json_auto_t *gone = broker_delete_conversation(&client, conversation, e);

        if (gone || e->kind == ERR_NOT_FOUND)
            return 0;
        if (e->kind != ERR_BUSY || timeout_ms <= 0)
            return -1;
        nanosleep(&delay, NULL);
    }
}

void adapt_tell_text(struct mcp_result *out, json_t *take_object, bool pretty)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);

    if ((pretty ? json_write_pretty : json_write)(take_object, &text) == 0)
        mcp_result_add(out, content_text_new(buf_str(&text), text.len));
    json_decref(take_object);
}

void adapt_tell(struct mcp_result *out, const char *fmt, ...)
{
    AUTO_BUF struct buf text = BUF_INIT(SENTENCE_MAX);
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    mcp_result_add(out, content_text_new(buf_str(&text), text.len));
}
