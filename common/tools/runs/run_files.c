#include "config.h"

#include "common/tools/runs/run_files.h"

#include "common/base/buf.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_files.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/media.h"
#include "common/tools/tools_app.h"

#include <fcntl.h>
#include <string.h>

#define LINKS_MAX  50
#define SNIFFS_MAX 16 /* files opened to find their type; each may be a request to the broker */
#define HEAD_BYTES 4096

/* ---- opening ---- */

static bool is_gone(const json_t *file)
{
    return json_get_string(file, "url") == NULL;
}

/* The one that came opened, else the broker opens it. */
int run_files_open(const struct mcp_tool_call *c, const struct run_files *files, size_t row,
                   struct stat *out, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    const char *name = json_get_string(json_array_get(files->rows, row), "name");
    size_t before = 0; /* the descriptors belong to the first rows that have a url, in order */

    for (size_t i = 0; i < row; i++)
        before += !is_gone(json_array_get(files->rows, i));
    if (!files->open_files || before >= files->open_files->n)
        return broker_open_file(&client, files->conversation, name, out, e);
    AUTO_FD int fd = fcntl(files->open_files->at[before], F_DUPFD_CLOEXEC, 0);
    if (fd < 0 || fstat(fd, out) < 0)
        return err_errno(e, "reading the file's size");
    return TAKE_FD(fd);
}

/* ---- types and links ---- */

/* By the name; where that says nothing, by the file's first bytes. */
static const char *row_type(const struct mcp_tool_call *c, const struct run_files *files,
                            size_t row, unsigned *sniffs)
{
    const json_t *file = json_array_get(files->rows, row);
    const char *name = json_get_string(file, "name");
    const char *type = media_type(name, NULL, 0);
    char head[HEAD_BYTES];
    struct err e = ERR_INIT;
    struct stat st;

    if (strcmp(type, "application/octet-stream") != 0 || is_gone(file) || *sniffs >= SNIFFS_MAX)
        return type;
    ++*sniffs;
    AUTO_FD int fd = run_files_open(c, files, row, &st, &e);
    ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
    return media_type(name, head, n > 0 ? (size_t)n : 0);
}

void run_files_link(const struct run_files *files, struct mcp_result *out)
{
    size_t links = 0;
    json_t *file;

    for (size_t i = 0; (file = json_array_get(files->rows, i)); i++) {
        json_object_del(file, WIRE_MODIFIED);
        if (is_gone(file) || links == LINKS_MAX)
            continue;
        mcp_result_add(out,
                       content_link_new(json_get_string(file, "url"), json_get_string(file, "name"),
                                        json_get_string(file, "mimeType"),
                                        json_get_integer(file, "size", 0)));
        links++;
    }
}

void run_files_type(const struct mcp_tool_call *c, const struct run_files *files)
{
    unsigned sniffs = files->brief ? SNIFFS_MAX : 0;
    json_t *file;

    for (size_t i = 0; (file = json_array_get(files->rows, i)); i++) {
        if (json_get_string(file, "name"))
            json_object_set_new(file, "mimeType", json_string(row_type(c, files, i, &sniffs)));
    }
}
