#include "config.h"

#include "common/sandbox/links/link.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define EXPIRES     "expires="
#define SIG         "sig="
#define SIG_LEN     (2 * CRYPTO_SHA256_LEN)
#define EXPIRES_MAX 20 /* digits */

static const char *const folders[] = {[LINK_UPLOAD] = "/uploads/", [LINK_ARCHIVE] = "/archives/"};

int link_key_derive(const char *file_secret, struct link_key *out, struct err *e)
{
    static const char label[] = "sandcgi links 1";
    const struct crypto_part part = {label, sizeof label - 1};
    return crypto_hmac(file_secret, strlen(file_secret), &part, 1, out->bytes, e);
}

static int sign(const struct link_key *key, enum link_kind kind, const char *subject,
                int64_t expires, char out[SIG_LEN + 1], struct err *e)
{
    char until[EXPIRES_MAX + 1];
    uint8_t mac[CRYPTO_SHA256_LEN];

    snprintf(until, sizeof until, "%" PRId64, expires);
    const struct crypto_part parts[] = {
        {folders[kind], strlen(folders[kind])},
        {subject, strlen(subject)},
        {until, strlen(until)},
    };
    if (crypto_hmac(key->bytes, sizeof key->bytes, parts, ARRAY_LEN(parts), mac, e) < 0)
        return -1;
    crypto_hex(mac, sizeof mac, out);
    return 0;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~' || c == '/';
}

void link_encode(const char *path, struct buf *out)
{
    for (; *path; path++) {
        if (is_plain(*path))
            buf_add_char(out, *path);
        else
            buf_addf(out, "%%%02X", (unsigned char)*path);
    }
}

char *link_url(const struct link_key *key, const char *base_url, enum link_kind kind,
               const char *subject, int64_t expires)
{
    AUTO_BUF struct buf path = BUF_INIT(3 * strlen(subject));
    char sig[SIG_LEN + 1] = "";
    struct err e = ERR_INIT;

    link_encode(subject, &path);
    if (sign(key, kind, subject, expires, sig, &e) < 0)
        log_error("a link cannot be signed: %s", e.text);
    return mem_printf("%s%s%s?" EXPIRES "%" PRId64 "&" SIG "%s", base_url, folders[kind],
                      buf_str(&path), expires, sig);
}

/* One byte of a path, "%XX" or itself; -1 for what no link of ours has there. */
static int decode_one(const char *s, size_t left, size_t *step)
{
    int c = (unsigned char)s[0];

    *step = 1;
    if (c == '%') {
        *step = 3;
        c = parse_percent(s, left);
        if (c == '/')
            return -1;
    }
    return c == 0 ? -1 : c;
}

static bool components_ok(const char *path)
{
    while (path) {
        const char *slash = strchr(path, '/');
        size_t len = slash ? (size_t)(slash - path) : strlen(path);
        if (len == 0 || (path[0] == '.' && (len == 1 || (len == 2 && path[1] == '.'))))
            return false;
        path = slash ? slash + 1 : NULL;
    }
    return true;
}

char *link_decode(const char *path, size_t len)
{
    AUTO_BUF struct buf out = BUF_INIT(LINK_SUBJECT_MAX);

    for (size_t at = 0, step; at < len; at += step) {
        int c = decode_one(path + at, len - at, &step);
        if (c < 0)
            return NULL;
        buf_add_char(&out, (char)c);
    }
    if (!buf_ok(&out) || !components_ok(buf_str(&out)))
        return NULL;
    return buf_take(&out);
}

char *link_subject(const char *uri, enum link_kind kind)
{
    size_t path_len = strcspn(uri, "?#");
    const char *at = strstr(uri, folders[kind]);

    if (!at || at >= uri + path_len)
        return NULL;
    at += strlen(folders[kind]);
    return at > uri + path_len ? NULL : link_decode(at, (size_t)(uri + path_len - at));
}

/* "expires=N&sig=H" and nothing else. */
static int read_query(const char *uri, int64_t *out_expires, char sig[SIG_LEN + 1])
{
    const char *query = strchr(uri, '?');
    char digits[EXPIRES_MAX + 1];
    uint64_t expires;

    if (!query || strncmp(query + 1, EXPIRES, strlen(EXPIRES)) != 0)
        return -1;
    query += 1 + strlen(EXPIRES);
    size_t n = strspn(query, "0123456789");
    if (n == 0 || n > EXPIRES_MAX || (query[0] == '0' && n > 1) ||
        strncmp(query + n, "&" SIG, 1 + strlen(SIG)) != 0)
        return -1;
    memcpy(digits, query, n);
    digits[n] = '\0';
    query += n + 1 + strlen(SIG);
    if (strlen(query) != SIG_LEN || parse_u64(digits, 0, INT64_MAX, &expires) < 0)
        return -1;
    *out_expires = (int64_t)expires;
    memcpy(sig, query, SIG_LEN + 1);
    return 0;
}

/* 1: it is the key's signature; 0: it is not; -1. */
static int is_signed(const struct link_key *key, enum link_kind kind, const char *subject,
                     int64_t expires, const char *given, struct err *e)
{
    char right[SIG_LEN + 1];

    if (sign(key, kind, subject, expires, right, e) < 0)
        return -1;
    return crypto_equal(given, SIG_LEN, right, SIG_LEN);
}

int link_verify(const struct link_keys *keys, enum link_kind kind, const char *subject,
                const char *uri, int64_t now, struct err *e)
{
    char given[SIG_LEN + 1];
    int64_t expires;

    if (read_query(uri, &expires, given) < 0)
        return err_set(e, ERR_DENIED, "this link is not signed; ask for a new one");
    int good = is_signed(&keys->now, kind, subject, expires, given, e);
    if (good == 0 && now < keys->old_until)
        good = is_signed(&keys->old, kind, subject, expires, given, e);
    if (good < 0)
        return -1;
    if (!good)
        return err_set(e, ERR_DENIED, "this link was altered; ask for a new one");
    if (now >= expires)
        return err_set(e, ERR_TIMEOUT, "this link has expired; ask for a new one");
    return 0;
}
