#include "config.h"

#include "common/store/store.h"

#include "common/base/auto.h"

#include <stdio.h>
#include <string.h>

void store_free(struct store **s)
{
    struct store *store = TAKE_PTR(*s);

    if (store)
        store->ops->free(store);
}

void store_key(const char *name, const char *object, char out[STORE_KEY_MAX])
{
    snprintf(out, STORE_KEY_MAX, "%s%s%s", name, *name ? "/" : "", object);
}

static int store_failed(struct err *e)
{
    if (e->kind == ERR_IO || e->kind == ERR_TIMEOUT)
        e->kind = ERR_UNAVAILABLE;
    return -1;
}

int store_put(struct store *s, const char *key, struct payload *c, struct err *e)
{
    if (s->ops->put(s, key, c, e) == 0)
        return 0;
    return c->changed ? -1 : store_failed(e);
}

int store_get(struct store *s, const char *key, struct payload *c, struct err *e)
{
    return s->ops->get(s, key, c, e) == 0 ? 0 : store_failed(e);
}

int store_remove(struct store *s, const char *key, struct err *e)
{
    return s->ops->remove(s, key, e) == 0 ? 0 : store_failed(e);
}

int store_put_text(struct store *s, const char *key, struct buf *text, struct err *e)
{
    AUTO_PAYLOAD struct payload c = {.fd = -1, .text = text, .size = text->len};

    if (payload_sum_text(text, c.sum, e) < 0)
        return -1;
    return store_put(s, key, &c, e);
}

static int get_text(struct store *s, const char *key, struct buf *out, bool first, struct err *e)
{
    AUTO_PAYLOAD struct payload c = {.fd = -1, .text = out, .size = out->max, .first = first};

    buf_reset(out);
    return store_get(s, key, &c, e);
}

int store_get_text(struct store *s, const char *key, struct buf *out, struct err *e)
{
    return get_text(s, key, out, false, e);
}

int store_get_first(struct store *s, const char *key, struct buf *out, struct err *e)
{
    return get_text(s, key, out, true, e);
}
