/* What the claims of a valid token grant here: a tenant, scopes, limits. */
#pragma once

#include "common/base/err.h"
#include "common/base/tenants.h"
#include "common/tools/tools.h"
#include "fcgi/tokens/token_rows.h"

#include <jansson.h>
#include <stdint.h>

#define GRANT_ID_MAX 128

struct grant {
    char tenant[TOKEN_TENANT_MAX + 1];
    char limits[TENANT_NAME_MAX + 1]; /* section of SANDBOX_TENANTS_FILE; "": the tenant's own */
    char id[GRANT_ID_MAX + 1];        /* claim "gid", by which it can be revoked; "": none */
    unsigned scopes;                  /* of enum scope; may be none */
    int64_t expires_s;                /* Unix; 0: not known */
};

struct grant_rules {
    const char *tenant; /* template: text, {CLAIM} and {CLAIM:hash} */
    const char *limits; /* claim whose value, or one of them, names a section; "": none */
    const struct tenants *tenants; /* the sections */
    unsigned scopes;               /* that every token has besides those that it names */
};

/* Is it a template? *e: one line about it, without the setting's name. */
int grant_check_template(const char *text, struct err *e);

/* expires_s is left to the caller. -1: *e as jwt_read says. */
int grant_make(const json_t *claims, const struct grant_rules *rules, struct grant *out,
               struct err *e);
