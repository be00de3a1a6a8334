#include "config.h"

#include "common/tools/words.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/mcp/features/content.h"
#include "common/mcp/server.h"
#include "common/rpc/json.h"
#include "common/sandbox/links/link.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
    else if (bytes < 1000000000)
        buf_addf(out, "%.1f MB", (double)bytes / 1e6);
    else
        buf_addf(out, "%.1f GB", (double)bytes / 1e9);
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

/* ---- files ---- */

static void say_line(struct mcp_result *out, const struct buf *line)
{
    mcp_result_say(out, "%s", buf_str(line));
}

/* What people want comes first; the rest is alike. */
static size_t rank_of(const char *name)
{
    static const char *const wanted[] = {"html", "htm", "pdf",  "xlsx", "docx", "pptx",
                                         "png",  "jpg", "jpeg", "gif",  "webp", "svg",
                                         "csv",  "zip", "mp4",  "mp3",  "wav"};
    const char *dot = strrchr(name, '.');
    size_t i = dot ? 0 : ARRAY_LEN(wanted);

    while (i < ARRAY_LEN(wanted) && strcasecmp(dot + 1, wanted[i]) != 0)
        i++;
    return i;
}

static size_t depth_of(const char *name)
{
    size_t depth = 0;

    for (; (name = strchr(name, '/')); name++)
        depth++;
    return depth;
}

int words_compare_names(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            size_t m = strspn(a += strspn(a, "0"), "0123456789");
            size_t n = strspn(b += strspn(b, "0"), "0123456789");
            int order = m == n ? memcmp(a, b, m) : m < n ? -1 : 1;
            if (order)
                return order;
            a += m;
            b += n;
        } else if (*a != *b) {
            break;
        } else {
            a++;
            b++;
        }
    }
    return (unsigned char)*a - (unsigned char)*b;
}

static const char *name_of(const json_t *file)
{
    const char *name = json_get_string(file, "name");

    return name ? name : "?";
}

static bool is_new(const json_t *file)
{
    const char *change = json_get_string(file, "change");

    return !change || strcmp(change, "created") == 0;
}

static int compare_numbers(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int compare_files(const void *left, const void *right)
{
    const json_t *a = *(const json_t *const *)left, *b = *(const json_t *const *)right;
    const char *m = name_of(a), *n = name_of(b);
    const size_t keys[][2] = {
        /* Folders and deleted files have no link. */
        {!json_get_string(a, "url"), !json_get_string(b, "url")},
        {rank_of(m) == rank_of(""), rank_of(n) == rank_of("")},
        {depth_of(m), depth_of(n)},
        {!is_new(a), !is_new(b)},
        {rank_of(m), rank_of(n)},
    };
    int order = 0;

    for (size_t i = 0; order == 0 && i < ARRAY_LEN(keys); i++)
        order = compare_numbers(keys[i][0], keys[i][1]);
    if (order == 0)
        order = words_compare_names(m, n);
    return order ? order : strcmp(m, n);
}

json_t *words_sorted(const json_t *files)
{
    const size_t n = json_array_size(files);
    AUTO_FREE json_t **rows = mem_array(n + 1, sizeof *rows);
    json_t *sorted = json_array();

    for (size_t i = 0; i < n; i++)
        rows[i] = json_array_get(files, i);
    qsort(rows, n, sizeof *rows, compare_files);
    for (size_t i = 0; i < n; i++)
        json_array_append(sorted, rows[i]);
    return sorted;
}

/* The length of a link in front of the file's name; 0: it has none, or is signed for this file. */
static size_t link_base_len(const json_t *file, struct buf *encoded)
{
    const char *url = json_get_string(file, "url");
    size_t len = url ? strlen(url) : 0;

    buf_reset(encoded);
    link_encode(name_of(file), encoded);
    if (len <= encoded->len || strcmp(url + len - encoded->len, buf_str(encoded)) != 0)
        return 0;
    return len - encoded->len;
}

struct words_base words_base_of(const json_t *files, size_t n)
{
    static const struct words_base none = {.len = 0};
    AUTO_BUF struct buf encoded = BUF_INIT(LINE_MAX_BYTES);
    struct words_base base = none;
    size_t links = 0;

    for (size_t i = 0; i < n; i++) {
        const json_t *file = json_array_get(files, i);
        const char *url = json_get_string(file, "url");
        size_t len = link_base_len(file, &encoded);

        if (!url)
            continue;
        if (links++ == 0)
            base = (struct words_base){url, len};
        else if (len != base.len || memcmp(url, base.url, len) != 0)
            return none;
    }
    return links > 1 ? base : none;
}

void words_say_base(struct mcp_result *out, const struct words_base *base)
{
    if (base->len > 0)
        mcp_result_say(out, "links: %.*s + name", (int)base->len, base->url);
}

void words_link(struct buf *line, const json_t *file, const struct words_base *base)
{
    const char *url = json_get_string(file, "url");

    if (url && base->len == 0)
        buf_addf(line, ": %s", url);
    else if (url && strcmp(url + base->len, name_of(file)) != 0)
        buf_addf(line, ": %s", url + base->len);
}

/* A new file that is whole is the rule; sizes are seldom needed. */
static void file_line(struct buf *line, const json_t *file, const struct words_files *how,
                      const struct words_base *base)
{
    const bool there = json_get_string(file, "url") != NULL;
    json_int_t bytes = json_get_integer(file, "size", 0);

    content_clean_name(name_of(file), line);
    if (!is_new(file))
        buf_add_str(line, there ? " (changed)" : " (deleted)");
    if (there && bytes == 0) {
        buf_add_str(line, " (empty)");
    } else if (there && how->full) {
        buf_add_str(line, " (");
        words_size(line, (uint64_t)bytes);
        buf_add_char(line, ')');
    }
    if (there && how->cut_off)
        buf_add_str(line, " (perhaps incomplete)");
    words_link(line, file, base);
}

static void say_file(struct mcp_result *out, const json_t *file, const struct words_files *how,
                     const struct words_base *base)
{
    AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_BYTES);

    file_line(&line, file, how, base);
    say_line(out, &line);
}

void words_file(struct mcp_result *out, const json_t *file)
{
    say_file(out, file, &(struct words_files){.full = true}, &(struct words_base){.len = 0});
}

void words_files(struct mcp_result *out, const struct mcp_tool_call *c, const json_t *files,
                 const struct words_files *how)
{
    json_auto_t *sorted = words_sorted(files);
    const size_t n = json_array_size(sorted);
    const size_t said = how->full || n < FILES_SAID ? n : FILES_SAID;
    const size_t more = n - said + how->omitted;
    const struct words_base base = words_base_of(sorted, said);

    words_say_base(out, &base);
    for (size_t i = 0; i < said; i++)
        say_file(out, json_array_get(sorted, i), how, &base);
    if (more > 0)
        mcp_result_say(out, "%zu more file%s: %slist_files", more, more == 1 ? "" : "s",
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
