#include "config.h"

#include "common/store/payload.h"

#include "common/base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 65536

/* ---- extents ---- */

/* The next data at or behind at; 0: there is none. */
static int next_extent(int fd, uint64_t at, uint64_t size, struct extent *out, struct err *e)
{
    off_t data = lseek(fd, (off_t)at, SEEK_DATA);

    if (data < 0 && errno == ENXIO)
        return 0;
    if (data < 0 && errno == EINVAL) /* a file system without holes */
        data = (off_t)at;
    if (data < 0)
        return err_errno(e, "a file cannot be examined");
    off_t hole = lseek(fd, data, SEEK_HOLE);
    if (hole < 0 || (uint64_t)hole > size)
        hole = (off_t)size;
    if (hole <= data)
        return 0;
    *out = (struct extent){(uint64_t)data, (uint64_t)(hole - data)};
    return 1;
}

struct extent *payload_extents(int fd, uint64_t size, size_t *out_n, uint64_t *out_bytes,
                               struct err *e)
{
    AUTO_FREE struct extent *all = mem_array(1, sizeof *all);
    struct extent one;
    int more = 1;

    *out_n = 0;
    *out_bytes = 0;
    for (uint64_t at = 0; at < size; at = one.at + one.len) {
        more = next_extent(fd, at, size, &one, e);
        if (more <= 0)
            break;
        if (*out_n == EXTENTS_MAX) {
            err_set(e, ERR_LIMIT, "it has more than %d pieces between holes", EXTENTS_MAX);
            return NULL;
        }
        all = mem_resize(all, *out_n + 1, sizeof *all);
        all[(*out_n)++] = one;
        *out_bytes += one.len;
    }
    return more < 0 ? NULL : TAKE_PTR(all);
}

/* ---- passing ---- */

int payload_rewind(struct payload *c, struct err *e)
{
    payload_clear(c);
    c->extent = 0;
    c->in_extent = c->done = 0;
    c->changed = false;
    c->hash = crypto_hash_new(e);
    return c->hash ? 0 : -1;
}

void payload_clear(struct payload *c)
{
    crypto_hash_free(TAKE_PTR(c->hash));
}

/* The extent where it is, and how much of len bytes is in it; NULL: behind the last. */
static const struct extent *extent_now(const struct payload *c, size_t *len)
{
    if (c->extent == c->n_extents)
        return NULL;
    const struct extent *x = &c->extents[c->extent];
    if (*len > x->len - c->in_extent)
        *len = (size_t)(x->len - c->in_extent);
    return x;
}

static int passed(struct payload *c, const void *data, size_t len, struct err *e)
{
    c->done += len;
    c->in_extent += len;
    if (c->fd >= 0 && c->in_extent == c->extents[c->extent].len) {
        c->extent++;
        c->in_extent = 0;
    }
    return crypto_hash_add(c->hash, data, len, e);
}

static int sum_now(const struct payload *c, char out[PAYLOAD_SUM_LEN + 1], struct err *e)
{
    uint8_t digest[CRYPTO_SHA256_LEN];

    if (crypto_hash_get(c->hash, digest, e) < 0)
        return -1;
    crypto_hex(digest, sizeof digest, out);
    return 0;
}

static int has_changed(struct payload *c, struct err *e)
{
    c->changed = true;
    return err_set(e, ERR_IO, "the file changed while it was copied");
}

static ssize_t read_some(struct payload *c, void *to, size_t len, struct err *e)
{
    if (c->fd < 0) {
        len = len < c->text->len - c->done ? len : (size_t)(c->text->len - c->done);
        memcpy(to, c->text->data + c->done, len);
        return (ssize_t)len;
    }
    const struct extent *x = extent_now(c, &len);
    ssize_t n = x ? pread(c->fd, to, len, (off_t)(x->at + c->in_extent)) : 0;
    if (n < 0) {
        c->changed = true;
        return err_errno(e, "a file cannot be read");
    }
    return n == 0 && c->done < c->size ? has_changed(c, e) : n; /* it became shorter */
}

ssize_t payload_read(struct payload *c, void *to, size_t len, struct err *e)
{
    char sum[PAYLOAD_SUM_LEN + 1];
    const uint64_t size = c->fd < 0 ? c->text->len : c->size;
    ssize_t n = size > 0 ? read_some(c, to, len, e) : 0;

    if (n <= 0)
        return n;
    if (passed(c, to, (size_t)n, e) < 0)
        return -1;
    if (c->done < size || !c->sum[0])
        return n;
    if (sum_now(c, sum, e) < 0)
        return -1;
    return strcmp(sum, c->sum) == 0 ? n : has_changed(c, e);
}

static int write_some(struct payload *c, const char *data, size_t len, struct err *e)
{
    while (len > 0) {
        size_t part = len;
        const struct extent *x = extent_now(c, &part);
        ssize_t n = x ? pwrite(c->fd, data, part, (off_t)(x->at + c->in_extent)) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "a file cannot be written");
        if (n == 0)
            return err_set(e, ERR_PROTOCOL, "the store has more than belongs to a file");
        if (passed(c, data, (size_t)n, e) < 0)
            return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

int payload_write(struct payload *c, const void *data, size_t len, struct err *e)
{
    if (c->fd >= 0)
        return write_some(c, data, len, e);
    if (c->first && len > c->size - c->done)
        len = (size_t)(c->size - c->done);
    buf_add(c->text, data, len);
    if (!buf_ok(c->text))
        return err_set(e, ERR_PROTOCOL,
                       "the store has more than %zu bytes where a record should be", c->text->max);
    return passed(c, data, len, e);
}

bool payload_is_full(const struct payload *c)
{
    return c->first && c->done == c->size;
}

int payload_check(const struct payload *c, struct err *e)
{
    char sum[PAYLOAD_SUM_LEN + 1];

    if (sum_now(c, sum, e) < 0)
        return -1;
    if ((c->fd >= 0 && c->done != c->size) || (c->sum[0] && strcmp(sum, c->sum) != 0))
        return err_set(e, ERR_PROTOCOL, "a file in the store is damaged");
    return 0;
}

/* ---- sums ---- */

int payload_sum(struct payload *c, struct err *e)
{
    AUTO_FREE char *block = mem_alloc_raw(BLOCK);
    ssize_t n;

    c->sum[0] = '\0';
    if (payload_rewind(c, e) < 0)
        return -1;
    while ((n = payload_read(c, block, BLOCK, e)) > 0)
        ;
    return n < 0 ? -1 : sum_now(c, c->sum, e);
}

int payload_sum_text(const struct buf *text, char out[PAYLOAD_SUM_LEN + 1], struct err *e)
{
    uint8_t digest[CRYPTO_SHA256_LEN];

    if (crypto_sha256(text->data, text->len, digest, e) < 0)
        return -1;
    crypto_hex(digest, sizeof digest, out);
    return 0;
}
