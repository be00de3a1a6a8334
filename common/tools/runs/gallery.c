#include "config.h"

#include "common/tools/runs/gallery.h"

#include "common/base/b64.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_runs.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/tools/runs/permit.h"
#include "common/tools/runs/picture.h"
#include "common/tools/tools_app.h"
#include "common/tools/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN_MAX  20     /* the most that images_max allows */
#define LOOKED_MAX 40     /* files opened, each perhaps by the broker */
#define SIDE_MAX   1568   /* pixels: what is longer, models see scaled */
#define ALL_MAX    750000 /* bytes of all in base64 */
#define HEAD_BYTES (64 * 1024)
#define FILE_MAX   (64u * 1024 * 1024) /* of what is scaled */
#define SVG        "image/svg+xml"

#define DRAW_LANGUAGE   "python"
#define DRAW_TIMEOUT_MS 20000

struct picture {
    size_t row;
    const char *name, *type;
    uint64_t size;
    json_int_t made_ms;
    struct buf content; /* empty: too large, or not a picture as it is */
    bool drawn;         /* is to be drawn or scaled; content is what it was before */
};

struct gallery {
    const struct mcp_tool_call *call;
    const struct run_files *files;
    struct picture *all; /* n, in the order of their making */
    size_t n;
    struct picture *shown[SHOWN_MAX];
    size_t n_shown, n_passed;
};

/* ---- which there are ---- */

static bool is_picture(const char *type)
{
    return type && (picture_type_is_shown(type) || strcmp(type, SVG) == 0);
}

static int compare_pictures(const void *left, const void *right)
{
    const struct picture *a = left, *b = right;

    if (a->made_ms != b->made_ms)
        return a->made_ms < b->made_ms ? -1 : 1;
    return words_compare_names(a->name, b->name);
}

static void gallery_collect(struct gallery *g)
{
    json_t *file;

    g->all = mem_array(json_array_size(g->files->rows) + 1, sizeof *g->all);
    for (size_t i = 0; (file = json_array_get(g->files->rows, i)); i++) {
        const char *name = json_get_string(file, "name"), *type = json_get_string(file, "mimeType");
        json_int_t size = json_get_integer(file, "size", 0);

        if (name && json_get_string(file, "url") && size > 0 && is_picture(type))
            g->all[g->n++] = (struct picture){.row = i,
                                              .name = name,
                                              .type = type,
                                              .size = (uint64_t)size,
                                              .made_ms = json_get_integer(file, WIRE_MODIFIED, 0)};
    }
    qsort(g->all, g->n, sizeof *g->all, compare_pictures);
}

/* ---- what they are ---- */

/* Reads it whole, or its head where it is too large; false: it is gone, or no picture. An SVG is
 * read by the program that draws it. */
static bool picture_read(const struct gallery *g, struct picture *p)
{
    const struct tools_app *app = g->call->app;
    struct err e = ERR_INIT;
    struct stat st;

    p->drawn = strcmp(p->type, SVG) == 0;
    if (p->drawn || p->size > FILE_MAX)
        return p->drawn;
    AUTO_FD int fd = run_files_open(g->call, g->files, p->row, &st, &e);
    bool large = fd >= 0 && (uint64_t)st.st_size > app->limits.image_max;

    if (fd < 0 || (uint64_t)st.st_size > FILE_MAX)
        return false;
    p->content = BUF_INIT(large ? HEAD_BYTES : app->limits.image_max);
    if (large) {
        ssize_t n = pread(fd, buf_reserve(&p->content, HEAD_BYTES), HEAD_BYTES, 0);
        buf_grew(&p->content, n > 0 ? (size_t)n : 0);
    } else if (fdio_read_to_end(fd, &p->content, &e) < 0) {
        return false;
    }
    struct picture_size size = picture_measure(p->type, buf_str(&p->content), p->content.len);
    p->drawn = large || size.width > SIDE_MAX || size.height > SIDE_MAX;
    if (large)
        buf_clear(&p->content);
    return size.width > 0 && size.height > 0 && size.width <= PICTURE_PIXELS_MAX / size.height;
}

static bool is_shown_already(const struct gallery *g, const struct picture *p)
{
    for (size_t i = 0; i < g->n_shown; i++) {
        const struct buf *other = &g->shown[i]->content;
        if (p->content.len > 0 && other->len == p->content.len &&
            memcmp(other->data, p->content.data, other->len) == 0)
            return true;
    }
    return false;
}

/* What all may have of ALL_MAX, in bytes before base64. */
static uint64_t share_of(const struct gallery *g)
{
    return ALL_MAX / (g->n_shown ? g->n_shown : 1) / 4 * 3 - 3;
}

static void gallery_choose(struct gallery *g)
{
    const struct tools_app *app = g->call->app;
    const size_t most = app->limits.images_max < SHOWN_MAX ? app->limits.images_max : SHOWN_MAX;
    uint64_t all = 0;

    for (size_t i = 0; i < g->n && i < LOOKED_MAX && g->n_shown < most; i++) {
        struct picture *p = &g->all[i];

        if (!picture_read(g, p)) {
            buf_clear(&p->content);
            g->n_passed++; /* it is not a picture that could be looked at */
        } else if (is_shown_already(g, p)) {
            g->n_passed++;
        } else {
            g->shown[g->n_shown++] = p;
            all += B64_ENCODED_LEN(p->content.len);
        }
    }
    for (size_t i = 0; all > ALL_MAX && i < g->n_shown; i++)
        g->shown[i]->drawn |= g->shown[i]->content.len > share_of(g);
}

/* ---- drawing and scaling ---- */

/* One line of base64 per argument after the first, which is the most bytes of a picture; empty for
 * a file that cannot be drawn. The names are arguments, never part of the code. */
static const char draw_code[] =
    "import base64, io, sys\n"
    "from PIL import Image, ImageOps\n"
    "def tries(image):\n"
    "    for side, kind, options in ((1568, 'PNG', {'optimize': True}), (1568, 'JPEG', {'quality': "
    "85}),\n"
    "                                (1568, 'JPEG', {'quality': 60}), (1024, 'JPEG', {'quality': "
    "60}),\n"
    "                                (640, 'JPEG', {'quality': 60}), (320, 'JPEG', {'quality': "
    "60})):\n"
    "        image.thumbnail((side, side))\n"
    "        out, drawn = io.BytesIO(), image\n"
    "        if kind == 'JPEG':\n"
    "            drawn = Image.new('RGB', image.size, 'white')\n"
    "            drawn.paste(image, mask=image.getchannel('A') if image.mode == 'RGBA' else None)\n"
    "        drawn.save(out, kind, **options)\n"
    "        yield out.getvalue()\n"
    "def shown(name):\n"
    "    with open(name, 'rb') as file:\n"
    "        data = file.read()\n"
    "    if b'<svg' in data[:65536]:\n"
    "        import cairosvg\n"
    "        data = cairosvg.svg2png(bytestring=data)\n"
    "    image = Image.open(io.BytesIO(data))\n"
    "    if max(image.size) <= 1568 and len(data) <= most:\n"
    "        return data\n"
    "    image.draft('RGB', (1568, 1568))\n"
    "    image = ImageOps.exif_transpose(image)\n"
    "    image = image.convert('RGBA' if image.has_transparency_data else 'RGB')\n"
    "    return next(data for data in tries(image) if len(data) <= most)\n"
    "most = int(sys.argv[1])\n"
    "for name in sys.argv[2:]:\n"
    "    try:\n"
    "        data = shown(name)\n"
    "    except Exception:\n"
    "        data = b''\n"
    "    print(base64.b64encode(data).decode())\n";

static json_t *run_drawing(const struct gallery *g, struct err *e)
{
    const struct tools_app *app = g->call->app;
    struct broker_client client = tools_client(app, g->call->tenant, g->call->cancel_fd);
    const uint64_t timeout_max = app->limits.timeout_max_ms;
    AUTO_FREE char *most = mem_printf("%" PRIu64, share_of(g));
    struct run_text args[1 + SHOWN_MAX] = {{most, strlen(most)}};
    struct run_request request = {
        .tenant = g->call->tenant,
        .conversation = g->files->conversation,
        .language = DRAW_LANGUAGE,
        .single_use = permit_single_use_only(g->call),
        .code = {draw_code, strlen(draw_code)},
        .timeout_ms = timeout_max < DRAW_TIMEOUT_MS ? timeout_max : DRAW_TIMEOUT_MS,
        .keep_bytes = ALL_MAX + SHOWN_MAX + 64,
        .args = args,
        .n_args = 1,
    };

    for (size_t i = 0; i < g->n_shown; i++) {
        const char *name = g->shown[i]->name;
        if (g->shown[i]->drawn)
            args[request.n_args++] = (struct run_text){name, strlen(name)};
    }
    return broker_run(&client, &request, NULL, e);
}

static const char *type_of_drawn(const struct buf *content)
{
    return picture_measure("image/png", buf_str(content), content->len).width > 0 ? "image/png"
                                                                                  : "image/jpeg";
}

/* A line of its output becomes the picture; nothing: it stays what it was. */
static void take_drawing(const struct gallery *g, struct picture *p, const char *line, size_t len)
{
    AUTO_BUF struct buf drawn = BUF_INIT(share_of(g));

    if (len == 0 || b64_decode(line, len, &drawn) < 0 || !buf_ok(&drawn))
        return;
    p->type = type_of_drawn(&drawn);
    buf_clear(&p->content);
    p->content = drawn;
    drawn = BUF_INIT(0);
}

/* A failure leaves them as they are: they are an extra. */
static void gallery_draw(struct gallery *g)
{
    struct err e = ERR_INIT;
    size_t n = 0;

    for (size_t i = 0; i < g->n_shown; i++)
        n += g->shown[i]->drawn;
    if (n == 0 || !runners_have(g->call->app, DRAW_LANGUAGE))
        return;
    json_auto_t *result = run_drawing(g, &e);
    const char *at = json_get_string(result, "stdout");
    const json_t *kept = json_object_get(json_object_get(result, "truncation"), "stdout");
    if (!at || json_get_bool(kept, "truncated", 1))
        return;
    for (size_t i = 0; i < g->n_shown && *at; i++) {
        size_t len = strcspn(at, "\n");
        if (!g->shown[i]->drawn)
            continue;
        take_drawing(g, g->shown[i], at, len);
        at += len + (at[len] == '\n');
    }
}

/* ---- all ---- */

static void gallery_add(struct gallery *g, struct mcp_result *out, struct buf *about)
{
    size_t added = 0, room = ALL_MAX;

    for (size_t i = 0; i < g->n_shown; i++) {
        const struct picture *p = g->shown[i];
        const size_t len = B64_ENCODED_LEN(p->content.len);
        json_t *image = p->content.len > 0 && len <= room ? picture_new(p->type, &p->content)
                                                          : NULL;
        if (!image)
            continue;
        mcp_result_add(out, image);
        room -= len;
        buf_add_str(about, added++ > 0 ? ", " : "pictures: ");
        content_clean_name(p->name, about);
    }
    const size_t more = g->n - g->n_passed - added;
    if (added > 0 && more > 0)
        buf_addf(about, ", and %zu more", more);
    else if (added < 2)
        buf_reset(about);
}

void gallery_show(const struct mcp_tool_call *c, const struct run_files *files,
                  struct mcp_result *out, struct buf *about)
{
    struct gallery g = {.call = c, .files = files};

    gallery_collect(&g);
    gallery_choose(&g);
    gallery_draw(&g);
    gallery_add(&g, out, about);
    for (size_t i = 0; i < g.n; i++)
        buf_clear(&g.all[i].content);
    free(g.all);
}
