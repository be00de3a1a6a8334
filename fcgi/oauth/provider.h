/*
 * The issuer of access tokens: its keys, and what it has revoked. An issuer's URL: its metadata
 * (RFC 8414, OpenID Connect Discovery) and its set of keys are fetched, again every hour, and
 * when a token names a key that is not in the set; a fetch that fails is tried again with pauses,
 * and the keys that are known stay. builtin: files that our own authorization server writes.
 */
#pragma once

#include "common/base/clock.h"
#include "common/fetch/talks.h"
#include "fcgi/oauth/jwks.h"
#include "fcgi/settings.h"

#define PROVIDER_KEYS_FILE    "jwks.json"    /* of builtin, in its folder */
#define PROVIDER_REVOKED_FILE "revoked.json" /* a list of grants' names */

struct provider;

/* changed: the keys are other ones, or a grant was revoked, or a fetch has ended. s and talks are
 * borrowed; state_fd (borrowed): the folder of builtin, else -1. */
struct provider *provider_new(const struct settings *s, struct talks *talks, int state_fd,
                              void (*changed)(void *ctx), void *ctx);
void provider_free(struct provider *p);

/* Begins what is due. Returns when to call it again. */
struct deadline provider_tick(struct provider *p);

/* Valid until the next call of another function here. */
const struct jwks *provider_keys(const struct provider *p);

/* For a token that names a key that is not in the set: begins a fetch (if it may) unless there were
 * several within the last minutes. true: one is under way, and will call changed. */
bool provider_look(struct provider *p, bool may_begin);

bool provider_has_revoked(const struct provider *p, const char *grant);

/* Why there are no keys; "": there are. */
const char *provider_problem(const struct provider *p);
/* Fetches begun so far, of metadata and keys. */
unsigned provider_fetches(const struct provider *p);
