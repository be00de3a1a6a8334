/* Failures and notices as a client sees them. */
#ifndef SANDCGI_TOOLS_REPORT_H
#define SANDCGI_TOOLS_REPORT_H

#include "common/base/err.h"
#include "common/mcp/features/result.h"

/*
 * Makes *out a failed result. Texts of errors about the call are kept, since they name the
 * argument; those about the server are replaced by general ones, since they may name paths and
 * sockets.
 */
void report_failure(struct mcp_result *out, const struct err *e);

/* The same in *e, for callers that make the result themselves. */
void report_soften(struct err *e);

/* Adds a text block for each of the result's notices, which are sentences about retention. */
void report_notices(const json_t *result, struct mcp_result *out);

#endif
