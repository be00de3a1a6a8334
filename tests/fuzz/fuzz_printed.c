/* What programs print, and the advice that it calls for: text stays text, and never grows. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/utf8.h"
#include "common/tools/runs/advice.h"
#include "common/tools/runs/printed.h"
#include "tests/fuzz/fuzz.h"

#define SENTENCE_MAX (200 + ADVICE_NAME_MAX)

static void promise_advice(const struct buf *text)
{
    static const struct run_bounds bounds = {.memory = 1 << 30};
    AUTO_BUF struct buf out = BUF_INIT(SENTENCE_MAX);
    const struct advice_case its = {"error", ~0u, buf_str(text), text->len, "", &bounds};

    advice_find(&its, &out);
    PROMISE(buf_ok(&out));
    PROMISE(utf8_valid(buf_str(&out), out.len) && !memchr(buf_str(&out), '\n', out.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * len + 3);

    utf8_repair((const char *)data, len, &text);
    for (size_t room = 20; room < 2000; room *= 9) {
        AUTO_BUF struct buf out = BUF_INIT(3 * text.len + 100);
        size_t head = printed_add(&out, buf_str(&text), text.len, room, true);
        PROMISE(buf_ok(&out));
        PROMISE(head < text.len || text.len == 0);
        PROMISE(utf8_valid(buf_str(&out), out.len));
        PROMISE(!memchr(buf_str(&out), 0x1B, out.len));
    }
    promise_advice(&text);
    return 0;
}
