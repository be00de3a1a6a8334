/*
 * Values that travel through the client and must come back as they were: requestState (2026-07-28,
 * "Multi round-trip requests"). "v1." base64url({p: value, exp: unix time}) "." base64url(HMAC).
 * The HMAC also covers what the value belongs to, which is not sent along; the client can read the
 * value and can use it again until it expires.
 */
#ifndef SANDCGI_MCP_CLIENT_SEAL_H
#define SANDCGI_MCP_CLIENT_SEAL_H

#include "common/base/err.h"
#include "common/mcp/server.h"

#include <jansson.h>

#define MCP_SEAL_LIFE_S 600
#define MCP_SEALED_MAX  (256u * 1024)

/* What a state belongs to: it opens only where all of it is the same. */
struct mcp_seal_bind {
    const char *tenant;
    const char *method;
    const char *name;        /* of the tool or prompt */
    const json_t *arguments; /* NULL: none, which is the same as an empty object */
};

/* A heap string, or NULL (ERR_LIMIT over MCP_SEALED_MAX). */
char *mcp_seal(const struct mcp_server *server, const struct mcp_seal_bind *bind,
               const json_t *value, struct err *e);

/* The value (new reference), or NULL: ERR_INVALID, whatever is wrong with it. */
json_t *mcp_unseal(const struct mcp_server *server, const struct mcp_seal_bind *bind,
                   const char *sealed, size_t len, struct err *e);

#endif
