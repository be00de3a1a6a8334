#include "config.h"

#include "common/tools/files/content_of.h"

#include "common/base/fdio.h"
#include "common/base/utf8.h"
#include "common/protocol/client_files.h"
#include "common/sandbox/files/media.h"
#include "common/tools/broker_access.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int open_file(const struct tools_app *app, const char *tenant, const char *conversation,
                     const char *name, struct stat *st, struct err *e)
{
    struct broker_client client = tools_client(app, -1);

    return broker_open_file(&client, tenant, conversation, name, st, e);
}

/* An empty file is text of no kind in particular; what it is to become cannot be seen in it. */
static const char *type_of(const char *name, const struct buf *content)
{
    const char *type = media_type(name, buf_str(content), content->len);

    return content->len == 0 && strcmp(type, "application/octet-stream") == 0 ? "text/plain" : type;
}

int content_read(const struct tools_app *app, const char *tenant, const char *conversation,
                 const char *name, struct buf *out, const char **out_type, struct err *e)
{
    struct stat st;
    AUTO_FD int fd = open_file(app, tenant, conversation, name, &st, e);

    if (fd < 0)
        return -1;
    if ((uint64_t)st.st_size > out->max)
        return err_set(e, ERR_LIMIT,
                       "the file is %" PRIu64 " bytes; at most %zu can be read at once",
                       (uint64_t)st.st_size, out->max);
    if (fdio_read_to_end(fd, out, e) < 0)
        return -1;
    *out_type = type_of(name, out);
    return 0;
}

int content_read_head(const struct tools_app *app, const char *tenant, const char *conversation,
                      const char *name, struct buf *out, uint64_t *out_size, const char **out_type,
                      struct err *e)
{
    struct stat st;
    AUTO_FD int fd = open_file(app, tenant, conversation, name, &st, e);
    size_t room = out->max;

    if (fd < 0)
        return -1;
    ssize_t n = pread(fd, buf_reserve(out, room), room, 0);
    if (n < 0)
        return err_errno(e, "the file cannot be read");
    buf_grew(out, (size_t)n);
    *out_size = (uint64_t)st.st_size;
    *out_type = type_of(name, out);
    return 0;
}

static bool ends_with(const char *s, const char *end)
{
    size_t len = strlen(s), end_len = strlen(end);

    return len >= end_len && strcmp(s + len - end_len, end) == 0;
}

static bool is_text_type(const char *type)
{
    static const char *const others[] = {
        "application/json", "application/sql",      "application/toml",
        "application/xml",  "application/x-ndjson", "application/x-sh",
        "application/yaml", "application/x-tex",    "application/javascript",
    };

    if (strncmp(type, "text/", 5) == 0 || ends_with(type, "+json") || ends_with(type, "+xml"))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (strcmp(type, others[i]) == 0)
            return true;
    return false;
}

bool content_is_text(const char *type, const struct buf *content)
{
    if (!is_text_type(type))
        return false;
    return content->len == 0 ||
           (utf8_valid(content->data, content->len) && !memchr(content->data, '\0', content->len));
}
