/*
 * What is kept of a stream of output: its head and its tail, in fixed memory, whatever a program
 * prints.
 */
#ifndef SANDCGI_RECORDS_CAPTURE_H
#define SANDCGI_RECORDS_CAPTURE_H

#include "common/base/auto.h"
#include "common/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct capture {
    char *data;  /* keep bytes: the head fills the first half, the tail is a ring in the second */
    size_t keep; /* bytes kept at most */
    uint64_t total; /* bytes seen */
};

#define AUTO_CAPTURE AUTO(capture_clear)

/* keep >= 2. */
void capture_init(struct capture *c, size_t keep);
void capture_clear(struct capture *c);

void capture_add(struct capture *c, const char *data, size_t len);

bool capture_truncated(const struct capture *c);

/*
 * Appends what was kept as valid UTF-8: broken sequences become U+FFFD, and where bytes were left
 * out stands a line that says how many. *out_kept gets the number of original bytes kept. out needs
 * room for 3 * keep + 64 bytes.
 */
void capture_text(const struct capture *c, struct buf *out, uint64_t *out_kept);

#endif
