/* A header's value against a value of the body (first line, rest): what is not encoded means
 * itself, and an encoded value means what it decodes to, in one spelling only. */
#include "config.h"

#include "common/base/b64.h"
#include "common/mcp/era.h"
#include "tests/fuzz/fuzz.h"

#define HEAD "=?base64?"
#define TAIL "?="

static bool is_encoded(const char *value, size_t len)
{
    return len >= strlen(HEAD TAIL) && memcmp(value, HEAD, strlen(HEAD)) == 0 &&
           memcmp(value + len - strlen(TAIL), TAIL, strlen(TAIL)) == 0;
}

static void promise_encoded(const char *text, size_t len)
{
    AUTO_BUF struct buf value = BUF_INIT(B64_ENCODED_LEN(len) + strlen(HEAD TAIL));

    buf_add_str(&value, HEAD);
    b64_encode(text, len, &value);
    buf_add_str(&value, TAIL);
    PROMISE(buf_ok(&value));
    PROMISE(era_header_equals(value.data, value.len, text, len) == utf8_valid(text, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const char *value = (const char *)data;
    const uint8_t *end = len > 0 ? memchr(data, '\n', len) : NULL;
    size_t value_len = end ? (size_t)(end - data) : 0;

    if (!end)
        return 0;
    const char *text = (const char *)end + 1;
    size_t text_len = len - value_len - 1;
    bool equal = era_header_equals(value, value_len, text, text_len);
    bool same = value_len == text_len && memcmp(value, text, text_len) == 0;
    if (!is_encoded(value, value_len))
        PROMISE(equal == same);
    else
        PROMISE(!equal || !same); /* never both: an encoded value is not its own decoding */
    promise_encoded(text, text_len);
    return 0;
}
