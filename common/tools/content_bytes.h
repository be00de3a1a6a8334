/* File content that a call brings along. */
#ifndef SANDCGI_TOOLS_CONTENT_BYTES_H
#define SANDCGI_TOOLS_CONTENT_BYTES_H

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/broker/run.h"

#include <stdint.h>

/* The argument 'content' (ARG_BASE64) decoded into out, whose max becomes max. ERR_LIMIT,
 * ERR_INVALID. */
int content_bytes_decode(struct run_text content, uint64_t max, struct buf *out, struct err *e);

/* An anonymous file in memory that holds them, to be read from its start, since the broker takes
 * content as a descriptor. Returns it, or -1. */
int content_bytes_fd(const struct buf *content, struct err *e);

#endif
