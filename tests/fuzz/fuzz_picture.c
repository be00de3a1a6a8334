/* Heads of pictures that programs have written. What is shown is the content itself. */
#include "config.h"

#include "common/base/b64.h"
#include "common/tools/runs/picture.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const types[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};
    const struct buf content = {.data = (char *)(uintptr_t)data, .len = len, .max = len};
    unsigned shown = 0;

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        json_auto_t *image = picture_new(types[i], &content);
        if (!image)
            continue;
        shown++;
        PROMISE(len >= 10);
        PROMISE(strcmp(json_string_value(json_object_get(image, "mimeType")), types[i]) == 0);
        PROMISE(json_string_length(json_object_get(image, "data")) == B64_ENCODED_LEN(len));
    }
    PROMISE(shown <= 1);
    return 0;
}
