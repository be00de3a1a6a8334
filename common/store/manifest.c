#include "config.h"

#include "common/store/manifest.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/links/link.h"

#include <string.h>

#define MANIFEST_VERSION 1
#define LINE_DEPTH       4
#define NS               1000000000ll
#define FILE_MAX         (1ll << 43) /* so that MANIFEST_ENTRIES_MAX of them can be added */
#define ENCODED          (3 * (MANIFEST_TARGET_MAX + 1))

static const char *const type_names[MANIFEST_TYPES] = {"folder", "file", "link"};

/* ---- writing ---- */

static json_t *encoded(const char *text)
{
    AUTO_BUF struct buf out = BUF_INIT(ENCODED);

    link_encode(text, &out);
    return json_string(buf_str(&out));
}

static json_t *extents_new(const struct manifest_entry *entry)
{
    json_t *list = json_array();

    for (size_t i = 0; i < entry->n_extents; i++) {
        json_array_append_new(list, json_integer((json_int_t)entry->extents[i].at));
        json_array_append_new(list, json_integer((json_int_t)entry->extents[i].len));
    }
    return list;
}

/* Has it any holes? Else its extents need not be written. */
static bool is_whole(const struct manifest_entry *entry)
{
    return entry->bytes == entry->size;
}

static json_t *entry_new(const struct manifest_entry *entry, bool here)
{
    json_t *row = json_pack("{s:o}", type_names[entry->type], encoded(entry->name));

    if (entry->type == MANIFEST_LINK) {
        json_object_set_new(row, "to", encoded(entry->target));
        return row;
    }
    json_object_set_new(row, "mode", json_integer((json_int_t)entry->mode));
    json_object_set_new(row, "time", json_integer(clock_ns_of(entry->mtime)));
    if (entry->type == MANIFEST_FOLDER)
        return row;
    json_object_set_new(row, "size", json_integer((json_int_t)entry->size));
    json_object_set_new(row, "sum", json_string(entry->sum));
    if (!is_whole(entry))
        json_object_set_new(row, "data", extents_new(entry));
    if (here) {
        json_object_set_new(row, "ino", json_integer((json_int_t)entry->ino));
        json_object_set_new(row, "ctime", json_integer(entry->ctime_ns));
    }
    return row;
}

static void write_line(json_t *take_value, struct buf *out)
{
    json_auto_t *value = take_value;

    (void)json_write(value, out);
    buf_add_char(out, '\n');
}

int manifest_write(const struct manifest *m, bool here, struct buf *out)
{
    write_line(json_pack("{s:i, s:I, s:s, s:s, s:s, s:I}", "version", MANIFEST_VERSION,
                         "generation", (json_int_t)m->generation, "node", m->node, "tenant",
                         m->tenant, "conversationId", m->conversation, "lastUsedAt",
                         (json_int_t)m->last_used),
               out);
    for (size_t i = 0; i < m->n && buf_ok(out); i++)
        write_line(entry_new(&m->entries[i], here), out);
    write_line(json_pack("{s:I}", "end", (json_int_t)m->n), out);
    return buf_ok(out) ? 0 : -1;
}

/* ---- reading ---- */

static int damaged(struct err *e)
{
    return err_set(e, ERR_INVALID, "a conversation's record in the store is damaged");
}

/* Caller frees; NULL: it stands for no text of 1 to max bytes. */
static char *decode(const char *text, size_t max)
{
    const size_t len = text ? strlen(text) : 0;
    AUTO_BUF struct buf out = BUF_INIT(max);

    for (size_t i = 0; i < len; i++) {
        int c = text[i] == '%' ? parse_percent(text + i, len - i) : (unsigned char)text[i];
        if (c <= 0)
            return NULL;
        buf_add_char(&out, (char)c);
        i += text[i] == '%' ? 2 : 0;
    }
    return buf_ok(&out) && out.len > 0 ? buf_take(&out) : NULL;
}

static bool number(const json_t *row, const char *name, int64_t min, int64_t max, int64_t *out)
{
    const json_t *value = json_object_get(row, name);

    *out = json_is_integer(value) ? json_integer_value(value) : 0;
    return json_is_integer(value) && *out >= min && *out <= max;
}

static bool read_attributes(const json_t *row, struct manifest_entry *out)
{
    int64_t mode, ns;

    if (!number(row, "mode", 0, 0777, &mode) || !number(row, "time", INT64_MIN, INT64_MAX, &ns))
        return false;
    out->mode = (mode_t)mode;
    out->mtime = (struct timespec){.tv_sec = ns / NS, .tv_nsec = ns % NS};
    if (out->mtime.tv_nsec < 0) {
        out->mtime.tv_sec--;
        out->mtime.tv_nsec += NS;
    }
    return true;
}

static bool read_extents(const json_t *list, struct manifest_entry *out)
{
    const size_t n = json_array_size(list) / 2;
    uint64_t end = 0;

    if (!json_is_array(list) || json_array_size(list) % 2 || n > EXTENTS_MAX)
        return false;
    out->extents = mem_array(n + 1, sizeof *out->extents);
    for (size_t i = 0; i < n; i++) {
        const json_int_t at = json_integer_value(json_array_get(list, 2 * i));
        const json_int_t len = json_integer_value(json_array_get(list, 2 * i + 1));
        if (at < 0 || (uint64_t)at < end || len <= 0 || (uint64_t)at > out->size ||
            (uint64_t)len > out->size - (uint64_t)at)
            return false;
        end = (uint64_t)at + (uint64_t)len;
        out->extents[out->n_extents++] = (struct extent){(uint64_t)at, (uint64_t)len};
        out->bytes += (uint64_t)len;
    }
    return true;
}

static bool read_file(const json_t *row, struct manifest_entry *out)
{
    const char *sum = json_get_string(row, "sum");
    const json_t *data = json_object_get(row, "data");
    int64_t size;

    if (!read_attributes(row, out) || !number(row, "size", 0, FILE_MAX, &size) || !sum ||
        strspn(sum, "0123456789abcdef") != PAYLOAD_SUM_LEN || sum[PAYLOAD_SUM_LEN])
        return false;
    memcpy(out->sum, sum, sizeof out->sum);
    out->size = (uint64_t)size;
    out->ino = (uint64_t)json_get_integer(row, "ino", 0);
    out->ctime_ns = json_get_integer(row, "ctime", 0);
    if (data)
        return read_extents(data, out);
    out->bytes = out->size;
    out->n_extents = out->size > 0;
    out->extents = mem_array(1, sizeof *out->extents);
    out->extents[0] = (struct extent){0, out->size};
    return true;
}

static bool read_entry(const json_t *row, struct manifest_entry *out)
{
    const char *name = NULL;

    for (int type = 0; type < MANIFEST_TYPES && !name; type++) {
        name = json_get_string(row, type_names[type]);
        out->type = (enum manifest_type)type;
    }
    out->name = decode(name, FILES_NAME_MAX);
    if (!out->name || !beneath_name_fits(out->name))
        return false;
    if (out->type == MANIFEST_LINK) {
        out->target = decode(json_get_string(row, "to"), MANIFEST_TARGET_MAX);
        return out->target != NULL;
    }
    return out->type == MANIFEST_FOLDER ? read_attributes(row, out) : read_file(row, out);
}

static bool read_head(const json_t *row, struct manifest *out)
{
    const char *node = json_get_string(row, "node");
    const char *tenant = json_get_string(row, "tenant");
    const char *conversation = json_get_string(row, "conversationId");
    int64_t generation, version;

    if (!number(row, "version", MANIFEST_VERSION, MANIFEST_VERSION, &version) ||
        !number(row, "generation", 1, INT64_MAX / 2, &generation) || !node || !tenant ||
        !conversation)
        return false;
    out->generation = (uint64_t)generation;
    out->node = mem_strdup(node);
    out->tenant = mem_strdup(tenant);
    out->conversation = mem_strdup(conversation);
    out->last_used = json_get_integer(row, "lastUsedAt", 0);
    return true;
}

/* Takes the next line off the text. */
static json_t *next_line(const char **text, size_t *len)
{
    const char *end = *len ? memchr(*text, '\n', *len) : NULL;
    struct err why = ERR_INIT;

    if (!end)
        return NULL;
    json_t *value = json_parse(*text, (size_t)(end - *text), LINE_DEPTH, &why);
    *len -= (size_t)(end + 1 - *text);
    *text = end + 1;
    return value;
}

int manifest_parse_head(const char *text, size_t len, struct manifest *out, struct err *e)
{
    json_auto_t *head = next_line(&text, &len);

    *out = (struct manifest){0};
    return head && read_head(head, out) ? 0 : damaged(e);
}

int manifest_parse(const char *text, size_t len, struct manifest *out, struct err *e)
{
    AUTO_MANIFEST struct manifest m = {0};
    json_auto_t *head = next_line(&text, &len);
    int64_t n = -1;

    if (!head || !read_head(head, &m))
        return damaged(e);
    while (n < 0) {
        json_auto_t *row = next_line(&text, &len);
        if (!row)
            return damaged(e);
        if (number(row, "end", 0, MANIFEST_ENTRIES_MAX, &n))
            break;
        n = -1;
        if (m.n == MANIFEST_ENTRIES_MAX || !read_entry(row, manifest_add(&m)))
            return damaged(e);
    }
    if ((size_t)n != m.n || len > 0)
        return damaged(e);
    *out = m;
    m = (struct manifest){0};
    return 0;
}

/* ---- the entries ---- */

struct manifest_entry *manifest_add(struct manifest *m)
{
    if ((m->n & (m->n - 1)) == 0) /* full: it doubles */
        m->entries = mem_resize(m->entries, m->n ? 2 * m->n : 1, sizeof *m->entries);
    m->entries[m->n] = (struct manifest_entry){.name = NULL};
    return &m->entries[m->n++];
}

void manifest_entry_clear(struct manifest_entry *entry)
{
    free(entry->name);
    free(entry->target);
    free(entry->extents);
    *entry = (struct manifest_entry){.name = NULL};
}

void manifest_clear(struct manifest *m)
{
    for (size_t i = 0; i < m->n; i++)
        manifest_entry_clear(&m->entries[i]);
    free(m->entries);
    free(m->node);
    free(m->tenant);
    free(m->conversation);
    *m = (struct manifest){0};
}

static int compare_entries(const void *a, const void *b)
{
    const struct manifest_entry *const *left = a, *const *right = b;

    return strcmp((*left)->name, (*right)->name);
}

const struct manifest_entry **manifest_index(const struct manifest *m)
{
    const struct manifest_entry **index = mem_array(m->n + 1, sizeof *index);

    for (size_t i = 0; i < m->n; i++)
        index[i] = &m->entries[i];
    qsort(index, m->n, sizeof *index, compare_entries);
    return index;
}

const struct manifest_entry *manifest_find(const struct manifest_entry *const *index, size_t n,
                                           const char *name)
{
    const struct manifest_entry wanted = {.name = (char *)(uintptr_t)name}, *key = &wanted;
    const struct manifest_entry *const *found = bsearch(&key, index, n, sizeof *index,
                                                        compare_entries);

    return found ? *found : NULL;
}

static int compare_sums(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **manifest_sums(const struct manifest *m, size_t *out_n)
{
    const char **sums = mem_array(m->n + 1, sizeof *sums);
    size_t n = 0, kept = 0;

    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].type == MANIFEST_FILE)
            sums[n++] = m->entries[i].sum;
    qsort(sums, n, sizeof *sums, compare_sums);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || strcmp(sums[kept - 1], sums[i]) != 0)
            sums[kept++] = sums[i];
    *out_n = kept;
    return sums;
}

bool manifest_has_sum(const char *const *sums, size_t n, const char *sum)
{
    return bsearch(&sum, sums, n, sizeof *sums, compare_sums) != NULL;
}

struct usage manifest_usage(const struct manifest *m)
{
    struct usage u = {.files = m->n};

    for (size_t i = 0; i < m->n; i++)
        u.bytes += m->entries[i].bytes;
    return u;
}
