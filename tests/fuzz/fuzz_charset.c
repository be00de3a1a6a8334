/* Bytes of any encoding: what is made of them is UTF-8. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/charset.h"
#include "common/base/utf8.h"
#include "tests/fuzz/fuzz.h"

static void decode(const char *charset, const char *s, size_t len)
{
    AUTO_BUF struct buf out = BUF_INIT(8 * len + 16);

    if (!charset)
        return;
    PROMISE(charset_decode(charset, s, len, &out) <= len);
    PROMISE(buf_ok(&out) && utf8_valid(buf_str(&out), out.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const all[] = {"UTF-16LE",  "UTF-16BE", "Windows-1252", "Windows-1251",
                                      "Shift_JIS", "GBK",      "IBM437"};
    const char *s = (const char *)data;

    charset_prepare();
    decode(charset_of_text(s, size), s, size);
    decode(charset_of_name(s, size), s, size);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        decode(all[i], s, size);
    return 0;
}
