#include "config.h"

#include "common/scheduler/runners.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/remedy.h"
#include "common/rpc/json.h"

#include <string.h>

const struct engine_runner *runners_find(const struct runners *r, const char *language,
                                         struct err *e)
{
    AUTO_BUF struct buf known = BUF_INIT(400);

    if (*r->engine_error) {
        err_set(e, ERR_UNAVAILABLE, "%s", r->engine_error);
        e->sys = r->engine_sys;
        return NULL;
    }
    const struct engine_runner *found = engine_runners_find(&r->list, language);
    if (found)
        return found;
    for (size_t i = 0; i < r->list.n; i++)
        buf_addf(&known, "%s%s", i ? ", " : "", r->list.items[i].language);
    if (r->list.n == 0)
        err_set(e, ERR_NOT_FOUND, "%s", remedy_for(REMEDY_RUNNERS, WAY_MODEL));
    else
        err_set(e, ERR_NOT_FOUND, "language: unknown; there are: %s", buf_str(&known));
    return NULL;
}

const struct engine_runner *runners_of_image(const struct engine_runners *runners,
                                             const char *image_id, const char *language)
{
    const struct engine_runner *found = NULL;

    for (size_t i = 0; i < runners->n; i++) {
        const struct engine_runner *r = &runners->items[i];
        if (strcmp(r->image_id, image_id) == 0 &&
            (language ? strcmp(r->language, language) == 0 : !found || *r->preload))
            found = r;
    }
    return found;
}

int runners_check_network(const struct runners *r, enum network_tier limit,
                          enum network_tier wanted, struct err *e)
{
    if (wanted > limit)
        return err_set(e, ERR_DENIED, "network: this server does not allow it (SANDBOX_NETWORK)");
    if (*r->network_error[wanted])
        return err_set(e, ERR_DENIED, "network: not available on this server: %s",
                       r->network_error[wanted]);
    return 0;
}

json_t *runners_encode(const struct engine_runners *runners)
{
    json_t *list = json_array();

    for (size_t i = 0; i < runners->n; i++) {
        const struct engine_runner *r = &runners->items[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:i, s:s, s:s, s:b, s:b, s:s, s:b}",
                                        "language", r->language, "image", r->image, "imageId",
                                        r->image_id, "protocol", r->protocol, "version", r->version,
                                        "libraries", r->libraries, "warm", r->warm, "install",
                                        r->install, "preload", r->preload, "load", r->load));
    }
    return list;
}

static char *string_copy(const json_t *object, const char *name)
{
    const char *s = json_get_string(object, name);

    return mem_strdup(s ? s : "");
}

void runners_decode(const json_t *list, struct engine_runners *out)
{
    size_t n = json_array_size(list);

    out->items = mem_array(n + 1, sizeof *out->items);
    out->n = n;
    for (size_t i = 0; i < n; i++) {
        const json_t *r = json_array_get(list, i);
        out->items[i] = (struct engine_runner){
            .language = string_copy(r, "language"),
            .image = string_copy(r, "image"),
            .image_id = string_copy(r, "imageId"),
            .protocol = (int)json_get_integer(r, "protocol", 0),
            .version = string_copy(r, "version"),
            .libraries = string_copy(r, "libraries"),
            .warm = json_get_bool(r, "warm", 0) != 0,
            .install = json_get_bool(r, "install", 0) != 0,
            .preload = string_copy(r, "preload"),
            .load = json_get_bool(r, "load", 0) != 0,
        };
    }
}
