/* A pattern, a NUL and a name. Whatever is compiled answers within the name's length; a name whose
 * special characters are escaped matches itself, and so it does with a star at either end. */
#include "config.h"

#include "common/base/glob.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void promise_itself(const char *name)
{
    char pattern[GLOB_MAX + 1];
    size_t n = 0;
    struct glob g;
    struct err e = ERR_INIT;

    if (!*name || 2 * strlen(name) + 4 > GLOB_MAX)
        return;
    for (const char *p = name; *p; p++) {
        if (strchr("*?[\\", *p))
            pattern[n++] = '\\';
        pattern[n++] = *p;
    }
    pattern[n] = '\0';
    PROMISE(glob_compile("glob", pattern, &g, &e) == 0);
    PROMISE(strchr(name, '/') || glob_matches(&g, name));
    PROMISE(!strchr(name, '/') || (g.whole && glob_matches(&g, name)));
    memmove(pattern + 2, pattern, n + 1);
    memcpy(pattern, "**", 2);
    memcpy(pattern + n + 2, "*", 2);
    PROMISE(glob_compile("glob", pattern, &g, &e) == 0);
    PROMISE(name[0] == '/' || glob_matches(&g, name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct glob g;
    struct err e = ERR_INIT;
    char text[2048];

    if (len >= sizeof(text))
        return 0;
    memcpy(text, data, len);
    text[len] = '\0';
    const char *name = strlen(text) < len ? text + strlen(text) + 1 : "";
    if (glob_compile("glob", text, &g, &e) == 0)
        (void)glob_matches(&g, name);
    else
        PROMISE(e.kind == ERR_INVALID);
    promise_itself(name);
    return 0;
}
