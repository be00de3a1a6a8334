#include "config.h"

#include "common/sandbox/links/file_link.h"

#include "common/base/b64.h"
#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/mem.h"

#include <string.h>

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

bool file_token_is(const struct file_key *key, const char *text, const char *token)
{
    char right[FILE_TOKEN_LEN + 1];

    file_token(key, text, right);
    return right[0] && crypto_equal(token, strlen(token), right, FILE_TOKEN_LEN);
}
