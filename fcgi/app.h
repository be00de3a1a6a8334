/* What all front ends share: the MCP servers, set up from the settings. */
#pragma once

#include "common/base/crypto.h"
#include "common/mcp/server.h"
#include "common/sandbox/links/link.h"
#include "common/tools/tools.h"
#include "fcgi/hub/events.h"
#include "fcgi/process/calls.h"
#include "fcgi/settings.h"
#include "fcgi/tokens/token_table.h"

/* A server as callers see it whose token does not allow everything. */
struct app_view {
    struct mcp_server server;
    const struct mcp_tool *tools[];
};

struct app {
    const struct settings *settings;     /* borrowed */
    struct mcp_server servers[TOOLSETS]; /* one for each set of tools */
    char *instructions;                  /* of our own sets of tools */
    struct tools_app tools;
    const struct mcp_tool **offered[TOOLSETS]; /* the tools of each set that are offered here */
    struct event_sender events;
    uint8_t seal_key[CRYPTO_SHA256_LEN];
    struct link_keys link_keys;       /* check links; likewise derived from FILE_SECRET */
    char *front_secret;               /* that nginx must send; NULL with SANDCGI_AUTH=token */
    const struct token_table *tokens; /* for SANDCGI_AUTH=token; else NULL */
    struct token_table *own_tokens;   /* the same, if it is ours */
    int64_t ask_ms;                   /* for a verdict about an access token */
    int asks_fd; /* borrowed; over which access tokens are asked about; -1: at the socket's path */
    struct app_view **views; /* by set and scopes; NULL: not asked for yet */
    struct call_place place; /* a worker's; all zero: no calls are counted */
};

/*
 * Reads the secret and token files that the settings name (so it is done before privileges are
 * dropped), derives the key of sealed texts from FILE_SECRET (which may be wiped afterwards), and
 * sets up what is offered. http false (stdio): no client is checked, so no file is read. tokens:
 * borrowed; NULL: with SANDCGI_AUTH=token the file is read. There are no sessions until
 * app_set_sessions. *e says what to change; then there is nothing to clear.
 */
int app_init(struct app *app, const struct settings *settings, bool http,
             const struct token_table *tokens, struct err *e);
void app_clear(struct app *app);

/* Reads the secret that nginx must send, from SANDCGI_SECRET_FILE; the caller frees it. *out is
 * NULL with SANDCGI_AUTH=token. */
int front_secret_read(const struct settings *s, char **out, struct err *e);

/* sessions_fd (borrowed; -1: none) of all servers. */
void app_set_sessions(struct app *app, int fd);

/* The server with a set of tools (NULL: the one of the setting TOOLS), as far as scopes (of enum
 * scope) allow it; it lives as long as app. NULL: no such set. */
const struct mcp_server *app_server(const struct app *app, const char *tools, unsigned scopes);

/* The same of what the tenant's limits (SANDBOX_TENANTS_FILE) leave of the set. NULL: nothing. */
const struct mcp_server *app_server_for(const struct app *app, const char *tools,
                                        const char *tenant, unsigned scopes);
