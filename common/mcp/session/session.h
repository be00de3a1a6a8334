/*
 * Legacy sessions: one small file each in the directory mcp_server.sessions_fd, so that any worker
 * can serve any of them. The id is 64 hex digits, 16 of its tenant and 48 random ones, and the
 * file's name; the record is a JSON object: {tenant, offer?, revision, capabilities, clientInfo?,
 * logLevel?, subscriptions?, named?, createdAt}. A session of another tenant, or of another
 * mcp_server.offer, is reported as unknown. Sessions expire session_ttl_s after their last use.
 *
 * Where there are several nodes, the id that a client has begins with that of the session's
 * (node.h), and the digits hold what another node must know of it (session_seal.h). Ids that
 * functions here give and take have no node, but that of mcp_session_load.
 */
#pragma once

#include "common/base/err.h"
#include "common/mcp/revision.h"
#include "common/mcp/server.h"

#include <jansson.h>
#include <stdbool.h>

#define MCP_SUBSCRIPTIONS_MAX   256   /* per session or listen */
#define MCP_SUBSCRIPTIONS_BYTES 16384 /* their URIs together */
#define MCP_NAMED_MAX           32    /* values that a session has named */
#define MCP_NAMED_LEN           256   /* of one */
#define MCP_SESSION_RECORD_MAX  (64u * 1024)

struct mcp_session {
    char id[MCP_SESSION_ID_LEN + 1]; /* "" none */
    enum mcp_revision revision;
    json_t *record;               /* owned; NULL: none */
    char node[NODE_NAME_MAX + 1]; /* that keeps it; "": this one */
};

#define AUTO_MCP_SESSION AUTO(mcp_session_clear)

/* Makes a session; above its tenant's share of sessions_max one of the tenant's ends, which was
 * used longest ago of some dozens. ERR_BUSY: it has none, and there is no room. out_id gets
 * MCP_SESSION_ID_LEN + 1 bytes. capabilities and info may be NULL. */
int mcp_session_create(const struct mcp_server *server, const char *tenant,
                       enum mcp_revision revision, const json_t *capabilities, const json_t *info,
                       char *out_id, struct err *e);

/* Looks one up and counts it as used. Of another node's there is only what its id holds, and
 * nothing can be set. ERR_NOT_FOUND: unknown, expired, ended or another tenant's; id is hostile
 * text, as the client sent it. */
int mcp_session_load(const struct mcp_server *server, const char *id, const char *tenant,
                     struct mcp_session *out, struct err *e);

/*
 * Changes a member of the record, in the file and in *s; what other workers changed meanwhile
 * stays. edit gets the member's current value (NULL: none) while all others are kept out, and
 * returns the new one (a new reference), or NULL with *e to leave it.
 */
int mcp_session_set(const struct mcp_server *server, struct mcp_session *s, const char *member,
                    json_t *(*edit)(const json_t *now, void *ctx, struct err *e), void *ctx,
                    struct err *e);

void mcp_session_clear(struct mcp_session *s);

/* Answers DELETE: 204, or 400/404/405. Publishes the end. */
void mcp_session_delete(const struct mcp_server *server, const struct mcp_origin *origin,
                        struct mcp_answer *out);

/* Removes expired sessions, streams, and mailboxes without a reader. To be called every minute or
 * so by one process. */
void mcp_sessions_sweep(const struct mcp_server *server);

/* ---- for this layer and its tests ---- */

/* Has id the form of a session id? NULL has not. */
bool mcp_session_id_is_valid(const char *id);

/* Fills s->revision and s->record from any JSON value: 0, or -1 when it is no record. */
int mcp_session_parse(json_t *take_record, struct mcp_session *s);

/* Refuses a GET or DELETE; always returns -1. */
int mcp_stream_refuse(struct mcp_answer *out, int status, const char *why);

/* The session that a GET or DELETE names: 0, or -1 with the refusal. */
int mcp_session_of_stream(const struct mcp_server *server, const struct mcp_origin *origin,
                          struct mcp_session *out, struct mcp_answer *answer);
