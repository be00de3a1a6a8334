/* A client's URL: what is taken is https and one line, and a name made of it is one component. */
#include "config.h"

#include "tests/fuzz/fuzz.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/fetch/fetch.h"

#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *url = mem_strndup((const char *)data, size);
    char name[FETCH_NAME_MAX + 1];
    struct err e = ERR_INIT;

    if (fetch_check_url(url, &e) == 0) {
        PROMISE(strncasecmp(url, "https://", 8) == 0 && strlen(url) <= FETCH_URL_MAX);
        PROMISE(!strpbrk(url, " \t\r\n"));
    } else {
        PROMISE(e.kind == ERR_INVALID);
    }
    if (fetch_name_of_url(url, name) == 0) {
        PROMISE(name[0] && strlen(name) <= FETCH_NAME_MAX && !strchr(name, '/'));
        PROMISE(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
    }
    return 0;
}
