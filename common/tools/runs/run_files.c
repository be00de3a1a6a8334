#include "config.h"

#include "common/tools/runs/run_files.h"

#include "common/base/buf.h"
#include "common/base/fdio.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/media.h"
#include "common/tools/broker_access.h"
#include "common/tools/runs/pictures.h"

#include <fcntl.h>
#include <string.h>

#define LINKS_MAX 50
#define SNIFFS_MAX                                                                                 \
    16 /* files opened to find out what they are; each may be a question to the broker             \
        */
#define HEAD_BYTES 4096

static const char unknown_type[] = "application/octet-stream";

static bool is_gone(const json_t *file)
{
    return json_get_string(file, "url") == NULL;
}

/* Those with a url came opened in their order, the first of them. Borrowed, or -1. */
static int opened(const struct run_files *files, size_t row)
{
    size_t before = 0;

    for (size_t i = 0; i < row; i++)
        before += !is_gone(json_array_get(files->rows, i));
    return files->opened && before < files->opened->n ? files->opened->at[before] : -1;
}

int run_files_open(const struct mcp_tool_call *c, const struct run_files *files, size_t row,
                   struct stat *out, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    const char *name = json_get_string(json_array_get(files->rows, row), "name");
    int there = opened(files, row);

    if (there < 0)
        return broker_open_file(&client, c->tenant, files->conversation, name, out, e);
    AUTO_FD int fd = fcntl(there, F_DUPFD_CLOEXEC, 0);
    if (fd < 0 || fstat(fd, out) < 0)
        return err_errno(e, "looking at the file");
    return TAKE_FD(fd);
}

/* The first bytes of a file; empty when it cannot be read. */
static void read_head(const struct mcp_tool_call *c, const struct run_files *files, size_t row,
                      struct buf *out)
{
    struct err e = ERR_INIT;
    struct stat st;
    AUTO_FD int fd = run_files_open(c, files, row, &st, &e);
    char *room = buf_reserve(out, HEAD_BYTES);
    ssize_t n = fd < 0 ? -1 : pread(fd, room, HEAD_BYTES, 0);

    if (n > 0)
        buf_grew(out, (size_t)n);
}

static const char *type_of(const struct mcp_tool_call *c, const struct run_files *files, size_t row,
                           unsigned *sniffs)
{
    const json_t *file = json_array_get(files->rows, row);
    const char *name = json_get_string(file, "name");
    const char *type = media_type(name, NULL, 0);
    AUTO_BUF struct buf head = BUF_INIT(HEAD_BYTES);

    if (strcmp(type, unknown_type) != 0 || is_gone(file) || *sniffs >= SNIFFS_MAX)
        return type;
    ++*sniffs;
    read_head(c, files, row, &head);
    return media_type(name, buf_str(&head), head.len);
}

static void add_types(const struct mcp_tool_call *c, const struct run_files *files)
{
    unsigned sniffs = files->brief ? SNIFFS_MAX : 0;
    size_t i;
    json_t *file;

    json_array_foreach(files->rows, i, file)
    {
        if (json_get_string(file, "name"))
            json_object_set_new(file, "mimeType", json_string(type_of(c, files, i, &sniffs)));
    }
}

static void add_links(const json_t *files, struct mcp_result *out)
{
    size_t links = 0, more = 0, i;
    json_t *file;

    json_array_foreach(files, i, file)
    {
        if (is_gone(file))
            continue;
        if (links++ < LINKS_MAX)
            mcp_result_add(out, content_link_new(json_get_string(file, "url"),
                                                 json_get_string(file, "name"),
                                                 json_get_string(file, "mimeType"),
                                                 json_get_integer(file, "size", 0)));
        else
            more++;
    }
    if (more > 0) {
        AUTO_BUF struct buf note = BUF_INIT(200);
        buf_addf(&note,
                 "%zu more files are listed in the result, without a link of their own here.",
                 more);
        mcp_result_add(out, content_text_new(buf_str(&note), note.len));
    }
}

void run_files_show(const struct mcp_tool_call *c, const struct run_files *files,
                    struct mcp_result *out)
{
    add_types(c, files);
    if (!files->brief)
        pictures_add(c, files, out);
    add_links(files->rows, out);
}
