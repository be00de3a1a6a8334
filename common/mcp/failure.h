/* Why a message is answered with a JSON-RPC error: what goes into it, and the HTTP status that it
 * travels with. */
#ifndef SANDCGI_MCP_FAILURE_H
#define SANDCGI_MCP_FAILURE_H

#include "common/base/auto.h"

#include <jansson.h>

/* Codes of MCP 2026-07-28; those of JSON-RPC are in rpc.h. */
enum mcp_code {
    MCP_RESOURCE_NOT_FOUND = -32002, /* legacy only */
    MCP_HEADER_MISMATCH = -32020,
    MCP_MISSING_CAPABILITY = -32021,
    MCP_UNSUPPORTED_VERSION = -32022,
};

struct mcp_failure {
    int status; /* HTTP; 0: no failure */
    int code;
    char message[512];
    json_t *data; /* owned; NULL: none */
};

#define AUTO_MCP_FAILURE AUTO(mcp_failure_clear)

/* Fills *f; always returns -1, so that failing is one line. Takes data (may be NULL). */
int mcp_fail(struct mcp_failure *f, int status, int code, json_t *take_data, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* As mcp_fail with status 200: text, then name as the client wrote it, made harmless and cut. */
int mcp_fail_named(struct mcp_failure *f, int code, const char *text, const char *name);

void mcp_failure_clear(struct mcp_failure *f);

#endif
