#include "config.h"

#include "common/tools/runs/pictures.h"

#include "common/base/b64.h"
#include "common/base/buf.h"
#include "common/base/fdio.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "common/tools/broker_access.h"

#include <string.h>

#define DRAW_LANGUAGE   "python"
#define DRAW_TIMEOUT_MS 20000
#define DRAW_MAX        8 /* SVG files per result */
#define DRAW_KEEP_MAX                                                                              \
    (8u * 1024 * 1024) /* of the drawing program's output; what the broker grants at most */

/* What one result's pictures share. */
struct gallery {
    const struct mcp_tool_call *call;
    const struct run_files *files;
    struct mcp_result *out;
    uint64_t image_max;
    uint64_t room; /* how many more images may be shown */
};

/* What stands in every file of that type. */
struct mark {
    size_t at;
    const char *bytes;
    size_t len;
};

struct format {
    const char *mime_type;
    struct mark marks[2];
};

#define DRAWN "image/png"

static const struct format formats[] = {
    {DRAWN, {{0, "\x89PNG\r\n\x1a\n", 8}}},
    {"image/jpeg", {{0, "\xff\xd8\xff", 3}}},
    {"image/gif", {{0, "GIF8", 4}, {5, "a", 1}}},
    {"image/webp", {{0, "RIFF", 4}, {8, "WEBP", 4}}},
};

static const struct format *format_of(const char *mime_type)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (strcmp(mime_type, formats[i].mime_type) == 0)
            return &formats[i];
    return NULL;
}

static bool is_picture(const struct format *format, const struct buf *content)
{
    for (size_t i = 0; i < ARRAY_LEN(format->marks); i++) {
        const struct mark *m = &format->marks[i];
        if (content->len < m->at + m->len ||
            (m->len > 0 && memcmp(content->data + m->at, m->bytes, m->len) != 0))
            return false;
    }
    return true;
}

json_t *picture_new(const char *mime_type, const struct buf *content)
{
    const struct format *format = format_of(mime_type);

    if (!format || !is_picture(format, content))
        return NULL;
    return content_image_new(content->data, content->len, format->mime_type);
}

static void show(struct gallery *g, const struct format *format, const struct buf *content)
{
    if (g->room == 0 || content->len > g->image_max || !is_picture(format, content))
        return;
    mcp_result_add(g->out, content_image_new(content->data, content->len, format->mime_type));
    g->room--;
}

static void show_file(struct gallery *g, const struct format *format, size_t row)
{
    struct err e = ERR_INIT;
    struct stat st;
    AUTO_FD int fd = run_files_open(g->call, g->files, row, &st, &e);
    AUTO_BUF struct buf content = BUF_INIT(g->image_max);

    if (fd >= 0 && (uint64_t)st.st_size <= g->image_max && fdio_read_to_end(fd, &content, &e) == 0)
        show(g, format, &content);
}

/* Small enough to be shown, and still there? */
static bool is_candidate(const struct gallery *g, const json_t *file)
{
    json_int_t size = json_get_integer(file, "size", -1);

    return json_get_string(file, "url") && json_get_string(file, "name") &&
           json_get_string(file, "mimeType") && size > 0 && (uint64_t)size <= g->image_max;
}

static void show_files(struct gallery *g)
{
    size_t i;
    json_t *file;

    json_array_foreach(g->files->rows, i, file)
    {
        const struct format *format;

        if (g->room == 0)
            return;
        if (!is_candidate(g, file))
            continue;
        format = format_of(json_get_string(file, "mimeType"));
        if (format)
            show_file(g, format, i);
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
    size_t i;
    json_t *file;

    json_array_foreach(g->files->rows, i, file)
    {
        const json_t *name = json_object_get(file, "name");

        if (out->n == DRAW_MAX || out->n == g->room)
            return;
        if (is_candidate(g, file) &&
            strcmp(json_get_string(file, "mimeType"), "image/svg+xml") == 0)
            out->names[out->n++] = (struct run_text){json_string_value(name),
                                                     json_string_length(name)};
    }
}

/* As much as the pictures may take, within what one run may hand over. */
static uint64_t keep_bytes(const struct gallery *g, size_t n)
{
    uint64_t one = g->image_max > DRAW_KEEP_MAX ? DRAW_KEEP_MAX : B64_ENCODED_LEN(g->image_max) + 1;
    uint64_t all = one * n + 64;

    return all < DRAW_KEEP_MAX ? all : DRAW_KEEP_MAX;
}

static json_t *run_drawing(const struct gallery *g, const struct drawings *d, struct err *e)
{
    const struct tools_app *app = g->call->app;
    struct broker_client client = tools_client(app, g->call->cancel_fd);
    uint64_t timeout_max = app->limits.timeout_max_ms;
    struct run_request request = {
        .tenant = g->call->tenant,
        .conversation = g->files->conversation,
        .language = DRAW_LANGUAGE,
        .code = {draw_code, strlen(draw_code)},
        .timeout_ms = timeout_max < DRAW_TIMEOUT_MS ? timeout_max : DRAW_TIMEOUT_MS,
        .keep_bytes = keep_bytes(g, d->n),
        .args = d->names,
        .n_args = d->n,
    };

    return broker_run(&client, &request, NULL, e);
}

static void show_line(struct gallery *g, const char *line, size_t len)
{
    AUTO_BUF struct buf content = BUF_INIT(g->image_max);

    if (len > 0 && len <= B64_ENCODED_LEN(g->image_max) && b64_decode(line, len, &content) == 0 &&
        buf_ok(&content))
        show(g, format_of(DRAWN), &content);
}

static bool is_whole(const json_t *result)
{
    const json_t *truncation = json_object_get(result, "truncation");

    return !json_get_bool(json_object_get(truncation, "stdout"), "truncated", 1);
}

/* Does without pictures whenever something is not there: they are an extra. */
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
    if (!at || !is_whole(result))
        return;
    for (size_t i = 0; i < d.n && *at; i++) {
        size_t len = strcspn(at, "\n");
        show_line(g, at, len);
        at += len + (at[len] == '\n');
    }
}

void pictures_add(const struct mcp_tool_call *c, const struct run_files *files,
                  struct mcp_result *out)
{
    const struct tools_app *app = c->app;
    struct gallery g = {
        .call = c,
        .files = files,
        .out = out,
        .image_max = app->limits.image_max,
        .room = app->limits.images_max,
    };

    show_files(&g);
    show_drawings(&g);
}
