#include "config.h"

#include "common/tools/runs/run_files.h"

#include "common/base/b64.h"
#include "common/base/buf.h"
#include "common/base/fdio.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/media.h"
#include "common/tools/runs/permit.h"
#include "common/tools/runs/picture.h"
#include "common/tools/tools_app.h"

#include <fcntl.h>
#include <string.h>

#define LINKS_MAX  50
#define SNIFFS_MAX 16 /* files opened to find their type; each may be a request to the broker */
#define HEAD_BYTES 4096

#define DRAW_LANGUAGE   "python"
#define DRAW_TIMEOUT_MS 20000
#define DRAW_MAX        8                  /* SVG files per result */
#define DRAW_KEEP_MAX   (8u * 1024 * 1024) /* of its output: the most that the broker grants */

/* ---- opening ---- */

static bool is_gone(const json_t *file)
{
    return json_get_string(file, "url") == NULL;
}

/* The file of a row that has a url, for pread: the one that came opened, else the broker opens it.
 * The caller closes it; -1. */
static int run_files_open(const struct mcp_tool_call *c, const struct run_files *files, size_t row,
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

/* ---- pictures ---- */

/* The pictures of one result. */
struct gallery {
    const struct mcp_tool_call *call;
    const struct run_files *files;
    struct mcp_result *out;
    uint64_t image_max;
    uint64_t room; /* images that may still be added */
};

#define DRAWN "image/png"

static void show_content(struct gallery *g, const char *mime_type, const struct buf *content)
{
    json_t *image = g->room > 0 && content->len <= g->image_max ? picture_new(mime_type, content)
                                                                : NULL;

    if (!image)
        return;
    mcp_result_add(g->out, image);
    g->room--;
}

/* Does the file exist, and is it small enough? */
static bool can_be_shown(const struct gallery *g, const json_t *file)
{
    json_int_t size = json_get_integer(file, "size", -1);

    return json_get_string(file, "url") && json_get_string(file, "name") &&
           json_get_string(file, "mimeType") && size > 0 && (uint64_t)size <= g->image_max;
}

static void show_files(struct gallery *g)
{
    json_t *file;

    for (size_t i = 0; g->room > 0 && (file = json_array_get(g->files->rows, i)); i++) {
        const char *type = can_be_shown(g, file) ? json_get_string(file, "mimeType") : NULL;
        if (!type || !picture_type_is_shown(type))
            continue;
        struct err e = ERR_INIT;
        struct stat st;
        AUTO_FD int fd = run_files_open(g->call, g->files, i, &st, &e);
        AUTO_BUF struct buf content = BUF_INIT(g->image_max);
        if (fd >= 0 && (uint64_t)st.st_size <= g->image_max &&
            fdio_read_to_end(fd, &content, &e) == 0)
            show_content(g, type, &content);
    }
}

/* ---- SVG ---- */

/* One line of base64 per argument, empty for a file that cannot be drawn. The names are arguments,
 * never part of the code. */
static const char draw_code[] = "import base64, sys\n"
                                "import cairosvg\n"
                                "for name in sys.argv[1:]:\n"
                                "    try:\n"
                                "        with open(name, 'rb') as f:\n"
                                "            png = cairosvg.svg2png(bytestring=f.read())\n"
                                "    except Exception:\n"
                                "        png = b''\n"
                                "    print(base64.b64encode(png).decode())\n";

struct drawings {
    struct run_text names[DRAW_MAX];
    size_t n;
};

static void collect_drawings(const struct gallery *g, struct drawings *out)
{
    json_t *file;

    for (size_t i = 0; (file = json_array_get(g->files->rows, i)); i++) {
        const json_t *name = json_object_get(file, "name");

        if (out->n == DRAW_MAX || out->n == g->room)
            return;
        if (can_be_shown(g, file) &&
            strcmp(json_get_string(file, "mimeType"), "image/svg+xml") == 0)
            out->names[out->n++] = (struct run_text){json_string_value(name),
                                                     json_string_length(name)};
    }
}

static json_t *run_drawing(const struct gallery *g, const struct drawings *d, struct err *e)
{
    const struct tools_app *app = g->call->app;
    struct broker_client client = tools_client(app, g->call->tenant, g->call->cancel_fd);
    uint64_t timeout_max = app->limits.timeout_max_ms;
    /* Room for all pictures, within the limit of a run's output. */
    uint64_t one = g->image_max > DRAW_KEEP_MAX ? DRAW_KEEP_MAX : B64_ENCODED_LEN(g->image_max) + 1;
    uint64_t all = one * d->n + 64;
    struct run_request request = {
        .tenant = g->call->tenant,
        .conversation = g->files->conversation,
        .language = DRAW_LANGUAGE,
        .single_use = permit_single_use_only(g->call),
        .code = {draw_code, strlen(draw_code)},
        .timeout_ms = timeout_max < DRAW_TIMEOUT_MS ? timeout_max : DRAW_TIMEOUT_MS,
        .keep_bytes = all < DRAW_KEEP_MAX ? all : DRAW_KEEP_MAX,
        .args = d->names,
        .n_args = d->n,
    };

    return broker_run(&client, &request, NULL, e);
}

/* A failure leaves the pictures out: they are an extra. */
static void show_drawings(struct gallery *g)
{
    struct drawings d = {.n = 0};
    struct err e = ERR_INIT;
    json_auto_t *result = NULL;
    const char *at;

    collect_drawings(g, &d);
    if (d.n == 0 || !runners_have(g->call->app, DRAW_LANGUAGE))
        return;
    result = run_drawing(g, &d, &e);
    at = json_get_string(result, "stdout");
    const json_t *kept = json_object_get(json_object_get(result, "truncation"), "stdout");
    if (!at || json_get_bool(kept, "truncated", 1))
        return;
    for (size_t i = 0; i < d.n && *at; i++) {
        size_t len = strcspn(at, "\n");
        AUTO_BUF struct buf content = BUF_INIT(g->image_max);
        if (len > 0 && len <= B64_ENCODED_LEN(g->image_max) && b64_decode(at, len, &content) == 0 &&
            buf_ok(&content))
            show_content(g, DRAWN, &content);
        at += len + (at[len] == '\n');
    }
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

static void add_links(const json_t *files, struct mcp_result *out)
{
    size_t links = 0;
    json_t *file;

    for (size_t i = 0; links < LINKS_MAX && (file = json_array_get(files, i)); i++) {
        if (is_gone(file))
            continue;
        mcp_result_add(out,
                       content_link_new(json_get_string(file, "url"), json_get_string(file, "name"),
                                        json_get_string(file, "mimeType"),
                                        json_get_integer(file, "size", 0)));
        links++;
    }
}

void run_files_show(const struct mcp_tool_call *c, const struct run_files *files,
                    struct mcp_result *out)
{
    const struct tools_app *app = c->app;
    struct gallery g = {.call = c,
                        .files = files,
                        .out = out,
                        .image_max = app->limits.image_max,
                        .room = app->limits.images_max};
    unsigned sniffs = files->brief ? SNIFFS_MAX : 0;
    json_t *file;

    for (size_t i = 0; (file = json_array_get(files->rows, i)); i++) {
        if (json_get_string(file, "name"))
            json_object_set_new(file, "mimeType", json_string(row_type(c, files, i, &sniffs)));
    }
    if (!files->brief) {
        show_files(&g);
        show_drawings(&g);
    }
    add_links(files->rows, out);
}
