/* How much of something limited one tenant may hold, so that others find room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_OF_ROOM 4 /* a tenant may hold so many times the room that is left */

/* May a tenant that holds own of max take one more, when all together hold taken? One that is alone
 * gets four fifths. */
static inline bool share_allows(size_t own, size_t taken, size_t max)
{
    return taken < max && own < SHARE_OF_ROOM * (max - taken);
}

/* A tenant's number for tables of fixed size (FNV-1a); NULL: that of the calls without a tenant. */
static inline uint64_t share_key(const char *tenant)
{
    uint64_t key = 0xcbf29ce484222325;

    for (const char *c = tenant ? tenant : ""; *c; c++)
        key = (key ^ (uint8_t)*c) * 0x100000001b3;
    return key;
}
