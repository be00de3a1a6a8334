/*
 * What was found out about tokens, by the SHA-256 of each: a bounded memory, whose oldest entries
 * make room. It holds no token.
 */
#pragma once

#include "common/base/crypto.h"

#include <stdbool.h>
#include <stdint.h>

#define VERDICT_TEXT_MAX 320

struct verdict {
    uint8_t digest[CRYPTO_SHA256_LEN];
    int64_t until_s; /* Unix; 0: the entry is free */
    bool good;
    char
        text[VERDICT_TEXT_MAX]; /* what is answered: the row of a good one, the reason of another */
};

struct verdicts;

/* Room for n of them, in sets of four. */
struct verdicts *verdicts_new(size_t n);
void verdicts_free(struct verdicts *v);

/* NULL: nothing is known, or not any more. Valid until the next verdicts_add. */
const struct verdict *verdicts_find(const struct verdicts *v,
                                    const uint8_t digest[CRYPTO_SHA256_LEN], int64_t now_s);
/* Replaces what was known of that token. text is cut if it is longer. */
void verdicts_add(struct verdicts *v, const uint8_t digest[CRYPTO_SHA256_LEN], bool good,
                  const char *text, int64_t until_s);
void verdicts_forget(struct verdicts *v);
