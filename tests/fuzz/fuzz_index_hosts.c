/* The operator's own text, but hosts in it decide what may be reached. */
#include "config.h"

#include "common/index/index.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct index_settings s = {.n = 0};
    struct err e = ERR_INIT;
    char text[4097];
    int result;

    if (len >= sizeof text)
        return 0;
    memcpy(text, data, len);
    text[len] = '\0';
    result = index_settings_parse(text, &s, &e);
    if (result < 0) {
        promise_error(&e);
        return 0;
    }
    PROMISE(s.n <= INDEX_LANGUAGES_MAX);
    for (size_t i = 0; i < s.n; i++) {
        PROMISE(s.items[i].n_hosts >= 1 && s.items[i].n_hosts <= INDEX_HOSTS_MAX);
        PROMISE(strncmp(s.items[i].url, "https://", 8) == 0 && !strchr(s.items[i].url, '@'));
        for (size_t h = 0; h < s.items[i].n_hosts; h++)
            PROMISE(*s.items[i].hosts[h].name && s.items[i].hosts[h].port);
    }
    return 0;
}
