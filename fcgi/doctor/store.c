#include "config.h"

#include "fcgi/doctor/store.h"

#include "common/base/clock.h"
#include "common/store/kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CONTENT_MAX 64

static int try_store(struct store *store, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(CONTENT_MAX), back = BUF_INIT(CONTENT_MAX);
    char random[CRYPTO_HEX_LEN(8)], key[STORE_KEY_MAX];

    crypto_random_hex(8, random);
    snprintf(key, sizeof key, "doctor-%s", random);
    buf_add_str(&text, random);
    if (store_put_text(store, key, &text, e) < 0 || store_get_text(store, key, &back, e) < 0 ||
        store_remove(store, key, e) < 0)
        return -1;
    if (strcmp(buf_str(&text), buf_str(&back)) == 0)
        return 0;
    return err_set(e, ERR_PROTOCOL, "the store gives back something else than it was given");
}

void store_look(const struct settings *s, struct findings *out)
{
    struct err e = ERR_INIT;
    const int64_t began_ms = clock_mono_ms();

    if (!store_is_wanted(&s->store))
        return;
    AUTO_STORE struct store *store = store_open(&s->store, &e);
    if (store && try_store(store, &e) == 0)
        findings_add(out, FINDING_OK, "store", "",
                     "%s is written, read and cleared in %" PRId64 " ms", s->store.place,
                     clock_mono_ms() - began_ms);
    else
        findings_add(out, FINDING_WRONG, "store",
                     "mount it, or correct SANDBOX_STORE and the settings that begin with it",
                     "%s: %s", s->store.place, e.text);
}
