/* The engine's list of images: labels are strangers' text; what comes out is within the bounds that
 * everybody relies on. */
#include "config.h"

#include "common/engine/docker_list.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct engine_runners r = {0};
    struct err e = ERR_INIT;
    if (runners_parse((const char *)data, len, "runner-*,sandcgi-runner-*", &r, &e) < 0) {
        promise_error(&e);
        return 0;
    }
    PROMISE(r.n <= RUNNERS_MAX);
    for (size_t i = 0; i < r.n; i++) {
        const struct engine_runner *x = &r.items[i];
        PROMISE(*x->language && strlen(x->language) <= 32);
        PROMISE(strlen(x->image) <= RUNNER_IMAGE_MAX);
        PROMISE(engine_image_allowed("runner-*,sandcgi-runner-*", x->image));
        PROMISE(strlen(x->version) <= RUNNER_VERSION_MAX && !strpbrk(x->version, "\r\n"));
        PROMISE(strlen(x->libraries) <= RUNNER_LIBRARIES_MAX && !strpbrk(x->libraries, "\r\n"));
        PROMISE(strlen(x->preload) <= RUNNER_PRELOAD_MAX && !strpbrk(x->preload, "\r\n"));
        PROMISE(x->protocol > 0 || (!x->warm && !*x->preload));
        PROMISE(x->protocol == 0 || x->protocol == 2 || x->protocol == 3);
        PROMISE(i == 0 || strcmp(r.items[i - 1].language, x->language) < 0);
    }
    engine_runners_clear(&r);
    return 0;
}
