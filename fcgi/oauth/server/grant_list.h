/* Grants as an administrator's command sees them (sandcgi token). */
#pragma once

#include "common/base/err.h"

#include <jansson.h>

/*
 * The grants that count, of tenant (NULL: all), as an array of objects: id, tenant, scope (names
 * with blanks between), client {id, name, place}, createdAt, usedAt (null: no token was made yet),
 * expiresAt, if it is not used before. NULL: the state cannot be read.
 */
json_t *grant_list(int folder_fd, const char *tenant, struct err *e);

/* Revokes the grant id (NULL: all) of tenant (NULL: of any). Returns those that were revoked, as
 * grant_list has them; NULL: nothing has changed. */
json_t *grant_list_revoke(int folder_fd, const char *id, const char *tenant, struct err *e);
