#include "config.h"

#include "common/tools/files/content.h"

#include "common/base/b64.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/utf8.h"
#include "common/mcp/events/event.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/files/media.h"
#include "common/tools/files/uri.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

int content_decode(const char *argument, struct run_text base64, uint64_t max, struct buf *out,
                   struct err *e)
{
    out->max = (size_t)max;
    if (b64_decode(base64.data, base64.len, out) == 0 && buf_ok(out))
        return 0;
    if (!buf_ok(out))
        return err_set(e, ERR_LIMIT, "argument '%s' decodes to more than %" PRIu64 " bytes",
                       argument, max);
    return err_set(e, ERR_INVALID, "argument '%s' is not base64", argument);
}

int content_fd(struct run_text content, struct err *e)
{
    AUTO_FD int fd = memfd_create("upload", MFD_CLOEXEC);

    if (fd < 0)
        return err_errno(e, "making room for the file");
    if (fdio_write_all(fd, content.data, content.len, e) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_errno(e, "rewinding the file");
    return TAKE_FD(fd);
}

json_t *content_base64(const struct buf *content)
{
    AUTO_BUF struct buf text = BUF_INIT(B64_ENCODED_LEN(content->len));

    b64_encode(content->data, content->len, &text);
    return json_stringn(buf_str(&text), text.len);
}

/* Nothing in an empty file tells its type: plain text, unless its name says more. */
static const char *content_type(const char *name, const struct buf *content)
{
    const char *type = media_type(name, buf_str(content), content->len);

    return content->len == 0 && strcmp(type, "application/octet-stream") == 0 ? "text/plain" : type;
}

int content_read(const struct tools_app *app, const char *tenant, const char *conversation,
                 const char *name, struct buf *out, const char **out_type, struct err *e)
{
    struct broker_client client = tools_client(app, tenant, -1);
    struct stat st;
    AUTO_FD int fd = broker_open_file(&client, conversation, name, &st, e);

    if (fd < 0)
        return -1;
    if ((uint64_t)st.st_size > out->max)
        return err_set(e, ERR_LIMIT,
                       "the file is %" PRIu64 " bytes; at most %zu can be read at once",
                       (uint64_t)st.st_size, out->max);
    if (fdio_read_to_end(fd, out, e) < 0)
        return -1;
    *out_type = content_type(name, out);
    return 0;
}

int content_read_head(const struct tools_app *app, const char *tenant, const char *conversation,
                      const char *name, struct buf *out, uint64_t *out_size, const char **out_type,
                      struct err *e)
{
    struct broker_client client = tools_client(app, tenant, -1);
    struct stat st;
    AUTO_FD int fd = broker_open_file(&client, conversation, name, &st, e);
    size_t room = out->max;

    if (fd < 0)
        return -1;
    ssize_t n = pread(fd, buf_reserve(out, room), room, 0);
    if (n < 0)
        return err_errno(e, "the file cannot be read");
    buf_grew(out, (size_t)n);
    *out_size = (uint64_t)st.st_size;
    *out_type = content_type(name, out);
    return 0;
}

json_t *content_find_row(const struct mcp_tool_call *c, const char *conversation, const char *name)
{
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    const char *slash = strrchr(name, '/');
    AUTO_FREE char *folder = mem_strndup(name, slash ? (size_t)(slash - name) : 0);
    AUTO_BUF struct buf pattern = BUF_INIT(2 * FILES_NAME_MAX);
    struct err e = ERR_INIT;

    for (const char *at = slash ? slash + 1 : name; *at; at++) /* matches this name only */
        buf_addf(&pattern, "%s%c", strchr("*?[\\", *at) ? "\\" : "", *at);
    const struct broker_listing listing = {
        .conversation = conversation, .folder = folder, .glob = buf_str(&pattern), .max = 1};
    json_auto_t *page = broker_list_folder(&client, &listing, &e);
    return json_incref(json_array_get(json_object_get(page, "files"), 0));
}

bool content_type_is_text(const char *type)
{
    static const char *const others[] = {
        "application/json", "application/sql",      "application/toml",
        "application/xml",  "application/x-ndjson", "application/x-sh",
        "application/yaml", "application/x-tex",    "application/javascript",
    };
    const char *suffix = strrchr(type, '+');

    if (strncmp(type, "text/", 5) == 0 ||
        (suffix && (strcmp(suffix, "+json") == 0 || strcmp(suffix, "+xml") == 0)))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (strcmp(type, others[i]) == 0)
            return true;
    return false;
}

bool content_is_plain(const char *data, size_t len)
{
    return utf8_valid(data, len) && !memchr(data, '\0', len);
}

bool content_is_text(const char *type, const struct buf *content)
{
    return content_type_is_text(type) && content_is_plain(buf_str(content), content->len);
}

/* ---- changes ---- */

static void publish_resource(const struct changes *c, const char *name)
{
    AUTO_FREE char *uri = uri_of_file(c->conversation, name);
    const struct mcp_event event = {.kind = MCP_EVENT_RESOURCE, .tenant = c->tenant, .uri = uri};

    /* Clients listen for URIs in our spelling only. */
    if (uri_is_ours(uri))
        mcp_publish(c->server, &event);
}

void changes_publish_list(const struct changes *c)
{
    const struct mcp_event event = {.kind = MCP_EVENT_RESOURCES, .tenant = c->tenant};

    mcp_publish(c->server, &event);
}

void changes_publish(const struct changes *c, const json_t *files)
{
    json_t *file;

    for (size_t i = 0; (file = json_array_get(files, i)); i++) {
        const char *name = json_get_string(file, "name");

        if (name)
            publish_resource(c, name);
    }
    if (json_array_size(files) > 0)
        changes_publish_list(c);
}

void changes_publish_file(const struct changes *c, const char *name)
{
    publish_resource(c, name);
    changes_publish_list(c);
}

json_t *changes_in_folder(const struct changes *c, const struct broker_client *client,
                          const char *folder)
{
    const struct broker_listing listing = {.conversation = c->conversation,
                                           .folder = folder,
                                           .recursive = true,
                                           .max = CHANGES_FOLDER_MAX};
    struct err e = ERR_INIT;
    json_auto_t *page = broker_list_folder(client, &listing, &e);
    json_t *files = json_array();
    json_t *row;

    for (size_t i = 0; (row = json_array_get(json_object_get(page, "files"), i)); i++) {
        if (json_object_get(row, "url"))
            json_array_append(files, row);
    }
    return files;
}
