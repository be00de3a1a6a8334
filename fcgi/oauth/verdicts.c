#include "config.h"

#include "fcgi/oauth/verdicts.h"

#include "common/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAYS 4

struct verdicts {
    size_t sets;
    struct verdict items[]; /* WAYS of each set */
};

struct verdicts *verdicts_new(size_t n)
{
    size_t sets = (n + WAYS - 1) / WAYS;
    struct verdicts *v = mem_alloc(sizeof *v + sets * WAYS * sizeof v->items[0]);

    v->sets = sets;
    return v;
}

void verdicts_free(struct verdicts *v)
{
    free(v);
}

static size_t set_of(const struct verdicts *v, const uint8_t *digest)
{
    uint64_t number;

    memcpy(&number, digest, sizeof number);
    return (size_t)(number % v->sets) * WAYS;
}

const struct verdict *verdicts_find(const struct verdicts *v,
                                    const uint8_t digest[CRYPTO_SHA256_LEN], int64_t now_s)
{
    const struct verdict *set = &v->items[set_of(v, digest)];

    for (size_t i = 0; i < WAYS; i++)
        if (set[i].until_s > now_s && memcmp(set[i].digest, digest, CRYPTO_SHA256_LEN) == 0)
            return &set[i];
    return NULL;
}

void verdicts_add(struct verdicts *v, const uint8_t digest[CRYPTO_SHA256_LEN], bool good,
                  const char *text, int64_t until_s)
{
    struct verdict *set = &v->items[set_of(v, digest)], *place = set;

    for (size_t i = 0; i < WAYS; i++) {
        if (memcmp(set[i].digest, digest, CRYPTO_SHA256_LEN) == 0) {
            place = &set[i];
            break;
        }
        if (set[i].until_s < place->until_s)
            place = &set[i];
    }
    memcpy(place->digest, digest, CRYPTO_SHA256_LEN);
    place->good = good;
    place->until_s = until_s;
    snprintf(place->text, sizeof place->text, "%s", text);
}

void verdicts_forget(struct verdicts *v)
{
    memset(v->items, 0, v->sets * WAYS * sizeof v->items[0]);
}
