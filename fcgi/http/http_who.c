/* Who calls: static tokens, access tokens of OAuth, or what our nginx says; and what that one may
 * do. */
#include "config.h"

#include "fcgi/http/http_request.h"

#include "common/base/log.h"
#include "common/mcp/features/tool.h"
#include "common/rpc/json.h"
#include "fcgi/oauth/judge_serve.h"
#include "fcgi/oauth/resource.h"

#include <stdio.h>
#include <string.h>

#define PLACE      "/mcp"
#define PLACE_MAX  64
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz"
#define FIRST_SCOPES                                                                               \
    (SCOPE_RUN | SCOPE_FILES) /* that a client asks for at first; others by steps */

/* ---- challenges ---- */

/* The location of MCP that was called; a text of the client's, so only what it may be. */
static void place_of(const struct http_request *r, char out[PLACE_MAX])
{
    size_t len = r->uri ? strcspn(r->uri, "?") : 0;
    const char *at = len ? memmem(r->uri, len, PLACE "/", strlen(PLACE) + 1) : NULL;
    size_t rest = at ? len - (size_t)(at - r->uri) - strlen(PLACE) - 1 : 0;
    const bool named = rest > 0 && rest < PLACE_MAX - sizeof PLACE &&
                       strspn(at + strlen(PLACE) + 1, NAME_CHARS) >= rest;

    snprintf(out, PLACE_MAX, "%.*s", named ? (int)(rest + strlen(PLACE) + 1) : (int)strlen(PLACE),
             named ? at : PLACE);
}

static int refuse(const struct app *app, struct http_request *r, struct http_answer *a, int status,
                  const char *error, const char *description, unsigned scopes, const char *message)
{
    AUTO_BUF struct buf value = BUF_INIT(CHALLENGE_MAX - 32);
    char place[PLACE_MAX];

    place_of(r, place);
    resource_challenge(app->settings, place, error, description, scopes, &value);
    snprintf(r->challenge, sizeof r->challenge, "WWW-Authenticate: %s\r\n",
             buf_ok(&value) ? buf_str(&value) : "Bearer");
    return http_refuse(a, status, r->challenge, message);
}

int http_refuse_token(const struct app *app, struct http_request *r, struct http_answer *a,
                      const char *error, const char *description, const char *message)
{
    return refuse(app, r, a, 401, error, description, FIRST_SCOPES, message);
}

int http_refuse_scopes(const struct app *app, struct http_request *r, struct http_answer *a,
                       unsigned scopes, const char *message)
{
    log_reason("scope", NULL);
    return refuse(app, r, a, 403, "insufficient_scope", NULL, scopes, message);
}

/* ---- tokens ---- */

/* Cuts the row "TENANT SCOPES [LIMITS]" in r->row into its words. */
static bool take_row(struct http_request *r)
{
    char *rest = r->row;
    const char *tenant = strsep(&rest, " "), *scopes = strsep(&rest, " ");

    if (!scopes || !token_tenant_is_valid(tenant))
        return false;
    r->tenant = tenant;
    r->scopes = scopes_parse(scopes);
    r->limits = rest;
    r->bearer = "oauth";
    return true;
}

int http_guard_access_token(const struct app *app, struct http_request *r, struct http_answer *a)
{
    struct judge_verdict v;

    if (r->asked)
        v = *r->asked;
    else
        judge_ask(app->asks_fd, app->settings->access.check, app->ask_ms, r->authorization, &v);
    memcpy(r->row, v.text, sizeof r->row);
    if (v.why.kind != ERR_NONE) {
        log_error("an access token is refused: %s", v.why.text);
        return http_refuse(a, 503, "Retry-After: 2\r\n",
                           "Access tokens cannot be checked now; try again shortly");
    }
    if (!v.good)
        return http_refuse_token(app, r, a, "invalid_token", r->row, r->row);
    return take_row(r) ? 0 : http_refuse(a, 500, "", "The answer about the token is not valid");
}

/* Behind our nginx the secret proves that nginx, not the client, has named the tenant. */
int http_guard_front(const struct app *app, const struct http_request *r, struct http_answer *a)
{
    if (app->settings->auth != SETTINGS_AUTH_NGINX)
        return 0;
    if (r->secret &&
        crypto_equal(app->front_secret, strlen(app->front_secret), r->secret, strlen(r->secret)))
        return 0;
    log_reason("secret", NULL);
    return http_refuse(a, 403, "", "Requests must come from the web server");
}

/* The token that was sent; NULL: none was. */
static const char *bearer_of(const struct http_request *r)
{
    const char *header = r->authorization;

    return header && strncasecmp(header, "Bearer ", 7) == 0 ? header + 6 + strspn(header + 6, " ")
                                                            : NULL;
}

bool http_must_ask(const struct app *app, const struct http_request *r)
{
    const char *text = bearer_of(r);
    struct token found;

    return app->settings->auth == SETTINGS_AUTH_TOKEN && *app->settings->oauth && text &&
           token_table_find(app->tokens, text, &found) == TOKEN_UNKNOWN;
}

static int check_token(const struct app *app, struct http_request *r, struct http_answer *a)
{
    const char *bearer = bearer_of(r);

    r->tenant = r->bearer = r->limits = NULL;
    if (!bearer)
        log_reason("no_token", NULL);
    if (!bearer)
        return http_refuse_token(app, r, a, NULL, NULL,
                                 "Send the header Authorization: Bearer <token>");
    switch (token_table_find(app->tokens, bearer, &r->token)) {
    case TOKEN_GOOD:
        r->tenant = r->token.tenant;
        r->scopes = r->token.scopes;
        return 0;
    case TOKEN_EXPIRED:
        log_reason("expired_token", NULL);
        return http_refuse_token(app, r, a, "invalid_token", "the token has expired",
                                 "The token has expired");
    default:
        if (*app->settings->oauth)
            return http_guard_access_token(app, r, a);
        return http_refuse_token(app, r, a, "invalid_token", NULL, "Invalid token");
    }
}

static int check_tenant(const struct app *app, struct http_request *r, struct http_answer *a)
{
    if (app->settings->auth == SETTINGS_AUTH_TOKEN)
        return check_token(app, r, a);
    if (http_guard_front(app, r, a) < 0)
        return -1;
    r->scopes = !r->scope_list ? SCOPE_ALL
                : r->bearer    ? scopes_parse(r->scope_list)
                               : token_scopes_parse(r->scope_list);
    if (r->tenant && token_tenant_is_valid(r->tenant))
        return 0;
    return http_refuse(a, 401, "WWW-Authenticate: Bearer\r\n", "No tenant (SANDCGI_TENANT)");
}

/* What a client sends under these names means nothing. */
static void believe_edge(const struct app *app, struct http_request *r)
{
    const struct settings *s = app->settings;
    const char *secret = s->edge_secret;

    if (!secret || !*secret || !r->edge_secret ||
        !crypto_equal(secret, strlen(secret), r->edge_secret, strlen(r->edge_secret)))
        return;
    r->behind_edge = true;
    r->edge = (struct mcp_edge){.route = r->edge_route,
                                .again = r->edge_again != NULL,
                                .home = r->edge_standin,
                                .refuses = s->standin == SETTINGS_STANDIN_REFUSE};
}

int http_guard_who(const struct app *app, struct http_request *r, struct http_answer *a)
{
    if (check_tenant(app, r, a) < 0)
        return -1;
    const char *row = r->limits ? r->limits : r->tenant;
    enum network_tier most = tenants_find(&app->settings->tenants, row)->network;
    if (r->network ? network_named(r->network) > most : most < NETWORK_LAN)
        r->network = network_name(most);
    log_note(LOG_TENANT, r->tenant);
    believe_edge(app, r);
    return 0;
}

/* ---- what the caller may do ---- */

const struct mcp_server *http_guard_tools(const struct app *app, struct http_request *r,
                                          struct http_answer *a)
{
    const char *row = r->limits ? r->limits : r->tenant;
    const struct mcp_server *server = app_server_for(app, r->tools, row, r->scopes);
    int set = r->tools ? toolset_find(r->tools) : app->settings->toolset;

    if (!server)
        log_reason(set < 0 ? "unknown_place" : "not_offered", NULL);
    if (set < 0)
        http_refuse(a, 404, "", "No such set of tools (SANDCGI_TOOLS)");
    else if (!server)
        http_refuse(a, 403, "", "These tools are not among your tenant's toolsets");
    else if (toolset_needs(set) & ~r->scopes) {
        http_refuse_scopes(app, r, a, toolset_needs(set),
                           "These tools need the scopes run and files, which this token does not "
                           "have");
        return NULL;
    }
    return server;
}

static bool is_method(const json_t *message, const char *name)
{
    const char *method = json_get_string(message, "method");

    return method && strcmp(method, name) == 0;
}

/* server: with all tools. */
static unsigned needs_of(const struct mcp_server *server, const json_t *message)
{
    static const struct {
        const char *begin;
        unsigned needs;
    } methods[] = {{"resources/", SCOPE_FILES}, {"tasks/", SCOPE_RUN}};
    const char *method = json_get_string(message, "method");
    const struct mcp_tool *tool = NULL;

    if (is_method(message, "tools/call"))
        tool = mcp_tool_called(server, json_object_get(message, "params"));
    if (tool)
        return tool_needs(tool);
    for (size_t i = 0; method && i < ARRAY_LEN(methods); i++)
        if (strncmp(method, methods[i].begin, strlen(methods[i].begin)) == 0)
            return methods[i].needs;
    return 0;
}

int http_guard_scopes(const struct app *app, struct http_request *r, const json_t *message,
                      const struct mcp_server **server, struct http_answer *a)
{
    const struct mcp_server *all;
    char missing[SCOPE_TEXT_MAX], text[160];
    unsigned needs = 0;

    if (!r->bearer || r->scopes == SCOPE_ALL ||
        !(all = app_server_for(app, r->tools, r->limits ? r->limits : r->tenant, SCOPE_ALL)))
        return 0;
    if (json_is_array(message))
        for (size_t i = 0; i < json_array_size(message); i++)
            needs |= needs_of(all, json_array_get(message, i));
    else
        needs = needs_of(all, message);
    if (needs & ~r->scopes) {
        const struct mcp_tool *tool = mcp_tool_called(all, json_object_get(message, "params"));
        log_note(LOG_TOOL, tool ? tool->name : NULL);
        scopes_format(needs & ~r->scopes, missing);
        snprintf(text, sizeof text, "This call needs the scope %s, which the token does not have",
                 missing);
        return http_refuse_scopes(app, r, a, needs | r->scopes, text);
    }
    if (is_method(message, "tools/list"))
        *server = all;
    return 0;
}
