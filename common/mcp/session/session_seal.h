/*
 * Ids of legacy sessions where there are several nodes: 64 hex digits, as everywhere, but instead
 * of random digits those behind the tenant's hold what another node must know of the session
 * (revision, what the client can be asked, time of its beginning), random ones, and an HMAC over
 * all of it, the node, the tenant and the offer. So each node serves calls of a session that
 * another one keeps.
 */
#pragma once

#include "common/base/err.h"
#include "common/mcp/revision.h"
#include "common/mcp/server.h"

/* Writes an id for a session that begins now on this node. capabilities may be NULL. */
int session_seal(const struct mcp_server *server, const char *tenant, enum mcp_revision revision,
                 const json_t *capabilities, char out_id[MCP_SESSION_ID_LEN + 1], struct err *e);

/*
 * What an id of the other node holds, of which only the form has been checked
 * (mcp_session_id_is_valid): *out_revision, and a record with the tenant and the capabilities
 * alone, which the caller owns. NULL: no node has made the id for this tenant and offer, or it is
 * older than SESSION_AWAY_S.
 */
json_t *session_unseal(const struct mcp_server *server, const char *node, const char *id,
                       const char *tenant, enum mcp_revision *out_revision);

#define SESSION_AWAY_S (7 * 86400) /* so long a session is served without its record */
