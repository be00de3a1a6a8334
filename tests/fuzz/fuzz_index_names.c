/* Package names are clients' text: whatever passes can be no option, path, URL or file of an
 * installer's. */
#include "config.h"

#include "common/index/index.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char text[512];
    size_t n, at = len < sizeof text ? len : sizeof text - 1;
    const struct index_ecosystem *rows = index_ecosystems(&n);

    memcpy(text, data, at);
    text[at] = '\0';
    for (size_t i = 0; i < n; i++) {
        struct err e = ERR_INIT;
        if (index_check_package(&rows[i], text, &e) < 0) {
            promise_error(&e);
            continue;
        }
        PROMISE(*text && *text != '-' && *text != '.' && strlen(text) <= INDEX_PACKAGE_MAX);
        PROMISE(!strpbrk(text, ":\\;'\"`$&()#%\t\r\n"));
        PROMISE(!strstr(text, "..") || !strchr(text, '/'));
        const char *slash = strchr(text, '/');
        PROMISE(!slash || (*text == '@' && !strchr(slash + 1, '/')));
    }
    return 0;
}
