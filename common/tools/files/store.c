#include "config.h"

#include "common/tools/files/store.h"

#include "common/base/b64.h"
#include "common/base/fdio.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/files/media.h"
#include "common/tools/broker_access.h"
#include "common/tools/files/changes.h"
#include "common/tools/report.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int store_decode(const char *argument, struct run_text base64, uint64_t max, struct buf *out,
                 struct err *e)
{
    out->max = (size_t)max;
    if (b64_decode(base64.data, base64.len, out) == 0 && buf_ok(out))
        return 0;
    if (!buf_ok(out))
        return err_set(e, ERR_LIMIT, "argument '%s' decodes to more than %" PRIu64 " bytes",
                       argument, max);
    return err_set(e, ERR_INVALID,
                   "argument '%s' is not base64 (standard alphabet, padded with '=', without "
                   "blanks or line breaks)",
                   argument);
}

int store_fd(struct run_text content, struct err *e)
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

json_t *store_file(const struct mcp_tool_call *c, const struct store *s, struct mcp_result *out,
                   struct err *e)
{
    const struct changes changes = {c->server, c->tenant, s->conversation};
    struct broker_client client = tools_client(c->app, c->cancel_fd);

    if (files_check_name("filename", s->filename, strlen(s->filename), e) < 0)
        return NULL;
    AUTO_FD int fd = store_fd(s->content, e);
    if (fd < 0)
        return NULL;
    json_t *file = broker_put_file(&client, c->tenant, s->conversation, s->filename, fd,
                                   s->content.len, s->replace, e);
    if (!file)
        return NULL;
    const char *mime = media_type(s->filename, s->content.data, s->content.len);
    const char *url = json_get_string(file, "url");
    json_object_set_new(file, "mimeType", json_string(mime));
    changes_tell_file(&changes, s->filename);
    mcp_result_add(out, content_link_new(url ? url : "", s->filename, mime,
                                         json_get_integer(file, "size", 0)));
    return file;
}

void store_add_retention(json_t *file, json_t *result, struct mcp_result *out)
{
    static const char *const names[] = {"filesExpireAt", "notices"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_t *value = json_object_get(file, names[i]);

        if (value)
            json_object_set(result, names[i], value);
        json_object_del(file, names[i]);
    }
    report_notices(result, out);
}
