/* UTF-8 repair and cutting on a program's output. */
#include "config.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const char *s = (const char *)data;
    AUTO_BUF struct buf whole = BUF_INIT(3 * len);
    size_t replaced = utf8_repair(s, len, &whole);
    PROMISE(buf_ok(&whole) && utf8_valid(buf_str(&whole), whole.len));
    PROMISE(utf8_valid(s, len) == (replaced == 0));
    PROMISE(replaced > 0 || (whole.len == len && memcmp(buf_str(&whole), s, len) == 0));

    size_t step = len / 64 + 1;
    for (size_t max = 0; max <= len; max += step) {
        size_t cut = utf8_cut(s, len, max);
        PROMISE(cut <= max && max - cut <= 3);
        PROMISE(replaced > 0 || utf8_valid(s, cut));
        PROMISE(replaced == 0 || cut == max || utf8_char_len(s + cut, len - cut) > max - cut);
    }

    struct err e = ERR_INIT;
    err_set(&e, ERR_INVALID, "%.*s.", (int)len, s);
    promise_error(&e);
    return 0;
}
