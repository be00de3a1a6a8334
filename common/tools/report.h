/* How failures are told to a client. */
#ifndef SANDCGI_TOOLS_REPORT_H
#define SANDCGI_TOOLS_REPORT_H

#include "common/base/err.h"
#include "common/mcp/features/result.h"

/*
 * Makes *out a failed result. Errors about the call are told as they are, since they name the
 * argument; those about our own parts are told in general words, since their texts may name paths
 * and sockets.
 */
void report_failure(struct mcp_result *out, const struct err *e);

/* The same for errors that others tell: replaces the text of those about our own parts. */
void report_soften(struct err *e);

/* A text block for each of a result's notices: sentences of the broker's about what is kept. */
void report_notices(const json_t *result, struct mcp_result *out);

#endif
