/*
 * Which era a message belongs to (legacy: initialize handshake; modern: each request carries its
 * own metadata) and whether its headers agree with its body. A pure function of the message and
 * what the transport says about it; it knows methods only by name. The order of the checks is part
 * of the protocol (2026-07-28, "Versioning" and "Standard request headers"), since clients tell
 * servers apart by which error comes first.
 */
#pragma once

#include "common/mcp/call.h"

/*
 * Decides about a request, notification or response. name_param is the member of params that the
 * header Mcp-Name mirrors for this method (NULL: none). 0, or -1 with *f. For initialize the
 * revision is the one to answer with.
 */
int era_decide(const struct rpc_message *message, const struct mcp_origin *origin,
               const char *name_param, struct mcp_era *out, struct mcp_failure *f);

/* May this client send a JSON-RPC batch? 0, or -1 with *f. */
int era_decide_batch(const struct mcp_origin *origin, struct mcp_era *out, struct mcp_failure *f);

/*
 * Does a header's value (blanks around it already removed) mean these bytes? Values of the form
 * =?base64?…?= are decoded first, strictly; what does not decode equals nothing.
 */
bool era_header_equals(const char *value, size_t value_len, const char *text, size_t text_len);
