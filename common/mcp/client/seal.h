/*
 * Values that the client returns unchanged: requestState (2026-07-28, "Multi round-trip requests").
 * "v1." base64url({p: value, exp: unix time}) "." base64url(HMAC). The HMAC also covers the call
 * that the value belongs to (mcp_seal_bind), which is not sent. The client can read the value, and
 * can use it again until it expires.
 */
#pragma once

#include "common/base/err.h"
#include "common/mcp/server.h"

#include <jansson.h>

#define MCP_SEAL_LIFE_S 600
#define MCP_SEALED_MAX  (256u * 1024)

/* The call that a state belongs to: mcp_unseal fails unless all members are the same. */
struct mcp_seal_bind {
    const char *tenant;
    const char *method;
    const char *name;        /* of the tool or prompt */
    const json_t *arguments; /* NULL: none, which is the same as an empty object */
};

/* A heap string, or NULL (ERR_LIMIT over MCP_SEALED_MAX). */
char *mcp_seal(const struct mcp_server *server, const struct mcp_seal_bind *bind,
               const json_t *value, struct err *e);

/* The value (new reference), or NULL: always ERR_INVALID. */
json_t *mcp_unseal(const struct mcp_server *server, const struct mcp_seal_bind *bind,
                   const char *sealed, size_t len, struct err *e);
