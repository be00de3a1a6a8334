/* This server as an OAuth resource (RFC 9728, 6750, 8707): what it is called, where its metadata
 * are, and how it asks for a token. */
#pragma once

#include "common/base/buf.h"
#include "fcgi/settings.h"

#include <jansson.h>
#include <stdbool.h>

#define RESOURCE_WELL_KNOWN "/.well-known/oauth-protected-resource"
#define RESOURCE_REASON_MAX 256

/* Is the audience of a token this server: the one of SANDCGI_OAUTH_AUDIENCE, or a place below it
 * (/mcp/api)? Without that setting also PUBLIC_BASE_URL itself. Case of scheme and host, the
 * scheme's own port and a slash at the end do not count. ctx is the struct settings. */
bool resource_accepts(const void *ctx, const char *audience);

/* The metadata of the place that a request's path (with the well-known part in it) is about; a new
 * reference. NULL: it is about no place of MCP. */
json_t *resource_metadata(const struct settings *s, const char *path);

/* The value of WWW-Authenticate. error: NULL: there was no token; description may be NULL; what of
 * it cannot stand in a quoted string becomes '?'. scopes: of enum scope; place: "/mcp" or below it.
 */
void resource_challenge(const struct settings *s, const char *place, const char *error,
                        const char *description, unsigned scopes, struct buf *out);
