/* What the fuzz targets share. A broken promise ends the program: that is how a fuzzer notices it.
 */
#pragma once

#include "common/base/err.h"
#include "common/base/utf8.h"
#include "tests/fuzz/replay.h"

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

#ifdef WITH_FUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
#else
/* One program replays the seeds of all targets: each is a group of it. */
static int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

__attribute__((constructor)) static void fuzz_add_target(void)
{
    static const struct replay_target target = {LLVMFuzzerTestOneInput};
    static struct unit_group group = {.name = __BASE_FILE__,
                                      .n_tests = 1,
                                      .test_name = replay_name,
                                      .passes = replay_passes,
                                      .tests = &target};

    unit_add_group(&group);
}
#endif

/* Every failure must say something, on one line, that can be sent to a client. */
static inline void promise_error(const struct err *e)
{
    PROMISE(e->kind != ERR_NONE);
    PROMISE(e->text[0] != '\0');
    PROMISE(utf8_valid(e->text, strlen(e->text)));
    PROMISE(!strpbrk(e->text, "\r\n\t"));
}
