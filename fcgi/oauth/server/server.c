#include "config.h"

#include "fcgi/oauth/server/server.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "fcgi/app.h"
#include "fcgi/http/fastcgi.h"
#include "fcgi/oauth/server/documents.h"
#include "fcgi/oauth/server/exchange.h"

#include <string.h>

#define PATH_MAX_LEN 4096
#define FOLDER       "/oauth/"
#define WELL_KNOWN   "/.well-known/"

/* ---- documents about the server ---- */

static void add_endpoint(const struct oauth *o, json_t *to, const char *name, const char *path)
{
    AUTO_FREE char *url = mem_printf("%s" FOLDER "%s", o->issuer, path);

    json_object_set_new(to, name, json_string(url));
}

/* RFC 8414, 2. Its last two members are for clients that know OpenID's form of it only. */
static void metadata_serve(const struct oauth *o, struct exchange *x)
{
    json_t *m = json_pack(
        "{s:s, s:[s], s:[s], s:[s,s], s:[s], s:[s], s:[s], s:b, s:b, s:[s], s:[s]}", "issuer",
        o->issuer, "response_types_supported", "code", "response_modes_supported", "query",
        "grant_types_supported", "authorization_code", "refresh_token",
        "token_endpoint_auth_methods_supported", "none",
        "revocation_endpoint_auth_methods_supported", "none", "code_challenge_methods_supported",
        "S256", "authorization_response_iss_parameter_supported", true,
        "client_id_metadata_document_supported", true, "subject_types_supported", "public",
        "id_token_signing_alg_values_supported", "ES256");
    json_t *scopes = json_array();
    char names[SCOPE_TEXT_MAX], *rest = names, *name;

    scopes_format(SCOPE_ALL, names);
    while ((name = strsep(&rest, ",")))
        json_array_append_new(scopes, json_string(name));
    json_object_set_new(m, "scopes_supported", scopes);
    add_endpoint(o, m, "authorization_endpoint", "authorize");
    add_endpoint(o, m, "token_endpoint", "token");
    add_endpoint(o, m, "registration_endpoint", "register");
    add_endpoint(o, m, "revocation_endpoint", "revoke");
    add_endpoint(o, m, "jwks_uri", "jwks.json");
    exchange_json(x, 200, m);
}

static void jwks_serve(const struct oauth *o, struct exchange *x)
{
    struct err e = ERR_INIT;

    exchange_answer(x, 200, "application/json");
    if (store_read(o->folder_fd, STORE_JWKS, &x->text, &e) < 0)
        exchange_fail(x, &e);
}

/* ---- which endpoint ---- */

static const struct route {
    const char *folder, *name;
    const char *methods; /* with a blank in front of each */
    bool for_pages;      /* scripts of other origins may read its answers: no cookie counts there */
    void (*serve)(const struct oauth *o, struct exchange *x);
} routes[] = {
    {FOLDER, "authorize", " GET POST", false, authorize_serve},
    {FOLDER, "token", " POST", true, token_serve},
    {FOLDER, "register", " POST", true, register_serve},
    {FOLDER, "revoke", " POST", true, revoke_serve},
    {FOLDER, "jwks.json", " GET", true, jwks_serve},
    {WELL_KNOWN, "oauth-authorization-server", " GET", true, metadata_serve},
    {WELL_KNOWN, "openid-configuration", " GET", true, metadata_serve},
};

/* A well-known document may have the path of the issuer behind its name (RFC 8414, 3.1). */
static bool path_is(const char *path, const struct route *r)
{
    size_t folder = strlen(r->folder), name = strlen(r->name);
    const char *at = strstr(path, r->folder);

    if (!at || strncmp(at + folder, r->name, name) != 0)
        return false;
    at += folder + name;
    return *at == '\0' || (*at == '/' && strcmp(r->folder, WELL_KNOWN) == 0);
}

static const struct route *find_route(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(routes); i++)
        if (path_is(path, &routes[i]))
            return &routes[i];
    return NULL;
}

static bool takes_method(const struct route *r, const char *method)
{
    AUTO_FREE char *word = mem_printf(" %s", method ? method : "");
    const char *at = strstr(r->methods, word);

    return at && (at[strlen(word)] == ' ' || at[strlen(word)] == '\0');
}

static void answer_preflight(struct exchange *x)
{
    exchange_answer(x, 204, NULL);
    buf_add_str(
        &x->headers,
        "Access-Control-Allow-Methods: GET, POST\r\n"
        "Access-Control-Allow-Headers: Content-Type, Authorization, MCP-Protocol-Version\r\n"
        "Access-Control-Max-Age: 600\r\n");
}

static bool comes_from_front(const struct oauth *o, const struct exchange *x)
{
    const char *given = x->request.secret;

    return !o->front_secret ||
           (given && crypto_equal(o->front_secret, strlen(o->front_secret), given, strlen(given)));
}

/* Reads the body of a POST; -1: the answer says what is wrong. */
static int read_body(struct exchange *x)
{
    struct http_answer refusal = HTTP_ANSWER_INIT;

    if (!http_request_is(&x->request, "POST") ||
        http_read_body(&x->request, EXCHANGE_BODY_MAX, &x->body, &refusal) == 0)
        return 0;
    json_decref(refusal.body);
    exchange_error(x, refusal.status, "invalid_request",
                   refusal.status == 413 ? "the body is too large"
                                         : "the body is not as long as Content-Length says");
    return -1;
}

static void serve_route(const struct oauth *o, struct exchange *x, const struct route *r)
{
    if (!r)
        exchange_error(x, 404, "not_found", "there is no such endpoint");
    else if (r->for_pages && http_request_is(&x->request, "OPTIONS"))
        answer_preflight(x);
    else if (!takes_method(r, x->request.method)) {
        exchange_error(x, 405, "invalid_request", "this endpoint does not take this method");
        buf_addf(&x->headers, "Allow:%s\r\n", r->methods); /* one or two */
    } else if (read_body(x) == 0)
        r->serve(o, x);
    if (r && r->for_pages)
        buf_add_str(&x->headers, "Access-Control-Allow-Origin: *\r\n");
}

/* ---- one request ---- */

static void send_answer(const struct exchange *x)
{
    AUTO_BUF struct buf out = BUF_INIT(2 * EXCHANGE_MAX);

    buf_addf(&out, "Status: %d %s\r\n%s", x->status, http_reason(x->status), buf_str(&x->headers));
    if (x->type)
        buf_addf(&out, "Content-Type: %s\r\n", x->type);
    buf_addf(&out, "Content-Length: %zu\r\n\r\n", x->text.len);
    buf_add(&out, buf_str(&x->text), x->text.len);
    x->request.source->write(x->request.source->ctx, out.data, out.len);
}

static void log_answer(const struct exchange *x, const struct route *r, int64_t us)
{
    AUTO_FREE char *what = mem_printf("oauth %s", r ? r->name : "-");
    const struct http_answer a = {.status = x->status, .what = what, .detail = ""};

    http_request_log(&x->request, &a, false, us);
}

static void oauth_serve(const void *ctx, const struct http_source *source)
{
    const struct oauth *o = ctx;
    struct exchange x = {.body = BUF_INIT(EXCHANGE_BODY_MAX + 1),
                         .headers = BUF_INIT(4096),
                         .text = BUF_INIT(EXCHANGE_MAX)};
    int64_t start = clock_mono_us();

    http_request_read(source, &x.request);
    http_request_note(&x.request);
    const char *uri = x.request.uri ? x.request.uri : "";
    size_t len = strcspn(uri, "?");
    AUTO_FREE char *path = mem_strndup(uri, len < PATH_MAX_LEN ? len : 0);
    x.query = uri[len] ? uri + len + 1 : "";
    const struct route *r = find_route(path);
    if (comes_from_front(o, &x))
        serve_route(o, &x, r);
    else
        exchange_error(&x, 403, "access_denied", "requests must come from the web server");
    if (!buf_ok(&x.text) || !buf_ok(&x.headers))
        exchange_error(&x, 500, "server_error", "the answer is too large");
    send_answer(&x);
    log_answer(&x, r, clock_mono_us() - start);
    if (x.body.data)
        explicit_bzero(x.body.data, x.body.len); /* a passphrase, or tokens */
    buf_clear(&x.body);
    buf_clear(&x.headers);
    buf_clear(&x.text);
    mem_give_back();
}

/* ---- the process ---- */

/* Wipes what workers and broker know, before the process that fetches documents is started. */
static void forget_secrets(const struct settings *s)
{
    explicit_bzero(s->file_secret, strlen(s->file_secret));
    explicit_bzero(s->old_secret, strlen(s->old_secret));
    explicit_bzero(s->api_token, strlen(s->api_token));
}

static int oauth_enter(struct oauth *o, const struct account *workers, struct err *e)
{
    forget_secrets(o->settings);
    if ((o->fetch_fd = documents_start(workers, e)) < 0 ||
        front_secret_read(o->settings, &o->front_secret, e) < 0 || account_become(workers, e) < 0 ||
        front_memory_bound(o->settings, false, e) < 0 ||
        store_secret(o->folder_fd, o->secret, e) < 0 ||
        !(o->key = signing_key_open(o->folder_fd, e)))
        return -1;
    json_object_seed(0); /* from /dev/urandom, which cannot be opened later */
    return account_confine(o->folder_fd, false, e);
}

int oauth_main(const struct settings *s, const struct account *workers, int listen_fd,
               int folder_fd, struct err *e)
{
    const struct call_place nowhere = {0};
    pid_t master = getppid();
    struct oauth o = {
        .settings = s, .issuer = s->public_base_url, .folder_fd = folder_fd, .fetch_fd = -1};
    int result = oauth_enter(&o, workers, e);

    if (result == 0 && getppid() == master) /* else it died while the change of account had cleared
                                               the signal */
        result = fastcgi_loop(listen_fd, &nowhere, oauth_serve, &o, e);
    explicit_bzero(o.secret, sizeof o.secret);
    signing_key_free(o.key);
    free(o.front_secret);
    auto_close_fd(&o.fetch_fd);
    return result;
}
