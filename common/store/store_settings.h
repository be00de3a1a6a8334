/* Which store the settings name. */
#pragma once

#include "common/base/err.h"

#include <stdbool.h>

/* As the settings have them. */
struct store_settings {
    char *place; /* SANDBOX_STORE: NULL or "", a directory's path, or s3://BUCKET[/PREFIX] */
    /* of S3 */
    char *endpoint; /* URL; "": that of AWS in the region */
    char *region;
    char *credentials; /* file with one line KEY_ID:SECRET */
    const char *ca;   /* file with further certificates that it is trusted by; "": none; borrowed */
    const char *node; /* this machine's name among those that use the store; "": it is alone */
};

static inline bool store_is_wanted(const struct store_settings *s)
{
    return s->place && *s->place;
}
