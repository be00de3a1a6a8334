#include "config.h"

#include "common/base/trace.h"

#include "common/base/crypto.h"
#include "common/base/log.h"

#include <stdio.h>
#include <string.h>

#define ID_BYTES    16
#define SPAN_BYTES  8
#define HASH_DIGITS 12 /* of a conversation: enough to tell them apart */
#define SPAN_AT     36
#define FLAGS_AT    52 /* with the dash in front of them */

static bool is_hex(const char *s, size_t n)
{
    return strspn(s, "0123456789abcdef") >= n && strspn(s, "0") < n;
}

bool trace_take(const char *traceparent)
{
    const char *t = traceparent;
    char own[TRACE_LEN + 1];

    if (!t || strlen(t) != TRACE_LEN || memcmp(t, "00-", 3) != 0 || t[SPAN_AT - 1] != '-' ||
        t[FLAGS_AT] != '-' || !is_hex(t + 3, 2 * ID_BYTES) ||
        !is_hex(t + SPAN_AT, 2 * SPAN_BYTES) || strspn(t + FLAGS_AT + 1, "0123456789abcdef") != 2)
        return false;
    memcpy(own, t, sizeof own);
    crypto_random_hex(SPAN_BYTES, own + SPAN_AT);
    memcpy(own + FLAGS_AT, t + FLAGS_AT, sizeof own - FLAGS_AT);
    log_note(LOG_TRACE, own);
    return true;
}

void trace_begin(void)
{
    char id[2 * ID_BYTES + 1], span[2 * SPAN_BYTES + 1], own[TRACE_LEN + 1];

    crypto_random_hex(ID_BYTES, id);
    crypto_random_hex(SPAN_BYTES, span);
    snprintf(own, sizeof own, "00-%s-%s-00", id,
             span); /* not sampled: there is no collector of spans */
    log_note(LOG_TRACE, own);
}

void trace_conversation(const char *tenant, const char *conversation)
{
    uint8_t digest[CRYPTO_SHA256_LEN];
    char digits[HASH_DIGITS + 1];
    char text[512];
    struct err ignored = ERR_INIT;

    if (tenant)
        log_note(LOG_TENANT, tenant);
    if (!tenant || !conversation)
        return;
    int len = snprintf(text, sizeof text, "%s\n%s", tenant, conversation);
    if (len > 0 && (size_t)len < sizeof text &&
        crypto_sha256(text, (size_t)len, digest, &ignored) == 0) {
        crypto_hex(digest, HASH_DIGITS / 2, digits);
        log_note(LOG_CONVERSATION, digits);
    }
}
