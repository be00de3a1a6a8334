#include "config.h"

#include "common/sandbox/links/file_link.h"

#include "common/base/b64.h"
#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/sandbox/links/link.h"

#include <inttypes.h>
#include <string.h>

#define EXPIRES     "expires="
#define SIG         "&sig="
#define EXPIRES_MAX 18 /* digits */
#define HEX_DIGITS  "0123456789abcdef"

static int token_make(const struct file_key *key, const char *text, char out[FILE_TOKEN_LEN + 1],
                      struct err *e)
{
    AUTO_FREE char *input = mem_printf("%s%s%s", key->text, text, key->text);
    AUTO_BUF struct buf base64 = BUF_INIT(B64_ENCODED_LEN(CRYPTO_MD5_LEN));
    uint8_t digest[CRYPTO_MD5_LEN];

    if (crypto_md5(input, strlen(input), digest, e) < 0)
        return -1;
    b64_encode(digest, sizeof digest, &base64);
    memcpy(out, buf_str(&base64), FILE_TOKEN_LEN);
    out[FILE_TOKEN_LEN] = '\0';
    for (char *c = out; (c = strpbrk(c, "+/"));)
        *c = *c == '+' ? '-' : '_';
    return 0;
}

int file_key_derive(const char *file_secret, struct file_key *out, struct err *e)
{
    static const char label[] = "sandcgi files 1";
    const struct crypto_part part = {label, sizeof label - 1};
    char token[FILE_TOKEN_LEN + 1];
    uint8_t mac[CRYPTO_SHA256_LEN];

    if (crypto_hmac(file_secret, strlen(file_secret), &part, 1, mac, e) < 0)
        return -1;
    crypto_hex(mac, sizeof mac, out->text);
    return token_make(out, "", token, e);
}

void file_token(const struct file_key *key, const char *text, char out[FILE_TOKEN_LEN + 1])
{
    struct err e = ERR_INIT;

    if (token_make(key, text, out, &e) == 0)
        return;
    log_error("a file's link cannot be made: %s", e.text);
    out[0] = '\0';
}

static bool is_token_of(const struct file_key *key, const char *text, const char *token)
{
    char right[FILE_TOKEN_LEN + 1];

    file_token(key, text, right);
    return right[0] && crypto_equal(token, strlen(token), right, FILE_TOKEN_LEN);
}

bool file_token_is(const struct file_keys *keys, const char *text, const char *token, int64_t now)
{
    return is_token_of(&keys->now, text, token) ||
           (now < keys->old_until && is_token_of(&keys->old, text, token));
}

/* ---- a request's URL ---- */

/* "expires=N&sig=T" and nothing else. */
static int read_signature(const char *query, struct file_url *out)
{
    size_t n = strlen(EXPIRES);
    char digits[EXPIRES_MAX + 1];
    uint64_t expires;

    if (strncmp(query, EXPIRES, n) != 0)
        return -1;
    query += n;
    n = strspn(query, "0123456789");
    if (n == 0 || n > EXPIRES_MAX || query[0] == '0' || strncmp(query + n, SIG, strlen(SIG)) != 0)
        return -1;
    memcpy(digits, query, n);
    digits[n] = '\0';
    query += n + strlen(SIG);
    if (strlen(query) != FILE_TOKEN_LEN || parse_u64(digits, 1, INT64_MAX, &expires) < 0)
        return -1;
    memcpy(out->token, query, FILE_TOKEN_LEN);
    out->expires = (int64_t)expires;
    return 0;
}

/* Copies len bytes and passes over the slash behind them. */
static const char *take_part(const char *at, const char *end, size_t len, char *out)
{
    if (!at || (size_t)(end - at) <= len || at[len] != '/')
        return NULL;
    memcpy(out, at, len);
    return at + len + 1;
}

static int no_such_file(struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, "there is no such file");
}

int file_url_parse(const char *uri, bool with_expiry, struct file_url *out, struct err *e)
{
    const char *end = uri + strcspn(uri, "?"), *at = strstr(uri, FILE_FOLDER);
    const char *dot = strcasestr(uri, "%2e");

    *out = (struct file_url){.path = NULL};
    if (!at || at >= end || (dot && dot < end) || strchr(uri, '#'))
        return no_such_file(e);
    at = take_part(at + strlen(FILE_FOLDER), end, FILE_ID_LEN, out->id);
    if (at && !with_expiry)
        at = take_part(at, end, FILE_TOKEN_LEN, out->token);
    if (!at || strspn(out->id, HEX_DIGITS) != FILE_ID_LEN)
        return no_such_file(e);
    out->path = link_decode(at, (size_t)(end - at));
    if (!out->path)
        return no_such_file(e);
    if (with_expiry && read_signature(*end ? end + 1 : end, out) < 0)
        return err_set(e, ERR_DENIED, "this link is not signed");
    return 0;
}

void file_url_clear(struct file_url *u)
{
    free(u->path);
    *u = (struct file_url){.path = NULL};
}

int file_url_check(const struct file_keys *keys, const struct file_url *u, int64_t now,
                   struct err *e)
{
    if (!u->expires)
        return file_token_is(keys, u->id, u->token, now) ? 0 : no_such_file(e);
    AUTO_FREE char *text = mem_printf("%" PRId64 " %s/%s", u->expires, u->id, u->path);
    if (!file_token_is(keys, text, u->token, now) || u->expires < now)
        return err_set(e, ERR_DENIED, "this link was altered or has expired");
    return 0;
}
