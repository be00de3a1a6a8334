/* read_file: a file of a conversation's sandbox, or a part of it. */
#include "config.h"

#include "common/base/charset.h"
#include "common/base/utf8.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/files/media.h"
#include "common/tools/args.h"
#include "common/tools/files/content.h"
#include "common/tools/list.h"
#include "common/tools/runs/picture.h"
#include "common/tools/tools_app.h"
#include "common/tools/words.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define LENGTH_DEFAULT 65536
#define LENGTH_MAX     1048576
#define OFFSET_MAX     (UINT64_C(1) << 53) /* JSON numbers are exact up to here */
#define LINE_MAX_BYTES (16u * 1024)
#define HEAD_BYTES     4096 /* enough to find a file's type */

struct read_file {
    const char *conversation;
    const char *filename;
    struct arg_integer offset, length;
    const char *encoding;
};

static json_t *read_file_encodings(const struct tools_app *app, const char *wanted)
{
    (void)app;
    (void)wanted;
    return json_pack("[s, s]", "text", "base64");
}

static const struct arg_row read_file_arguments[] = {
    OLD_CONVERSATION_ROW(struct read_file),
    FILENAME_ROW(struct read_file, "Name below /data."),
    ARG_ROW(struct read_file, offset, "offset", ARG_INTEGER, .max = OFFSET_MAX,
            .help = "First byte."),
    ARG_ROW(struct read_file, length, "length", ARG_INTEGER, .max = LENGTH_MAX, .at_most = true,
            .help = "Bytes at most."),
    ARG_ROW(
        struct read_file, encoding, "encoding", ARG_STRING, .max = 16,
        .choices = read_file_encodings, .listed = args_unlisted,
        .help =
            "How the content comes; left out: text as text, a PNG, JPEG, GIF or WebP as an image. "
            "text: bytes that are none become U+FFFD."),
    {0},
};

/* An open file, and the range of it that was asked for. */
struct piece {
    int fd;
    const char *url; /* NULL: it has no link */
    uint64_t size;   /* of the file */
    uint64_t offset, length;
    const char *mime;
    const char *charset; /* NULL: UTF-8, or no text */
};

static int piece_read(const struct piece *p, uint64_t offset, uint64_t length, struct buf *out,
                      struct err *e)
{
    out->max = (size_t)length;
    ssize_t n = pread(p->fd, buf_reserve(out, (size_t)length), (size_t)length, (off_t)offset);
    if (n < 0)
        return err_errno(e, "the file cannot be read");
    buf_grew(out, (size_t)n);
    return 0;
}

static json_t *result_new(const struct piece *p, const char *name, const char *encoding, size_t len)
{
    json_t *result = json_pack("{s:s, s:I, s:s, s:s, s:I, s:I}", "name", name, "size",
                               (json_int_t)p->size, "mimeType", p->mime, "encoding", encoding,
                               "offset", (json_int_t)p->offset, "length", (json_int_t)len);
    uint64_t next = p->offset + len;

    /* Without bytes the file has been truncated meanwhile. */
    if (len > 0 && next < p->size)
        json_object_set_new(result, "nextOffset", json_integer((json_int_t)next));
    return result;
}

/* In another encoding; what is cut at the end belongs to the next piece. */
static json_t *decoded_new(const struct piece *p, const struct read_file *r,
                           const struct buf *content)
{
    AUTO_BUF struct buf text = BUF_INIT(4 * content->len + 16);
    size_t len = charset_decode(p->charset, buf_str(content), content->len, &text);
    bool more = len > 0 && p->offset + content->len < p->size;
    json_t *result = result_new(p, r->filename, "text", more ? len : content->len);

    json_object_set_new(result, "content", json_from_bytes(buf_str(&text), text.len));
    return result;
}

/* A character that is cut at the end belongs to the next piece. */
static size_t whole_len(const struct piece *p, const struct buf *content)
{
    const bool more = content->len > 0 && p->offset + content->len < p->size;
    const size_t whole = more ? utf8_whole_len(content->data, content->len) : 0;

    return whole > 0 ? whole : content->len;
}

/* What is of no type may be text. */
static bool may_be_text(const struct piece *p)
{
    return content_type_is_text(p->mime) || strcmp(p->mime, "application/octet-stream") == 0;
}

/* For a model a piece of a text is text, wherever it begins. */
static json_t *content_new(const struct piece *p, const struct read_file *r, bool in_text,
                           const struct buf *content)
{
    const size_t len = whole_len(p, content);
    const bool text = r->encoding ? strcmp(r->encoding, "text") == 0
                                  : in_text || content_is_plain(buf_str(content), len);
    json_t *result = result_new(p, r->filename, text ? "text" : "base64",
                                text ? len : content->len);

    if (p->charset && (!r->encoding || text)) {
        json_decref(result);
        return decoded_new(p, r, content);
    }
    json_object_set_new(result, "content",
                        text ? json_from_bytes(buf_str(content), len) : content_base64(content));
    return result;
}

/* "notes.txt (10 bytes)", where a part of it goes on, and the link, which a later part's reader
 * has. */
static void say_piece(const struct mcp_tool_call *c, const struct piece *p, struct mcp_result *out)
{
    const json_t *piece = out->structured;
    const char *encoding = json_get_string(piece, "encoding");
    json_int_t from = json_get_integer(piece, "offset", 0);
    json_int_t next = json_get_integer(piece, "nextOffset", 0);
    AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_BYTES);

    content_clean_name(json_get_string(piece, "name"), &line);
    buf_add_str(&line, " (");
    words_size(&line, (uint64_t)json_get_integer(piece, "size", 0));
    if (p->charset)
        buf_addf(&line, ", from %s", p->charset);
    buf_addf(&line, "%s)", encoding && strcmp(encoding, "base64") == 0 ? ", in base64" : "");
    if (from > 0 || next > 0)
        buf_addf(&line, ": bytes %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT, from,
                 from + json_get_integer(piece, "length", 0));
    if (next > 0)
        buf_addf(&line, "; the next with offset %" JSON_INTEGER_FORMAT, next);
    mcp_result_say(out, "%s", buf_str(&line));
    if (c->in_text && p->url && from == 0)
        mcp_result_say(out, "link: %s", p->url);
}

/* Adds the whole file as an image block; false when it is not an image or may not be shown. */
static bool show_image(const struct mcp_tool_call *c, const struct piece *p,
                       const struct read_file *r, struct mcp_result *out)
{
    const struct tools_app *app = c->app;
    AUTO_BUF struct buf content = BUF_INIT(0);
    struct err e = ERR_INIT;

    if (r->encoding || r->offset.given || r->length.given || app->limits.images_max == 0 ||
        p->size == 0 || p->size > app->limits.image_max ||
        piece_read(p, 0, p->size, &content, &e) < 0)
        return false;
    json_t *image = picture_new(p->mime, &content);
    if (!image)
        return false;
    out->structured = result_new(p, r->filename, "image", content.len);
    mcp_result_add(out, image);
    say_piece(c, p, out);
    return true;
}

/* A model can do nothing with bytes: it gets the link. */
static void say_no_text(const struct piece *p, const struct read_file *r, struct mcp_result *out)
{
    AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_BYTES);

    out->structured = result_new(p, r->filename, "base64", 0);
    content_clean_name(r->filename, &line);
    buf_add_str(&line, ": not text: ");
    words_size(&line, p->size);
    if (strncmp(p->mime, "text/", 5) != 0)
        buf_addf(&line, " of %s", p->mime);
    if (p->url)
        buf_addf(&line, ": %s", p->url);
    mcp_result_say(out, "%s", buf_str(&line));
}

static uint64_t length_default(const struct mcp_tool_call *c)
{
    const struct tools_app *app = c->app;

    return c->in_text && app->limits.answer_max < LENGTH_DEFAULT ? app->limits.answer_max
                                                                 : LENGTH_DEFAULT;
}

static int piece_set_range(const struct mcp_tool_call *c, const struct read_file *r,
                           struct piece *p, struct err *e)
{
    p->offset = r->offset.value;
    p->length = r->length.given ? r->length.value : length_default(c);
    if (p->length == 0)
        return err_set(e, ERR_INVALID, "argument 'length' must be from 1 to %d", LENGTH_MAX);
    if (p->offset > p->size)
        return err_set(e, ERR_INVALID,
                       "argument 'offset' is behind the file's end: it has %" PRIu64 " bytes",
                       p->size);
    if (p->length > p->size - p->offset)
        p->length = p->size - p->offset;
    return 0;
}

static int read_file(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                     struct err *e)
{
    const struct read_file *r = arguments;
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    AUTO_BUF struct buf head = BUF_INIT(0);
    AUTO_BUF struct buf content = BUF_INIT(0);
    struct stat st;

    if (files_check_name("filename", r->filename, strlen(r->filename), e) < 0)
        return -1;
    AUTO_FREE char *url = NULL;
    AUTO_FD int fd = broker_open_linked(&client, r->conversation, r->filename, &st, &url, e);
    struct piece p = {.fd = fd, .url = url, .size = fd < 0 ? 0 : (uint64_t)st.st_size};
    if (fd < 0 || piece_set_range(c, r, &p, e) < 0 || piece_read(&p, 0, HEAD_BYTES, &head, e) < 0)
        return -1;
    p.mime = media_type(r->filename, buf_str(&head), head.len);
    if (c->in_text && may_be_text(&p)) /* programs get the bytes */
        p.charset = charset_of_text(buf_str(&head), head.len);
    if (show_image(c, &p, r, out))
        return 0;
    if (piece_read(&p, p.offset, p.length, &content, e) < 0)
        return -1;
    if (c->in_text && !r->encoding && !p.charset &&
        !(may_be_text(&p) &&
          content_is_plain(buf_str(&head), utf8_whole_len(buf_str(&head), head.len)) &&
          !memchr(buf_str(&content), '\0', content.len))) {
        say_no_text(&p, r, out);
        return 0;
    }
    out->structured = content_new(&p, r, c->in_text, &content);
    const json_t *text = json_object_get(out->structured, "content");
    mcp_result_show(out, json_string_value(text), json_string_length(text));
    say_piece(c, &p, out);
    return 0;
}

const struct mcp_tool tool_read_file = {
    .name = "read_file",
    .title = "Read a file",
    .description = "Reads a file of /data: text, whatever its encoding, as text, a picture as an "
                   "image. A long one comes in pieces.",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = schema_read_file,
    ARGS_TABLE(read_file_arguments, struct read_file),
    .run = read_file,
};
