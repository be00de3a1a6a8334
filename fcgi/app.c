#include "config.h"

#include "fcgi/app.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/node.h"
#include "common/base/remedy.h"
#include "common/base/version.h"
#include "common/mcp/features/tool.h"
#include "common/sandbox/sandbox.h"
#include "common/tools/args.h"
#include "fcgi/registry.h"

#include <string.h>

#define SECRET_FILE_MAX 4096
#define ASK_MS          15000 /* the issuer may have to be asked */
#define FRONT_MIN       32
#define SESSION_TTL_S   86400 /* after the last request, of the older revisions */
#define SEAL_LABEL      "sandcgi requestState 1"

static const char instructions[] =
    "run_code runs programs in a sandbox apart from the user's machine, whose files it does not "
    "see. Its first answer names a conversationId: give it in all further calls, which then share "
    "the files in /data. install_package brings libraries; download links in answers are for the "
    "user; get_run brings the rest of what still ran when the answer came.";

/* With SANDCGI_OAUTH: the instructions, then PUBLIC_BASE_URL. */
static const char with_login[] =
    "%s The user can add this server to other assistants, which ask for a login: its URL is "
    "%s/mcp. "
    "In Claude (web, desktop, mobile) it goes into Settings, Connectors; in ChatGPT into Apps, "
    "developer mode; in Copilot Studio into Tools, Model Context Protocol.";

/* The secret is the longest run of hex digits in the file, so that nginx can include the same file.
 */
static int secret_find(const char *path, char **out, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(SECRET_FILE_MAX);
    if (fdio_read_file(path, &text, e) < 0)
        return err_wrap(e, "SANDCGI_SECRET_FILE");
    for (const char *s = buf_str(&text); *s; s++) {
        size_t len = strspn(s, "0123456789abcdef");
        if (len >= FRONT_MIN) {
            *out = mem_strndup(s, len);
            return 0;
        }
    }
    return err_set(e, ERR_INVALID, "SANDCGI_SECRET_FILE: %s has no run of at least %d hex digits",
                   path, FRONT_MIN);
}

int front_secret_read(const struct settings *s, char **out, struct err *e)
{
    *out = NULL;
    if (s->auth != SETTINGS_AUTH_NGINX)
        return 0;
    if (!*s->secret_file)
        return err_set(e, ERR_INVALID,
                       "SANDCGI_AUTH=nginx needs SANDCGI_SECRET_FILE (%s); else set "
                       "SANDCGI_AUTH=token",
                       remedy(REMEDY_SECRET_FILE));
    return secret_find(s->secret_file, out, e);
}

static int read_credentials(struct app *app, const struct settings *s, struct err *e)
{
    if (front_secret_read(s, &app->front_secret, e) < 0)
        return -1;
    if (app->front_secret || app->tokens)
        return 0;
    app->tokens = app->own_tokens = token_table_new(s->tokens_file, s->api_token, e);
    return app->tokens ? 0 : err_wrap(e, "SANDCGI_TOKENS_FILE");
}

static const char narrow_instructions[] =
    "A part of a server that runs programs and keeps files: the token allows what is listed here.";

static void server_offer_tools(struct app *app, int set, const struct mcp_tool *const *tools,
                               size_t n, bool local)
{
    const struct mcp_tool **offered = mem_array(n, sizeof *offered);
    struct mcp_server *server = &app->servers[set];

    for (size_t i = 0; i < n; i++)
        if (toolset_offers(set, tools[i], &app->tools, local))
            offered[server->n_tools++] = tools[i];
    app->offered[set] = offered;
    server->tools = offered;
}

static void servers_init(struct app *app, const struct settings *s, bool local)
{
    const struct registry *ours = registry_of_server();
    const bool in_text = s->answers == SETTINGS_ANSWERS_TEXT;

    tools_app_init(&app->tools);
    app->instructions = *s->oauth && !local
                            ? mem_printf(with_login, instructions, s->public_base_url)
                            : mem_strdup(instructions);
    event_sender_init(&app->events, s->events, EVENTS_TIMEOUT_MS);
    for (int i = 0; i < TOOLSETS; i++) {
        const struct toolset *set = toolset_theirs(i);
        app->servers[i] = (struct mcp_server){.name = "sandcgi",
                                              .title = "sandcgi code sandbox",
                                              .version = sandcgi_version,
                                              .offer = set ? set->name : NULL,
                                              .error_style = set ? set->error_style : NULL,
                                              .instructions = set ? set->instructions
                                                                  : app->instructions,
                                              .in_text = !set && in_text,
                                              .prompts = set ? NULL : ours->prompts,
                                              .n_prompts = set ? 0 : ours->n_prompts,
                                              .resources = set ? set->resources : ours->resources,
                                              .named_argument = set ? NULL : "conversationId",
                                              .tasks = set ? NULL : ours->tasks,
                                              .app = &app->tools,
                                              .tool_prefix = set ? NULL : s->tools_prefix,
                                              .absent_tool = set ? NULL : tools_absent,
                                              .routes_by = set ? NULL : tool_routes_by,
                                              .route_headers = !set && s->route_headers,
                                              .scopes = SCOPE_ALL,
                                              .arguments = &args_tables,
                                              .tools_cache = mcp_tools_cache_new(),
                                              .sessions_fd = -1,
                                              .session_ttl_s = SESSION_TTL_S,
                                              .sessions_max = s->max_sessions,
                                              .seal_key = app->seal_key,
                                              .seal_key_len = sizeof app->seal_key,
                                              .publish = event_sender_publish,
                                              .publish_ctx = &app->events};
        server_offer_tools(app, i, set ? set->tools : ours->tools,
                           set ? set->n_tools : ours->n_tools, local);
    }
}

/* Before there are views. */
void app_set_sessions(struct app *app, int fd)
{
    for (int i = 0; i < TOOLSETS; i++)
        app->servers[i].sessions_fd = fd;
}

/* ---- for callers whose token does not allow everything ---- */

static struct app_view *view_new(const struct mcp_server *whole, unsigned scopes)
{
    struct app_view *view = mem_alloc(sizeof *view + whole->n_tools * sizeof(struct mcp_tool *));
    struct mcp_server *server = &view->server;

    *server = *whole;
    server->scopes = scopes;
    server->tools = view->tools;
    server->n_tools = 0;
    for (size_t i = 0; i < whole->n_tools; i++)
        if (!(tool_needs(whole->tools[i]) & ~scopes))
            view->tools[server->n_tools++] = whole->tools[i];
    server->tools_cache = mcp_tools_cache_new();
    if (!(scopes & SCOPE_FILES))
        server->resources = NULL;
    if (!(scopes & SCOPE_RUN))
        server->tasks = NULL;
    if (~scopes & (SCOPE_RUN | SCOPE_FILES)) { /* which prompts and instructions lead to */
        server->prompts = NULL;
        server->n_prompts = 0;
        server->instructions = narrow_instructions;
    }
    return view;
}

static const struct mcp_server *server_of_set(const struct app *app, int set, unsigned scopes)
{
    if (set < 0 || scopes >= SCOPE_ALL)
        return set < 0 ? NULL : &app->servers[set];
    struct app_view **view = &app->views[(unsigned)set * SCOPE_ALL + scopes];
    if (!*view)
        *view = view_new(&app->servers[set], scopes);
    return &(*view)->server;
}

const struct mcp_server *app_server(const struct app *app, const char *tools, unsigned scopes)
{
    return server_of_set(app, tools ? toolset_find(tools) : app->settings->toolset, scopes);
}

const struct mcp_server *app_server_for(const struct app *app, const char *tools,
                                        const char *tenant, unsigned scopes)
{
    const struct tenant_limits *limits = tenants_find(&app->settings->tenants, tenant);
    int set = tools ? toolset_find(tools) : app->settings->toolset;

    return server_of_set(app, set < 0 ? set : toolset_limit(set, limits->toolsets), scopes);
}

static void views_clear(struct app *app)
{
    for (size_t i = 0; app->views && i < TOOLSETS * SCOPE_ALL; i++) {
        if (app->views[i])
            mcp_tools_cache_free(app->views[i]->server.tools_cache);
        free(app->views[i]);
    }
    free(TAKE_PTR(app->views));
}

static void credentials_clear(struct app *app)
{
    token_table_free(TAKE_PTR(app->own_tokens));
    free(TAKE_PTR(app->front_secret));
}

int app_init(struct app *app, const struct settings *s, bool http, const struct token_table *tokens,
             struct err *e)
{
    const struct crypto_part label = {SEAL_LABEL, sizeof SEAL_LABEL - 1};

    node_set(s->node);
    *app = (struct app){
        .settings = s,
        .tokens = tokens,
        .asks_fd = -1,
        .ask_ms = ASK_MS,
        .tools = {.broker_path = s->broker,
                  .local_dirs = s->local_dirs,
                  .limits = s->limits,
                  .packages = s->index.n > 0,
                  .route_headers = s->route_headers},
    };
    if (http && settings_refuse_local(s, e) < 0)
        return -1;
    /* Workers must not have FILE_SECRET itself: a compromised one could locate all files. */
    if ((http && read_credentials(app, s, e) < 0) ||
        crypto_hmac(s->file_secret, strlen(s->file_secret), &label, 1, app->seal_key, e) < 0 ||
        link_key_derive(s->file_secret, &app->link_keys.now, e) < 0 ||
        (s->old_secret_until && link_key_derive(s->old_secret, &app->link_keys.old, e) < 0)) {
        credentials_clear(app);
        return -1;
    }
    app->link_keys.old_until = s->old_secret_until;
    servers_init(app, s, !http);
    app->views = mem_array(TOOLSETS * SCOPE_ALL, sizeof *app->views);
    return 0;
}

void app_clear(struct app *app)
{
    credentials_clear(app);
    views_clear(app);
    free(TAKE_PTR(app->instructions));
    for (int i = 0; i < TOOLSETS; i++) {
        free(TAKE_PTR(app->offered[i]));
        mcp_tools_cache_free(TAKE_PTR(app->servers[i].tools_cache));
    }
    explicit_bzero(app->seal_key, sizeof app->seal_key);
    explicit_bzero(&app->link_keys, sizeof app->link_keys);
    event_sender_clear(&app->events);
    tools_app_clear(&app->tools);
}
