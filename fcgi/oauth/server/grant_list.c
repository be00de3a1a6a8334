#include "config.h"

#include "fcgi/oauth/server/grant_list.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/rpc/json.h"
#include "fcgi/oauth/server/grants.h"

#include <string.h>

static json_t *row_of(const char *id, const json_t *grant)
{
    json_int_t made = json_get_integer(grant, "made", 0), used = json_get_integer(grant, "used", 0);

    return json_pack("{s:s, s:O, s:O, s:{s:O, s:O, s:O}, s:I, s:o, s:I}", "id", id, "tenant",
                     json_object_get(grant, "tenant"), "scope", json_object_get(grant, "scope"),
                     "client", "id", json_object_get(grant, "client"), "name",
                     json_object_get(grant, "name"), "place", json_object_get(grant, "host"),
                     "createdAt", made, "usedAt", used ? json_integer(used) : json_null(),
                     "expiresAt", used ? used + GRANT_IDLE_S : made + CODE_S);
}

static json_t *rows(json_t *state, const char *id, const char *tenant)
{
    json_t *grants = json_object_get(state, "grants"), *out = json_array(), *one;
    const char *key;

    json_object_foreach(grants, key, one)
    {
        const char *owner = json_get_string(one, "tenant");
        if (!grant_is_revoked(one) && (!id || strcmp(key, id) == 0) &&
            (!tenant || (owner && strcmp(owner, tenant) == 0)))
            json_array_append_new(out, row_of(key, one));
    }
    return out;
}

json_t *grant_list(int folder_fd, const char *tenant, struct err *e)
{
    AUTO_STORE struct store s = STORE_INIT;

    if (store_begin(folder_fd, &s, e) < 0)
        return NULL;
    grants_sweep(s.state, clock_unix_s());
    return rows(s.state, NULL, tenant);
}

json_t *grant_list_revoke(int folder_fd, const char *id, const char *tenant, struct err *e)
{
    AUTO_STORE struct store s = STORE_INIT;
    int64_t now = clock_unix_s();
    json_auto_t *gone = NULL;
    json_t *row;
    size_t i;

    if (store_begin(folder_fd, &s, e) < 0)
        return NULL;
    grants_sweep(s.state, now);
    gone = rows(s.state, id, tenant);
    json_array_foreach(gone, i, row) grant_revoke(s.state, json_get_string(row, "id"), now);
    if (json_array_size(gone) > 0 && grants_save(&s, now, e) < 0)
        return NULL;
    return TAKE_PTR(gone);
}
