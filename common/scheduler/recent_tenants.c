#include "config.h"

#include "common/scheduler/recent_tenants.h"

#include "common/base/auto.h"
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

void recent_tenants_clear(struct recent_tenants *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->latest); i++)
        free(TAKE_PTR(c->latest[i].tenant));
}

static bool is_latest(const struct recent_tenants *c, const char *tenant)
{
    return c->latest[0].tenant && strcmp(c->latest[0].tenant, tenant) == 0;
}

void recent_tenants_note(struct recent_tenants *c, const char *tenant, int64_t now_ms)
{
    if (!is_latest(c, tenant)) {
        free(c->latest[1].tenant);
        c->latest[1] = c->latest[0];
        c->latest[0].tenant = mem_strdup(tenant);
    }
    c->latest[0].asked_ms = now_ms;
}

bool recent_tenants_has_others(const struct recent_tenants *c, const char *tenant, int64_t now_ms)
{
    for (size_t i = 0; i < ARRAY_LEN(c->latest); i++)
        if (c->latest[i].tenant && strcmp(c->latest[i].tenant, tenant) != 0 &&
            now_ms - c->latest[i].asked_ms < RECENT_TENANTS_MS)
            return true;
    return false;
}
