#include "config.h"

#include "common/mcp/client/seal.h"

#include "common/base/b64.h"
#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/rpc/json.h"

#include <string.h>

#define HEAD      "v1."
#define LABEL     "sandcgi request state"
#define KEY_MIN   32
#define VALUE_MAX (MCP_SEALED_MAX / 4 * 3 - 256)

static int sign(const struct mcp_server *server, const struct mcp_seal_bind *b, const char *text,
                size_t len, uint8_t out[CRYPTO_SHA256_LEN], struct err *e)
{
    AUTO_FREE char *arguments = b->arguments
                                    ? json_dumps(b->arguments, JSON_COMPACT | JSON_SORT_KEYS)
                                    : NULL;
    const char *shown = arguments ? arguments : "{}";
    const struct crypto_part parts[] = {
        {LABEL, strlen(LABEL)},
        {b->tenant ? b->tenant : "", b->tenant ? strlen(b->tenant) : 0},
        {b->method, strlen(b->method)},
        {b->name, strlen(b->name)},
        {shown, strlen(shown)},
        {text, len},
    };

    if (server->seal_key_len < KEY_MIN)
        return err_set(e, ERR_INTERNAL, "this server has no key to seal with");
    return crypto_hmac(server->seal_key, server->seal_key_len, parts, ARRAY_LEN(parts), out, e);
}

char *mcp_seal(const struct mcp_server *server, const struct mcp_seal_bind *bind,
               const json_t *value, struct err *e)
{
    AUTO_BUF struct buf plain = BUF_INIT(VALUE_MAX);
    AUTO_BUF struct buf out = BUF_INIT(MCP_SEALED_MAX);
    json_auto_t *frame = json_object();
    uint8_t mac[CRYPTO_SHA256_LEN];

    json_object_set_new(frame, "p", json_deep_copy(value));
    json_object_set_new(frame, "exp", json_integer(clock_unix_s() + MCP_SEAL_LIFE_S));
    json_write(frame, &plain);
    buf_add_str(&out, HEAD);
    b64url_encode(plain.data, plain.len, &out);
    if (!buf_ok(&plain) || !buf_ok(&out)) {
        err_set(e, ERR_LIMIT, "the state of a call may have %u bytes", VALUE_MAX);
        return NULL;
    }
    if (sign(server, bind, out.data, out.len, mac, e) < 0)
        return NULL;
    buf_add_char(&out, '.');
    b64url_encode(mac, sizeof mac, &out);
    return buf_take(&out);
}

/* Splits "v1.<value>.<mac>" and checks the seal; *out_len: of what it covers. */
static int check_seal(const struct mcp_server *server, const struct mcp_seal_bind *bind,
                      const char *sealed, size_t len, size_t *out_len)
{
    AUTO_BUF struct buf theirs = BUF_INIT(CRYPTO_SHA256_LEN + 4);
    const char *dot = memrchr(sealed, '.', len);
    uint8_t ours[CRYPTO_SHA256_LEN];
    struct err e = ERR_INIT;
    size_t covered = dot ? (size_t)(dot - sealed) : 0;

    if (len > MCP_SEALED_MAX || covered < strlen(HEAD) || memcmp(sealed, HEAD, strlen(HEAD)) != 0 ||
        b64url_decode(dot + 1, len - covered - 1, &theirs) < 0 ||
        sign(server, bind, sealed, covered, ours, &e) < 0 ||
        !crypto_equal(ours, sizeof ours, buf_str(&theirs), theirs.len))
        return -1;
    *out_len = covered;
    return 0;
}

json_t *mcp_unseal(const struct mcp_server *server, const struct mcp_seal_bind *bind,
                   const char *sealed, size_t len, struct err *e)
{
    AUTO_BUF struct buf plain = BUF_INIT(MCP_SEALED_MAX);
    size_t covered;
    struct err ignored = ERR_INIT;

    if (check_seal(server, bind, sealed, len, &covered) == 0 &&
        b64url_decode(sealed + strlen(HEAD), covered - strlen(HEAD), &plain) == 0) {
        json_auto_t *frame = json_parse(buf_str(&plain), plain.len, JSON_MAX_DEPTH + 4, &ignored);
        json_t *value = json_object_get(frame, "p");
        if (value && json_get_integer(frame, "exp", 0) >= clock_unix_s())
            return json_incref(value); /* the frame lets go of it */
    }
    err_set(e, ERR_INVALID,
            "params.requestState is not what this server gave out for this call, "
            "or has expired");
    return NULL;
}
