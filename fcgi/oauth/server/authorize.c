#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/base/remedy.h"
#include "common/rpc/json.h"
#include "fcgi/oauth/server/attempts.h"
#include "fcgi/oauth/server/clients.h"
#include "fcgi/oauth/server/exchange.h"
#include "fcgi/oauth/server/grants.h"
#include "fcgi/oauth/server/once.h"
#include "fcgi/oauth/server/page.h"
#include "fcgi/oauth/server/passphrase.h"
#include "fcgi/oauth/server/uri.h"

#include <inttypes.h>
#include <string.h>

#define LABEL         "sandcgi consent 1"
#define PAGE_S        900 /* a page can be answered */
#define COOKIE_BYTES  32
#define COOKIE        "sandcgi_consent"
#define HOST_PREFIX   "__Host-" /* set by this host alone, for all its paths, over TLS only */
#define STATE_MAX     2048
#define QUERY_MAX     8192 /* bytes; the page has it escaped */
#define CHALLENGE_LEN 43   /* of SHA-256 in base64url */
#define TENANT        "default"

/* What a client asks for, checked. Texts are borrowed from the form. */
struct ask {
    struct client client;
    const char *redirect, *state, *challenge;
    unsigned scopes; /* of enum scope */
    struct buf resource;
};

#define ASK_INIT ((struct ask){.resource = BUF_INIT(URI_MAX)})
#define AUTO_ASK AUTO(ask_clear)

static void ask_clear(struct ask *a)
{
    client_clear(&a->client);
    buf_clear(&a->resource);
}

/* ---- pages ---- */

static void answer_page(struct exchange *x, int status)
{
    exchange_answer(x, status, "text/html; charset=utf-8");
    page_headers(&x->headers);
}

/* Nobody is redirected before the operator has said so: a stranger may register any address. */
static void refuse(struct exchange *x, int status, const char *text)
{
    answer_page(x, status);
    page_note("This cannot be allowed", text, NULL, NULL, false, &x->text);
}

/* Back to the client, with iss against mix-ups (RFC 9207). */
static void go_back(const struct oauth *o, struct exchange *x, const struct ask *a,
                    const char *name, const char *value, const char *title)
{
    AUTO_BUF struct buf url = BUF_INIT(URI_MAX + 3 * STATE_MAX + 4096);

    buf_add_str(&url, a->redirect);
    form_add(&url, strchr(a->redirect, '?') ? '&' : '?', name, value);
    if (a->state)
        form_add(&url, '&', "state", a->state);
    form_add(&url, '&', "iss", o->issuer);
    answer_page(x, 200);
    page_note(title, "You can close this page if nothing happens.", buf_str(&url), "Go on", true,
              &x->text);
}

/* ---- reading what is asked for ---- */

static unsigned read_scopes(const char *text)
{
    AUTO_FREE char *copy = mem_strdup(text ? text : "");
    unsigned scopes = 0;

    /* Others, such as offline_access, are left out (RFC 6749, 3.3). */
    for (char *rest = copy, *name; (name = strsep(&rest, " "));)
        scopes |= scopes_parse(name);
    return text ? scopes : (unsigned)SCOPE_ALL & ~(unsigned)SCOPE_ADMIN;
}

static int find_client(const struct oauth *o, struct exchange *x, const struct form *f,
                       struct ask *out)
{
    struct err e = ERR_INIT;
    const char *id = form_get(f, "client_id");

    if (!id) {
        refuse(x, 400, "client_id is missing.");
        return -1;
    }
    if (client_find(o->folder_fd, o->fetch_fd, o->secret, id, &out->client, &e) < 0) {
        if (!err_is_refusal(e.kind) && e.kind != ERR_NOT_FOUND)
            log_error("%s", e.text);
        refuse(x, e.kind == ERR_BUSY ? 503 : 400, e.text);
        return -1;
    }
    out->redirect = form_get(f, "redirect_uri");
    if (!out->redirect && json_array_size(out->client.redirects) == 1)
        out->redirect = json_string_value(json_array_get(out->client.redirects, 0));
    if (!out->redirect || !client_has_redirect(&out->client, out->redirect)) {
        refuse(x, 400, "redirect_uri is not one that this application has registered.");
        return -1;
    }
    return 0;
}

/* The reason to refuse it; NULL: none. */
static const char *what_is_wrong(const struct oauth *o, const struct form *f, struct ask *out,
                                 struct err *e)
{
    const char *type = form_get(f, "response_type"), *mode = form_get(f, "response_mode");
    const char *method = form_get(f, "code_challenge_method");
    const char *resource = form_get(f, "resource");

    out->state = form_get(f, "state");
    out->challenge = form_get(f, "code_challenge");
    out->scopes = read_scopes(form_get(f, "scope"));
    if (!type || strcmp(type, "code") != 0)
        return "response_type must be code.";
    if (mode && strcmp(mode, "query") != 0)
        return "response_mode must be query.";
    if (!out->challenge || !method || strcmp(method, "S256") != 0 ||
        strlen(out->challenge) != CHALLENGE_LEN ||
        strspn(out->challenge, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                               "-_") != CHALLENGE_LEN)
        return "The application must use PKCE: code_challenge, with code_challenge_method S256.";
    if (!out->scopes)
        return "scope names nothing that there is here: " SCOPE_NAMES ".";
    if (out->state && strlen(out->state) > STATE_MAX)
        return "state is too long.";
    if (form_get(f, "request") || form_get(f, "request_uri"))
        return "request and request_uri are not known here.";
    if (!resource)
        buf_addf(&out->resource, "%s/mcp", o->issuer);
    else if (resource_read(o->issuer, resource, &out->resource, e) < 0)
        return e->text;
    return NULL;
}

/* -1: the answer says what is wrong. */
static int read_ask(const struct oauth *o, struct exchange *x, const struct form *f,
                    struct ask *out)
{
    struct err e = ERR_INIT;

    if (find_client(o, x, f, out) < 0)
        return -1;
    const char *wrong = what_is_wrong(o, f, out, &e);
    if (!wrong)
        return 0;
    refuse(x, 400, wrong);
    return -1;
}

/* ---- the page that asks the operator ---- */

/* Binds a page's answer to the browser that has the page, to what it shows, and to a time. */
static void make_proof(const struct oauth *o, const char *cookie, const char *request,
                       const char *made, char out[CRYPTO_HEX_LEN(CRYPTO_SHA256_LEN)])
{
    const struct crypto_part parts[] = {{LABEL, strlen(LABEL)},
                                        {cookie, strlen(cookie)},
                                        {request, strlen(request)},
                                        {made, strlen(made)}};
    uint8_t mac[CRYPTO_SHA256_LEN];
    struct err e = ERR_INIT;

    if (crypto_hmac(o->secret, sizeof o->secret, parts, ARRAY_LEN(parts), mac, &e) < 0)
        crypto_random_hex(sizeof mac, out); /* fits nothing */
    else
        crypto_hex(mac, sizeof mac, out);
}

static bool over_tls(const struct oauth *o)
{
    return strncmp(o->issuer, "https://", 8) == 0;
}

/* Each page has a cookie of its own: one that came from elsewhere is never taken up. */
static void show_consent(const struct oauth *o, struct exchange *x, const struct ask *a,
                         const char *request, const char *tenant, int status, const char *problem)
{
    AUTO_BUF struct buf place = BUF_INIT(URI_MAX + 64);
    char cookie[2 * COOKIE_BYTES + 1], made[24], proof[CRYPTO_HEX_LEN(CRYPTO_SHA256_LEN)];

    crypto_random_hex(COOKIE_BYTES, cookie);
    snprintf(made, sizeof made, "%" PRId64, clock_unix_s());
    make_proof(o, cookie, request, made, proof);
    redirect_describe(a->redirect, &place);
    const struct consent c = {.client = a->client.name,
                              .redirect = buf_str(&place),
                              .resource = buf_str(&a->resource),
                              .tenant = tenant,
                              .document = a->client.published ? a->client.id : NULL,
                              .scopes = a->scopes,
                              .problem = problem,
                              .request = request,
                              .made = made,
                              .proof = proof};
    answer_page(x, status);
    buf_addf(&x->headers,
             "Set-Cookie: %s" COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%d%s\r\n",
             over_tls(o) ? HOST_PREFIX : "", cookie, PAGE_S, over_tls(o) ? "; Secure" : "");
    page_consent(&c, &x->text);
}

static void show_page(const struct oauth *o, struct exchange *x)
{
    AUTO_FORM struct form f = {0};
    AUTO_ASK struct ask ask = ASK_INIT;
    struct err e = ERR_INIT;

    if (strlen(x->query) > QUERY_MAX)
        refuse(x, 400, "The request is too long.");
    else if (form_parse(x->query, strlen(x->query), &f, &e) < 0)
        refuse(x, 400, e.text);
    else if (read_ask(o, x, &f, &ask) == 0)
        show_consent(o, x, &ask, x->query, TENANT, 200, NULL);
}

/* ---- its answer ---- */

/* The value of our cookie; "": there is none, or two. */
static void read_cookie(const struct oauth *o, const struct exchange *x,
                        char out[2 * COOKIE_BYTES + 1])
{
    const char *name = over_tls(o) ? HOST_PREFIX COOKIE "=" : COOKIE "=";
    const char *all = x->request.source->param(x->request.source->ctx, "HTTP_COOKIE");
    AUTO_FREE char *copy = mem_strdup(all ? all : "");
    size_t n = 0;

    out[0] = '\0';
    for (char *rest = copy, *pair; (pair = strsep(&rest, ";"));) {
        pair += strspn(pair, " ");
        if (strncmp(pair, name, strlen(name)) != 0)
            continue;
        const char *value = pair + strlen(name);
        bool good = ++n == 1 && strlen(value) == 2 * COOKIE_BYTES;
        snprintf(out, 2 * COOKIE_BYTES + 1, "%s", good ? value : "");
    }
}

static bool is_own_page(const struct oauth *o, const struct exchange *x)
{
    const char *origin = x->request.origin;
    size_t len = origin ? strlen(origin) : 0;

    /* Whole: "https:" is none. */
    return !origin || (strstr(origin, "://") && strncmp(o->issuer, origin, len) == 0 &&
                       (o->issuer[len] == '\0' || o->issuer[len] == '/'));
}

static bool proof_is_right(const struct oauth *o, const struct exchange *x, const struct form *f,
                           const char *request)
{
    char cookie[2 * COOKIE_BYTES + 1], proof[CRYPTO_HEX_LEN(CRYPTO_SHA256_LEN)];
    const char *made = form_get(f, "made"), *given = form_get(f, "proof");
    uint64_t at;

    read_cookie(o, x, cookie);
    if (!*cookie || !made || !given || parse_u64(made, 0, INT64_MAX, &at) < 0)
        return false;
    make_proof(o, cookie, request, made, proof);
    int64_t age = clock_unix_s() - (int64_t)at;
    return crypto_equal(proof, strlen(proof), given, strlen(given)) && age >= 0 && age <= PAGE_S;
}

static void audit(const char *act, const struct ask *a, const char *tenant, const char *text)
{
    char scopes[SCOPE_TEXT_MAX];

    scopes_format(a->scopes, scopes);
    const struct log_field fields[] = {{.name = "audit", .text = act},
                                       {.name = "name", .text = a->client.name},
                                       {.name = "tenant", .text = tenant},
                                       {.name = "scopes", .text = scopes}};
    log_with(LOG_LEVEL_INFO, fields, ARRAY_LEN(fields), "%s", text);
}

/* 0, or after how many seconds the address may try. The try counts before the passphrase is looked
 * at, so that many at once are no way round. */
static int64_t begin_attempt(const struct oauth *o, const struct exchange *x, struct err *e)
{
    AUTO_STORE struct store s = STORE_INIT;

    if (store_begin(o->folder_fd, &s, e) < 0)
        return -1;
    int64_t wait = attempts_begin(json_object_get(s.state, "attempts"), exchange_address(x),
                                  clock_unix_s());
    return wait == 0 && store_save(&s, e) < 0 ? -1 : wait;
}

/* An administrator's code? false: the answer says no. */
static bool has_code(const struct oauth *o, struct exchange *x, const struct ask *a,
                     const char *code, const char *request, const char *tenant)
{
    AUTO_STORE struct store s = STORE_INIT;
    struct err e = ERR_INIT;

    int rc = store_begin(o->folder_fd, &s, &e);
    bool right = rc == 0 && once_take(json_object_get(s.state, "once"), code, clock_unix_s());
    if (rc < 0 || (right && store_save(&s, &e) < 0)) {
        log_error("%s", e.text);
        refuse(x, 500, "The authorization server has failed; its log says why.");
        return false;
    }
    if (!right) {
        err_set(&e, ERR_DENIED, "The code was used, or is too old. Make another one: %s",
                remedy(REMEDY_OAUTH_CODE));
        show_consent(o, x, a, request, tenant, 403, e.text);
    }
    return right;
}

/* The operator's passphrase? false: the answer says no. */
static bool is_operator(const struct oauth *o, struct exchange *x, const struct ask *a,
                        const struct form *f, const char *request, const char *tenant)
{
    const char *passphrase = form_get(f, "passphrase");
    struct err e = ERR_INIT, why = ERR_INIT;
    bool right = false;

    if (passphrase && once_is_code(passphrase))
        return has_code(o, x, a, passphrase, request, tenant);
    int64_t wait = begin_attempt(o, x, &e);
    if (wait < 0 || (wait == 0 && passphrase_check(o->folder_fd, passphrase ? passphrase : "",
                                                   &right, &e) < 0)) {
        log_error("%s", e.text);
        refuse(x, 500, "The authorization server has failed; its log says why.");
    } else if (wait > 0) {
        err_set(&why, ERR_LIMIT,
                "There were too many wrong passphrases. Try again in %" PRId64
                " seconds, or enter a code that you make on the server: %s",
                wait, remedy(REMEDY_OAUTH_CODE));
        show_consent(o, x, a, request, tenant, 429, why.text);
        buf_addf(&x->headers, "Retry-After: %" PRId64 "\r\n", wait);
    } else if (!right) {
        show_consent(o, x, a, request, tenant, 403, "The passphrase is wrong.");
        audit("oauth-wrong-passphrase", a, tenant, "wrong passphrase");
    }
    return right;
}

static void allow(const struct oauth *o, struct exchange *x, const struct ask *a,
                  const char *tenant)
{
    AUTO_STORE struct store s = STORE_INIT;
    AUTO_BUF struct buf place = BUF_INIT(URI_MAX + 64);
    char code[CODE_LEN + 1], scopes[SCOPE_TEXT_MAX];
    struct err e = ERR_INIT;

    scopes_format(a->scopes, scopes);
    for (char *comma = scopes; (comma = strchr(comma, ','));)
        *comma = ' ';
    redirect_describe(a->redirect, &place);
    const struct grant_terms terms = {.client = a->client.id,
                                      .client_name = a->client.name,
                                      .host = buf_str(&place),
                                      .tenant = tenant,
                                      .scope = scopes,
                                      .resource = buf_str(&a->resource)};
    if (store_begin(o->folder_fd, &s, &e) < 0 ||
        grant_allow(s.state, &terms, a->redirect, a->challenge, clock_unix_s(), code, &e) < 0) {
        if (e.kind != ERR_LIMIT)
            log_error("%s", e.text);
        refuse(x, e.kind == ERR_LIMIT ? 503 : 500, e.text);
        return;
    }
    attempts_forget(json_object_get(s.state, "attempts"), exchange_address(x));
    if (grants_save(&s, clock_unix_s(), &e) < 0) {
        log_error("%s", e.text);
        refuse(x, 500, "The authorization server has failed; its log says why.");
        return;
    }
    go_back(o, x, a, "code", code, "Allowed");
    audit("oauth-allow", a, tenant, "the operator has allowed a client");
}

static void answer_consent(const struct oauth *o, struct exchange *x, const struct ask *a,
                           const struct form *f, const char *request)
{
    const char *act = form_get(f, "act"), *tenant = form_get(f, "tenant");

    if (!tenant)
        tenant = TENANT;
    if (!proof_is_right(o, x, f, request))
        show_consent(o, x, a, request, tenant, 403,
                     "This page was open for too long, or came from elsewhere. Please look again, "
                     "and answer once more.");
    else if (act && strcmp(act, "deny") == 0) {
        go_back(o, x, a, "error", "access_denied", "Denied");
        audit("oauth-deny", a, tenant, "the operator has denied a client");
    } else if (!token_tenant_is_valid(tenant))
        show_consent(o, x, a, request, TENANT, 400,
                     "A tenant's name is 1 to 64 letters, digits, dots, dashes or underscores, "
                     "beginning with a letter or digit.");
    else if (is_operator(o, x, a, f, request, tenant))
        allow(o, x, a, tenant);
}

/* Everything is checked again: what the page showed is no promise. */
static void take_answer(const struct oauth *o, struct exchange *x)
{
    AUTO_FORM struct form f = {0}, asked = {0};
    AUTO_ASK struct ask ask = ASK_INIT;
    struct err e = ERR_INIT;
    const char *request;

    if (exchange_form(x, &f) < 0)
        return;
    request = form_get(&f, "request");
    if (!is_own_page(o, x))
        refuse(x, 403, "This form came from another site.");
    else if (!request)
        refuse(x, 400, "request is missing.");
    else if (form_parse(request, strlen(request), &asked, &e) < 0)
        refuse(x, 400, e.text);
    else if (read_ask(o, x, &asked, &ask) == 0)
        answer_consent(o, x, &ask, &f, request);
}

void authorize_serve(const struct oauth *o, struct exchange *x)
{
    if (http_request_is(&x->request, "POST"))
        take_answer(o, x);
    else
        show_page(o, x);
}
