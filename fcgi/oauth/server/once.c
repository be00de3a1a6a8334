#include "config.h"

#include "fcgi/oauth/server/once.h"

#include "common/base/crypto.h"
#include "common/rpc/json.h"

#include <stdio.h>
#include <string.h>

#define PREFIX     "once-"
#define CODE_BYTES 12
#define TAG_BYTES  16
#define CODES_MAX  8
#define HEX        "0123456789abcdef"

static void drop_expired(json_t *once, int64_t now)
{
    const char *tag;
    json_t *expires;
    void *next;

    json_object_foreach_safe(once, next, tag, expires) if (json_integer_value(expires) < now)
        json_object_del(once, tag);
}

/* For one more. */
static void drop_oldest(json_t *once)
{
    const char *tag, *oldest = NULL;
    json_t *expires;

    json_object_foreach(once, tag, expires) if (!oldest || json_integer_value(expires) <
                                                               json_get_integer(once, oldest, 0))
        oldest = tag;
    if (json_object_size(once) >= CODES_MAX)
        json_object_del(once, oldest);
}

void once_make(json_t *once, int64_t now, char out[ONCE_LEN + 1])
{
    char digits[2 * CODE_BYTES + 1], tag[2 * TAG_BYTES + 1];

    drop_expired(once, now);
    drop_oldest(once);
    crypto_random_hex(CODE_BYTES, digits);
    snprintf(out, ONCE_LEN + 1, PREFIX "%s", digits);
    crypto_tag(out, TAG_BYTES, tag);
    json_object_set_new(once, tag, json_integer(now + ONCE_S));
}

bool once_is_code(const char *text)
{
    return strlen(text) == ONCE_LEN && strncmp(text, PREFIX, strlen(PREFIX)) == 0 &&
           strspn(text + strlen(PREFIX), HEX) == ONCE_LEN - strlen(PREFIX);
}

bool once_take(json_t *once, const char *text, int64_t now)
{
    char tag[2 * TAG_BYTES + 1];

    drop_expired(once, now);
    crypto_tag(text, TAG_BYTES, tag);
    return json_object_del(once, tag) == 0;
}
