#include "config.h"

#include "common/base/mem.h"
#include "common/base/utf8.h"
#include "common/records/capture.h"

#include <inttypes.h>
#include <string.h>

static size_t head_size(const struct capture *c)
{
    return c->keep / 2;
}

static size_t tail_size(const struct capture *c)
{
    return c->keep - head_size(c);
}

void capture_init(struct capture *c, size_t keep)
{
    *c = (struct capture){.data = mem_alloc_raw(keep), .keep = keep};
}

void capture_clear(struct capture *c)
{
    free(TAKE_PTR(c->data));
    c->total = 0;
}

static void add_to_tail(struct capture *c, const char *data, size_t len)
{
    size_t size = tail_size(c);
    uint64_t seen = c->total - head_size(c); /* bytes that went to the tail before these */
    char *ring = c->data + head_size(c);

    if (len > size) {
        seen += len - size;
        data += len - size;
        len = size;
    }
    size_t at = (size_t)(seen % size);
    size_t first = len < size - at ? len : size - at;
    memcpy(ring + at, data, first);
    memcpy(ring, data + first, len - first);
}

void capture_add(struct capture *c, const char *data, size_t len)
{
    size_t head = head_size(c);

    if (c->total < head) {
        size_t room = head - (size_t)c->total;
        size_t n = len < room ? len : room;
        memcpy(c->data + c->total, data, n);
        c->total += n;
        data += n;
        len -= n;
    }
    if (len == 0)
        return;
    add_to_tail(c, data, len);
    c->total += len;
}

bool capture_truncated(const struct capture *c)
{
    return c->total > c->keep;
}

/* The tail, unrolled so that its oldest byte comes first. */
static void unroll_tail(const struct capture *c, struct buf *out)
{
    uint64_t seen = c->total - head_size(c);
    size_t size = tail_size(c);
    const char *ring = c->data + head_size(c);

    size_t at = (size_t)(seen % size);
    buf_add(out, ring + at, size - at);
    buf_add(out, ring, at);
}

void capture_text(const struct capture *c, struct buf *out, uint64_t *out_kept)
{
    if (!capture_truncated(c)) {
        /* So far the ring goes on where the head ends. */
        utf8_repair(c->data, (size_t)c->total, out);
        *out_kept = c->total;
        return;
    }
    AUTO_BUF struct buf tail = BUF_INIT(c->keep);
    unroll_tail(c, &tail);
    size_t head = utf8_whole_len(c->data, head_size(c));
    size_t skip = utf8_lost_start(tail.data, tail.len);
    uint64_t kept = head + tail.len - skip;

    utf8_repair(c->data, head, out);
    buf_addf(out, "\n[... %" PRIu64 " bytes left out ...]\n", c->total - kept);
    utf8_repair(tail.data + skip, tail.len - skip, out);
    *out_kept = kept;
}
