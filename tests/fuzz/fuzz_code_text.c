/* Programs as they come: what is left of one is a part of it, but for the CR of a shell's lines. */
#include "config.h"

#include "common/tools/code_text.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *code = (const char *)data;

    for (int shell = 0; shell < 2; shell++) {
        AUTO_BUF struct buf out = BUF_INIT(size + 1);
        bool changed = code_text_mend(code, size, shell, &out);

        PROMISE(buf_ok(&out) && out.len <= size);
        PROMISE(changed || out.len == 0);
        PROMISE(!changed || out.len < size);
        PROMISE(shell || out.len == 0 || memmem(code, size, out.data, out.len));
        PROMISE(!shell || !memmem(buf_str(&out), out.len, "\r\n", 2) ||
                memmem(code, size, "\r\r\n", 3));
    }
    return 0;
}
