/* A line of the kernel's log: whatever it says, members end within their bounds and are ASCII. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "fcgi/doctor/denials.h"
#include "tests/fuzz/fuzz.h"

static void check_member(const char *text, size_t size)
{
    PROMISE(strnlen(text, size) < size);
    for (; *text; text++)
        PROMISE((unsigned char)*text <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *line = mem_strndup((const char *)data, len < 65536 ? len : 65536);
    struct denial d;
    bool found = denial_read(line, &d);

    PROMISE(!found || d.module);
    check_member(d.program, sizeof d.program);
    check_member(d.what, sizeof d.what);
    check_member(d.target, sizeof d.target);
    check_member(d.profile, sizeof d.profile);
    return 0;
}
