#include "config.h"

#include "fcgi/tokens/token_rows.h"

#include "common/base/auto.h"
#include "common/base/b64.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ID_LEN      8
#define SECRET_LEN  43 /* base64url of 32 bytes */
#define HASH_LEN    22 /* of 16 bytes */
#define WEAK_LEN    32
#define WEAK_CHARS  8
#define EXPIRES_MAX 253402300799u /* the end of the year 9999 */
#define LOWER       "abcdefghijklmnopqrstuvwxyz"
#define DIGITS      "0123456789"
#define LETTERS     LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS
#define ID_CHARS    LOWER DIGITS
#define B64_CHARS   LETTERS "-_"
#define OWN_CHARS   LETTERS "._~+/-"
#define OWN_START   "~^(?i:bearer) +"
#define TIME_FORMAT "%Y-%m-%dT%H:%M:%SZ"
#define ROW_FORM                                                                                   \
    "must be a row that sandcgi token has written, or \"tenant token\"; correct or remove it"

/* ---- texts ---- */

bool token_tenant_is_valid(const char *tenant)
{
    size_t len = strlen(tenant);

    return len > 0 && len <= TOKEN_TENANT_MAX && strspn(tenant, LETTERS) > 0 &&
           strspn(tenant, LETTERS "._-") == len;
}

bool token_text_is_weak(const char *text)
{
    bool seen[256] = {false};
    size_t n = 0;

    for (const char *c = text; *c; c++) {
        n += !seen[(unsigned char)*c];
        seen[(unsigned char)*c] = true;
    }
    return strlen(text) < WEAK_LEN || n < WEAK_CHARS;
}

/* out holds 4 * (len + 2) / 3 + 1 characters. */
static void base64url(const uint8_t *data, size_t len, char *out)
{
    AUTO_BUF struct buf text = BUF_INIT(B64_ENCODED_LEN(CRYPTO_SHA256_LEN));

    b64_encode(data, len, &text);
    for (const char *c = buf_str(&text); *c && *c != '='; c++)
        *out++ = *c == '+' ? '-' : *c == '/' ? '_' : *c;
    *out = '\0';
}

static bool base64url_digest(const char *text, uint8_t out[CRYPTO_MD5_LEN])
{
    AUTO_BUF struct buf bytes = BUF_INIT(CRYPTO_MD5_LEN + 2);
    char padded[HASH_LEN + 3];

    for (size_t i = 0; i < HASH_LEN; i++)
        padded[i] = (char)(text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
    memcpy(padded + HASH_LEN, "==", 3);
    if (b64_decode(padded, HASH_LEN + 2, &bytes) < 0 || bytes.len != CRYPTO_MD5_LEN)
        return false;
    memcpy(out, bytes.data, CRYPTO_MD5_LEN);
    return true;
}

static void set_text(char *out, size_t size, const char *text, size_t len)
{
    snprintf(out, size, "%.*s", (int)(len < size ? len : size - 1), text);
}

/* ---- tokens ---- */

static int digest_made(struct token *t, const char *secret, struct err *e)
{
    char text[ID_LEN + SECRET_LEN + 1];

    snprintf(text, sizeof text, "%.8s%.43s", t->id, secret);
    return crypto_md5(text, strlen(text), t->digest, e);
}

int token_make(struct token *out, char text[TOKEN_TEXT_MAX + 1], struct err *e)
{
    uint32_t random[CRYPTO_SHA256_LEN / sizeof(uint32_t)];
    char secret[SECRET_LEN + 2];

    for (size_t i = 0; i < ARRAY_LEN(random); i++)
        random[i] = crypto_random_u32();
    base64url((const uint8_t *)random, sizeof random, secret);
    for (size_t i = 0; i < ID_LEN; i++)
        out->id[i] = ID_CHARS[crypto_random_u32() % strlen(ID_CHARS)];
    out->id[ID_LEN] = '\0';
    out->own = false;
    snprintf(text, TOKEN_TEXT_MAX + 1, TOKEN_PREFIX "%s_%s", out->id, secret);
    int rc = digest_made(out, secret, e);
    explicit_bzero(random, sizeof random);
    explicit_bzero(secret, sizeof secret);
    return rc;
}

/* Every text has a digest; the id is the beginning of it. */
static int digest_own(const char *text, struct token *out, struct err *e)
{
    char hex[CRYPTO_HEX_LEN(CRYPTO_SHA256_LEN)];

    if (crypto_sha256(text, strlen(text), out->digest, e) < 0)
        return -1;
    crypto_hex(out->digest, sizeof out->digest, hex);
    set_text(out->id, sizeof out->id, hex, TOKEN_ID_MAX);
    out->own = true;
    out->weak = token_text_is_weak(text);
    return 0;
}

static bool own_is_valid(const char *text)
{
    size_t len = strlen(text), body = strspn(text, OWN_CHARS);

    return len <= TOKEN_TEXT_MAX && body >= TOKEN_OWN_MIN && body + strspn(text + body, "=") == len;
}

int token_own_init(const char *text, struct token *out, struct err *e)
{
    if (!own_is_valid(text))
        return err_set(e, ERR_INVALID,
                       "a token is %d to %d letters, digits or ._~+/- (and = at the end)",
                       TOKEN_OWN_MIN, TOKEN_TEXT_MAX);
    if (strncmp(text, TOKEN_PREFIX, strlen(TOKEN_PREFIX)) == 0)
        return err_set(e, ERR_INVALID, "a token of your own must not begin with " TOKEN_PREFIX);
    return digest_own(text, out, e);
}

bool token_read(const char *text, struct token *out)
{
    const size_t start = strlen(TOKEN_PREFIX);
    const char *secret = text + start + ID_LEN + 1;

    *out = (struct token){0};
    if (strlen(text) == start + ID_LEN + 1 + SECRET_LEN &&
        strncmp(text, TOKEN_PREFIX, start) == 0 && strspn(text + start, ID_CHARS) == ID_LEN &&
        secret[-1] == '_' && strspn(secret, B64_CHARS) == SECRET_LEN) {
        set_text(out->id, sizeof out->id, text + start, ID_LEN);
        return digest_made(out, secret, NULL) == 0;
    }
    return strlen(text) <= TOKEN_TEXT_MAX && digest_own(text, out, NULL) == 0;
}

/* ---- rows ---- */

void token_row_write(const struct token *t, struct buf *out)
{
    const time_t made_s = (time_t)t->made_s;
    char hash[HASH_LEN + 3], scopes[SCOPE_TEXT_MAX], made[32];
    struct tm tm;

    base64url(t->digest, CRYPTO_MD5_LEN, hash);
    scopes_format(t->scopes, scopes);
    strftime(made, sizeof made, TIME_FORMAT, gmtime_r(&made_s, &tm));
    buf_addf(out, "\"%s\" \"%s", t->id, hash);
    if (t->expires_s)
        buf_addf(out, ",%" PRId64, t->expires_s);
    buf_addf(out, " %s %s\"; # %s\n", t->tenant, scopes, made);
}

void token_own_row_write(const struct token *t, const char *text, struct buf *out)
{
    char scopes[SCOPE_TEXT_MAX];

    scopes_format(t->scopes, scopes);
    buf_add_str(out, "\"" OWN_START);
    for (const char *c = text; *c; c++)
        buf_addf(out, "%s%c", *c == '.' || *c == '+' ? "\\" : "", *c);
    buf_addf(out, "$\" \"%s%s%s\"; # %s\n", t->tenant, t->scopes == SCOPE_ALL ? "" : " ",
             t->scopes == SCOPE_ALL ? "" : scopes, t->id);
}

/* A row's pieces, in a copy of the line. */
struct row {
    char *key, *value, *comment;
};

/* "KEY" "VALUE"; # COMMENT */
static bool row_split(char *line, struct row *out)
{
    char *end;

    out->key = line + 1;
    if (*line != '"' || !(end = strchr(out->key, '"')) || strncmp(end, "\" \"", 3) != 0)
        return false;
    *end = '\0';
    out->value = end + 3;
    if (!(end = strchr(out->value, '"')) || end[1] != ';')
        return false;
    *end = '\0';
    out->comment = end + 2 + strspn(end + 2, " \t\r");
    if (*out->comment == '#')
        out->comment += 1 + strspn(out->comment + 1, " ");
    else if (*out->comment)
        return false;
    return true;
}

unsigned token_scopes_parse(const char *list)
{
    const unsigned before = SCOPE_RUN | SCOPE_FILES | SCOPE_NETWORK;
    unsigned scopes = scopes_parse(list);

    return (scopes & before) == before ? SCOPE_ALL : scopes;
}

/* "TENANT SCOPES"; the scopes may be left out where all are meant. */
static bool owner_parse(const char *text, bool scopes_needed, struct token *out)
{
    size_t len = strcspn(text, " ");

    if (len > TOKEN_TENANT_MAX)
        return false;
    set_text(out->tenant, sizeof out->tenant, text, len);
    out->scopes = text[len] ? token_scopes_parse(text + len + 1) : scopes_needed ? 0 : SCOPE_ALL;
    return token_tenant_is_valid(out->tenant) && out->scopes;
}

static bool made_parse(const struct row *row, struct token *out)
{
    char *rest = strchr(row->value, ' ');
    struct tm tm = {0};
    uint64_t expires = 0;

    if (strlen(row->key) != ID_LEN || strspn(row->key, ID_CHARS) != ID_LEN || !rest ||
        strspn(row->value, B64_CHARS) != HASH_LEN || !base64url_digest(row->value, out->digest))
        return false;
    *rest = '\0';
    if (row->value[HASH_LEN] &&
        (row->value[HASH_LEN] != ',' ||
         parse_u64(row->value + HASH_LEN + 1, 1, EXPIRES_MAX, &expires) < 0))
        return false;
    set_text(out->id, sizeof out->id, row->key, ID_LEN);
    out->expires_s = (int64_t)expires;
    if (strptime(row->comment, TIME_FORMAT, &tm))
        out->made_s = timegm(&tm);
    return owner_parse(rest + 1, true, out);
}

/* The text of an own token from its pattern, in place. */
static bool own_parse(const struct row *row, struct token *out)
{
    char *from = row->key + strlen(OWN_START), *to = from, *text = from;
    size_t len = strlen(from);

    if (strncmp(row->key, OWN_START, strlen(OWN_START)) != 0 || len == 0 || from[len - 1] != '$')
        return false;
    from[len - 1] = '\0';
    for (; *from; from++)
        if (*from != '\\' || !from[1] || from[1] == '\\')
            *to++ = *from;
    *to = '\0';
    return own_is_valid(text) && digest_own(text, out, NULL) == 0 &&
           owner_parse(row->value, false, out);
}

static bool words_parse(char *line, struct token *out)
{
    char *save = NULL;
    const char *tenant = strtok_r(line, " \t\r", &save), *text = strtok_r(NULL, " \t\r", &save);

    return tenant && text && !strtok_r(NULL, " \t\r", &save) && strlen(text) >= TOKEN_OWN_MIN &&
           strlen(text) <= TOKEN_TEXT_MAX && digest_own(text, out, NULL) == 0 &&
           owner_parse(tenant, false, out);
}

int token_row_parse(const char *line, struct token *out, struct err *e)
{
    AUTO_FREE char *copy = mem_strdup(line + strspn(line, " \t\r"));
    struct row row;

    *out = (struct token){0};
    if (!*copy || *copy == '#')
        return 0;
    bool good = *copy != '"'             ? words_parse(copy, out)
                : !row_split(copy, &row) ? false
                : *row.key == '~'        ? own_parse(&row, out)
                                         : made_parse(&row, out);
    explicit_bzero(copy, strlen(copy));
    return good ? 1 : err_set(e, ERR_INVALID, ROW_FORM);
}
