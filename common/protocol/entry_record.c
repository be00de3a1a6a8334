#include "config.h"

#include "common/protocol/entry_record.h"

#define TAG_LEN    1
#define PREFIX_LEN (TAG_LEN + 4) /* tag and length */
#define ID_LEN     (ENTRY_RECORD_HEAD - PREFIX_LEN)
#define PART_MAX   ((size_t)65536) /* of data in one record; any cut would do */

ssize_t entry_record_take(const char *data, size_t len, struct entry_record *out)
{
    if (len < PREFIX_LEN)
        return 0;
    size_t size = u32_get(data + TAG_LEN);
    if (size < ID_LEN || size > ENTRY_RECORD_MAX)
        return -1;
    if (len - PREFIX_LEN < size)
        return 0;
    *out = (struct entry_record){.tag = data[0],
                                 .id = u32_get(data + PREFIX_LEN),
                                 .data = data + ENTRY_RECORD_HEAD,
                                 .len = size - ID_LEN};
    return (ssize_t)(PREFIX_LEN + size);
}

static void add_head(char tag, uint32_t id, size_t len, struct buf *out)
{
    buf_add_char(out, tag);
    buf_add_u32(out, (uint32_t)(ID_LEN + len));
    buf_add_u32(out, id);
}

void entry_record_add(char tag, uint32_t id, const void *data, size_t len, struct buf *out)
{
    const char *p = data;

    do {
        size_t part = len < PART_MAX ? len : PART_MAX;

        add_head(tag, id, part, out);
        buf_add(out, p, part);
        p += part;
        len -= part;
    } while (len > 0 && buf_ok(out));
}

size_t entry_record_begin(char tag, uint32_t id, struct buf *out)
{
    size_t at = out->len;

    add_head(tag, id, 0, out);
    return at;
}

int entry_record_end(size_t at, struct buf *out)
{
    size_t size = out->len - at - PREFIX_LEN;

    if (!buf_ok(out))
        return 0;
    u32_put(out->data + at + TAG_LEN, (uint32_t)size);
    return size > ENTRY_RECORD_MAX ? -1 : 0;
}

void entry_item_add(char letter, const char *text, size_t len, struct buf *out)
{
    buf_add_char(out, letter);
    buf_add(out, text, len);
    buf_add_char(out, '\0');
}

void entry_records_join(const char *records, size_t len, char tag, struct buf *out)
{
    struct entry_record r;

    for (ssize_t n; (n = entry_record_take(records, len, &r)) > 0; records += n, len -= (size_t)n)
        if (r.tag == tag)
            buf_add(out, r.data, r.len);
}

void entry_records_copy(const char *records, size_t len, uint32_t id, struct buf *out)
{
    size_t at = out->len;
    struct entry_record r;

    buf_add(out, records, len);
    for (ssize_t n; buf_ok(out) && (n = entry_record_take(out->data + at, out->len - at, &r)) > 0;
         at += (size_t)n)
        u32_put(out->data + at + PREFIX_LEN, id);
}
