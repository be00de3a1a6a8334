/*
 * Content on its way to the store or back: the data of a file without its holes, or a text. It
 * counts and hashes what passes, so that a file that changes meanwhile, or is damaged, is noticed
 * before it is taken for whole.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/crypto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_SUM_LEN 64 /* SHA-256 in lower-case hex */

/* Data of a file, between holes. */
struct extent {
    uint64_t at, len;
};

#define EXTENTS_MAX 1024 /* of one file */

struct payload {
    int fd; /* borrowed; -1: text is the content */
    struct buf *text;
    const struct extent *extents; /* of fd, ascending; borrowed */
    size_t n_extents;
    uint64_t size;                 /* of the whole, without holes; when it comes: the most */
    char sum[PAYLOAD_SUM_LEN + 1]; /* what it must be; "": not known */
    bool first;                    /* only what is within size is wanted of what comes */
    bool changed;                  /* it cannot be read, or is no longer what sum says */
    /* where it is */
    size_t extent;
    uint64_t in_extent, done;
    struct crypto_hash *hash;
};

#define AUTO_PAYLOAD AUTO(payload_clear)

/*
 * The extents of the file that fd is open on, of size bytes; their sum in *out_bytes. ERR_LIMIT:
 * more than EXTENTS_MAX. Caller frees.
 */
struct extent *payload_extents(int fd, uint64_t size, size_t *out_n, uint64_t *out_bytes,
                               struct err *e);

/* The sum of a text. */
int payload_sum_text(const struct buf *text, char out[PAYLOAD_SUM_LEN + 1], struct err *e);
/* Reads all of it, and sets its sum. */
int payload_sum(struct payload *c, struct err *e);

/* To its beginning. */
int payload_rewind(struct payload *c, struct err *e);
/* The next bytes, at most len; 0: that was all. The last ones come only when sum is right:
 * otherwise ERR_IO, and changed. ERR_IO as well when the file cannot be read. */
ssize_t payload_read(struct payload *c, void *to, size_t len, struct err *e);
/* Takes bytes that come; ERR_PROTOCOL beyond size, ERR_IO. */
int payload_write(struct payload *c, const void *data, size_t len, struct err *e);
/* No more is wanted. */
bool payload_is_full(const struct payload *c);
/* All has come: is it as much as size says and what sum says? ERR_PROTOCOL. Of a text only sum
 * counts. */
int payload_check(const struct payload *c, struct err *e);
void payload_clear(struct payload *c);
