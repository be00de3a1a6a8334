/* Programs' texts, of which the imports are guessed. */
#include "config.h"

#include "tests/fuzz/fuzz.h"

#include "common/tools/runs/imports.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const languages[] = {"python", "typescript"};

    for (size_t i = 0; i < 2; i++) {
        json_t *names = imports_of(languages[i], (struct run_text){(const char *)data, size});
        PROMISE(json_array_size(names) <= WANTS_MAX);
        json_decref(names);
    }
    return 0;
}
