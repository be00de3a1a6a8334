/* What the fuzz targets share. A broken promise ends the program: that is how a fuzzer notices it.
 */
#pragma once

#include "common/base/err.h"
#include "common/base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROMISE(what)                                                                              \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #what);             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Every failure must say something, on one line, that can be sent to a client. */
static inline void promise_error(const struct err *e)
{
    PROMISE(e->kind != ERR_NONE);
    PROMISE(e->text[0] != '\0');
    PROMISE(utf8_valid(e->text, strlen(e->text)));
    PROMISE(!strpbrk(e->text, "\r\n\t"));
}
