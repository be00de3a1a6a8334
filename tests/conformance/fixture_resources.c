/* Resources below test://; all others are the real server's. */
#include "config.h"

#include "tests/conformance/fixtures.h"

#include "common/base/auto.h"

#include <string.h>

#define TEMPLATE_START "test://template/"
#define TEMPLATE_END   "/data"

static const struct {
    const char *uri, *name, *mime_type;
    const char *text; /* NULL: the picture, as a blob */
} rows[] = {
    {"test://static-text", "Static text", "text/plain",
     "This is the content of the static text resource."},
    {"test://static-binary", "Static binary", "image/png", NULL},
    {"test://watched-resource", "Watched resource", "text/plain", "Watch this."},
};

static json_t *list(void *app, const char *tenant, const json_t *named, const char *cursor,
                    char **out_next, struct err *e)
{
    (void)app;
    (void)tenant;
    (void)named;
    (void)e;
    json_t *page = json_array();
    *out_next = NULL;
    for (size_t i = 0; !(cursor && *cursor) && i < ARRAY_LEN(rows); i++)
        json_array_append_new(page, json_pack("{s:s, s:s, s:s}", "uri", rows[i].uri, "name",
                                              rows[i].name, "mimeType", rows[i].mime_type));
    return page;
}

static json_t *templates(void *app)
{
    (void)app;
    return json_pack("[{s:s, s:s, s:s}]", "uriTemplate", TEMPLATE_START "{id}" TEMPLATE_END, "name",
                     "Template", "mimeType", "application/json");
}

/* The {id} of a URI of the template; 0 characters: it is none. */
static size_t template_id(const char *uri, const char **out_id)
{
    size_t start = strlen(TEMPLATE_START), end = strlen(TEMPLATE_END), len = strlen(uri);

    if (len <= start + end || memcmp(uri, TEMPLATE_START, start) != 0 ||
        strcmp(uri + len - end, TEMPLATE_END) != 0)
        return 0;
    *out_id = uri + start;
    return len - start - end;
}

static json_t *read_template(const char *uri, const char *id, size_t id_len)
{
    json_auto_t *data = json_pack("{s:o, s:b, s:o}", "id", json_stringn(id, id_len), "templateTest",
                                  1, "data", json_sprintf("Data for ID: %.*s", (int)id_len, id));
    AUTO_FREE char *text = json_dumps(data, JSON_COMPACT);

    return json_pack("[{s:s, s:s, s:s}]", "uri", uri, "mimeType", "application/json", "text",
                     text ? text : "");
}

static json_t *read_one(void *app, const char *tenant, const char *uri, struct err *e)
{
    const char *id;
    size_t id_len = template_id(uri, &id);

    (void)app;
    (void)tenant;
    if (id_len > 0)
        return read_template(uri, id, id_len);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].uri, uri) == 0)
            return json_pack("[{s:s, s:s, s:s}]", "uri", uri, "mimeType", rows[i].mime_type,
                             rows[i].text ? "text" : "blob",
                             rows[i].text ? rows[i].text : FIXTURE_PNG);
    }
    err_set(e, ERR_NOT_FOUND, "there is no such fixture");
    return NULL;
}

static bool can_subscribe(void *app, const char *tenant, const char *uri)
{
    (void)app;
    (void)tenant;
    return strcmp(uri, "test://watched-resource") == 0;
}

static json_t *complete(void *app, const char *tenant, const char *uri_template,
                        const char *argument, const char *value, const json_t *context)
{
    (void)app;
    (void)tenant;
    (void)uri_template;
    (void)argument;
    (void)value;
    (void)context;
    return json_pack("[s, s]", "123", "456");
}

const struct mcp_resources fixture_resources = {
    .list = list,
    .templates = templates,
    .read = read_one,
    .can_subscribe = can_subscribe,
    .complete = complete,
};
