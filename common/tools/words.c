#include "config.h"

#include "common/tools/words.h"

#include "common/base/auto.h"
#include "common/base/utf8.h"
#include "common/mcp/features/content.h"
#include "common/mcp/server.h"
#include "common/rpc/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (16u * 1024) /* of one file: a name, and a URL in which it is encoded */
#define NAMES_SAID     20

json_t *detail_choices(const struct tools_app *app, const char *wanted)
{
    (void)app;
    (void)wanted;
    return json_pack("[s, s]", "concise", "full");
}

bool detail_is_full(const char *detail)
{
    return detail && strcmp(detail, "full") == 0;
}

size_t detail_room(const struct mcp_tool_call *c, const char *detail)
{
    const struct broker_limits *limits = &((const struct tools_app *)c->app)->limits;
    uint64_t most = limits->output_keep > limits->answer_max ? limits->output_keep
                                                             : limits->answer_max;

    return (size_t)(detail_is_full(detail) ? 3 * most : limits->answer_max);
}

const char *words_prefix(const struct mcp_tool_call *c)
{
    return c->server->tool_prefix ? c->server->tool_prefix : "";
}

void words_size(struct buf *out, uint64_t bytes)
{
    if (bytes < 1000)
        buf_addf(out, "%" PRIu64 " bytes", bytes);
    else if (bytes < 1000000)
        buf_addf(out, "%" PRIu64 " kB", (bytes + 500) / 1000);
    else
        buf_addf(out, "%.1f MB", (double)bytes / 1e6);
}

void words_binary_size(struct buf *out, uint64_t bytes)
{
    const uint64_t mb = bytes >> 20;

    if (mb >= 1024)
        buf_addf(out, "%.3g GB", (double)mb / 1024.0);
    else
        buf_addf(out, "%" PRIu64 " MB", mb);
}

void words_time(struct buf *out, int64_t ms)
{
    buf_addf(out, ms < 10000 ? "%.1f s" : "%.0f s", (double)ms / 1000.0);
}

/* Both end and begin with a whole line, unless it is a long one. */
static size_t head_len(const char *text, size_t len, size_t max)
{
    size_t cut = utf8_cut(text, len, max);
    const char *end = memrchr(text + cut - cut / 4, '\n', cut / 4);

    return end ? (size_t)(end + 1 - text) : cut;
}

static size_t tail_len(const char *text, size_t len, size_t max)
{
    const char *at = text + len - max;
    const char *line = memchr(at, '\n', max / 4);

    if (line)
        return max - (size_t)(line + 1 - at);
    return max - utf8_lost_start(at, max);
}

/* The length of a control sequence of terminals (a colour, say) at s; 0: there is none. */
static size_t sequence_len(const char *s, size_t len)
{
    size_t n = 2;

    if (len < 3 || s[0] != 0x1B || s[1] != '[')
        return 0;
    while (n < len && s[n] >= 0x20 && s[n] < 0x40)
        n++;
    return n < len ? n + 1 : 0;
}

/* Without what would steer the terminal of a client. */
static void add_printable(struct buf *out, const char *s, size_t len)
{
    for (size_t i = 0, skip; i < len; i += skip) {
        unsigned char c = (unsigned char)s[i];

        skip = sequence_len(s + i, len - i);
        if (skip == 0 && ((c < 0x20 && !strchr("\t\n\r", c)) || c == 0 || c == 0x7F))
            buf_add_str(out, "\xEF\xBF\xBD");
        else if (skip == 0)
            buf_add_char(out, s[i]);
        skip += skip == 0;
    }
}

size_t words_cut(struct buf *out, const char *text, size_t len, size_t room)
{
    if (len <= room) {
        add_printable(out, text, len);
        return 0;
    }
    size_t head = head_len(text, len, room / 2), tail = tail_len(text, len, room / 2);
    bool broken = head > 0 && text[head - 1] != '\n';

    add_printable(out, text, head);
    buf_addf(out, "%s[... %zu bytes left out ...]\n", broken ? "\n" : "", len - head - tail);
    add_printable(out, text + len - tail, tail);
    return head;
}

/* ---- files ---- */

static void say_line(struct mcp_result *out, const struct buf *line)
{
    mcp_result_say(out, "%s", buf_str(line));
}

/* A new file is the rule; sizes are seldom needed. */
static void file_line(struct buf *line, const json_t *file, bool size)
{
    const char *name = json_get_string(file, "name"), *url = json_get_string(file, "url");
    const char *change = json_get_string(file, "change");
    json_int_t bytes = json_get_integer(file, "size", 0);

    content_clean_name(name ? name : "?", line);
    if (change && strcmp(change, "created") != 0)
        buf_addf(line, " (%s)", strcmp(change, "deleted") == 0 ? "deleted" : "changed");
    if (url && (size || bytes == 0)) {
        buf_add_str(line, " (");
        words_size(line, (uint64_t)bytes);
        buf_add_char(line, ')');
    }
    if (url)
        buf_addf(line, ": %s", url);
}

static void say_file(struct mcp_result *out, const json_t *file, bool size)
{
    AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_BYTES);

    file_line(&line, file, size);
    say_line(out, &line);
}

void words_file(struct mcp_result *out, const json_t *file)
{
    say_file(out, file, true);
}

/* Deleted files, and those in folders, matter less. */
static size_t weight_of(const json_t *file)
{
    const char *name = json_get_string(file, "name");
    size_t weight = json_get_string(file, "url") ? 0 : 1000;

    for (; name && (name = strchr(name, '/')); name++)
        weight++;
    return weight;
}

void words_files(struct mcp_result *out, const struct mcp_tool_call *c, const json_t *files,
                 json_int_t omitted, bool full)
{
    size_t n = json_array_size(files), said = 0, most = full ? n : FILES_SAID;

    /* Few passes: names have at most 16 parts. */
    for (size_t weight = 0, next; said < n && said < most; weight = next) {
        next = SIZE_MAX;
        for (size_t i = 0; i < n && said < most; i++) {
            const json_t *file = json_array_get(files, i);
            size_t its = weight_of(file);
            if (its == weight) {
                say_file(out, file, full);
                said++;
            } else if (its > weight && its < next) {
                next = its;
            }
        }
    }
    if (n - said + (size_t)omitted > 0)
        mcp_result_say(out, "%zu more files: %slist_files", n - said + (size_t)omitted,
                       words_prefix(c));
}

void words_unpacked(struct mcp_result *out, const json_t *unpacked)
{
    AUTO_BUF struct buf line = BUF_INIT((NAMES_SAID + 1) * 4096);
    const json_t *names = json_object_get(unpacked, "names");
    json_int_t n = json_get_integer(unpacked, "files", 0);

    buf_addf(&line, "%" JSON_INTEGER_FORMAT " file%s%s", n, n == 1 ? "" : "s", n > 0 ? ": " : "");
    for (size_t i = 0; i < json_array_size(names) && i < NAMES_SAID; i++) {
        buf_add_str(&line, i > 0 ? ", " : "");
        content_clean_name(json_string_value(json_array_get(names, i)), &line);
    }
    buf_add_str(&line, n > NAMES_SAID ? ", …" : "");
    say_line(out, &line);
}
