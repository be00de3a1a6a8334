/* Base64: bytes survive the way there and back, and what decodes has exactly one spelling. */
#include "config.h"

#include "common/base/b64.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_BUF struct buf text = BUF_INIT(B64_ENCODED_LEN(len)), back = BUF_INIT(len);
    b64_encode(data, len, &text);
    PROMISE(buf_ok(&text) && text.len == B64_ENCODED_LEN(len));
    PROMISE(b64_decode(buf_str(&text), text.len, &back) == 0);
    PROMISE(back.len == len && memcmp(buf_str(&back), data, len) == 0);

    AUTO_BUF struct buf bytes = BUF_INIT(B64_DECODED_MAX(len)), again = BUF_INIT(len);
    if (b64_decode((const char *)data, len, &bytes) < 0)
        return 0;
    b64_encode(buf_str(&bytes), bytes.len, &again);
    PROMISE(again.len == len && memcmp(buf_str(&again), data, len) == 0);
    return 0;
}
