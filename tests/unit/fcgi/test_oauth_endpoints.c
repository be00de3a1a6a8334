/* The endpoints of the builtin authorization server, each asked as its process asks it. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "fcgi/oauth/server/attempts.h"
#include "fcgi/oauth/server/exchange.h"
#include "fcgi/oauth/server/grants.h"
#include "fcgi/oauth/server/once.h"
#include "fcgi/oauth/server/passphrase.h"
#include "tests/unit/unit.h"

#define BASE       "https://sandbox.example.org"
#define CLIENT     "http://127.0.0.1/cb"
#define FORM       "application/x-www-form-urlencoded"
#define VERIFIER   "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" /* of RFC 7636, appendix B */
#define FITTING    "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
#define ADDRESS    "192.0.2.1"
#define PASSPHRASE "correct horse battery"
#define WITH_CODE                                                                                  \
    "grant_type=authorization_code&client_id=c1&redirect_uri=" CLIENT "&code_verifier=" VERIFIER
#define REFRESH "grant_type=refresh_token&client_id=c1"

typedef void endpoint(const struct oauth *o, struct exchange *x);

struct world {
    char folder[PATH_MAX];
    struct oauth oauth;
    struct http_source source;
    char cookie[200]; /* that the browser sends */
    const char *origin;
    struct exchange x;
};

static const char *param(void *ctx, const char *name)
{
    const struct world *w = ctx;

    return strcmp(name, "HTTP_COOKIE") == 0 && *w->cookie ? w->cookie : NULL;
}

static int setup(void **state)
{
    static struct world w;
    struct err e;

    w = (struct world){.oauth = {.issuer = BASE, .fetch_fd = -1},
                       .source = {.param = param, .ctx = &w, .cancel_fd = -1},
                       .x = {.body = BUF_INIT(EXCHANGE_BODY_MAX + 1),
                             .headers = BUF_INIT(4096),
                             .text = BUF_INIT(EXCHANGE_MAX)}};
    unit_make_folder(w.folder);
    w.oauth.folder_fd = open(w.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(w.oauth.folder_fd, STORE_PUBLIC, 0700), 0);
    assert_works(store_secret(w.oauth.folder_fd, w.oauth.secret, &e), e);
    w.oauth.key = signing_key_open(w.oauth.folder_fd, &e);
    assert_non_null(w.oauth.key);
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    signing_key_free(w->oauth.key);
    close(w->oauth.folder_fd);
    unit_remove_tree(w->folder);
    buf_clear(&w->x.body);
    buf_clear(&w->x.headers);
    buf_clear(&w->x.text);
    return 0;
}

/* A POST; the status. */
static int post(struct world *w, endpoint *serve, const char *type, const char *body)
{
    w->x.request = (struct http_request){.source = &w->source,
                                         .method = "POST",
                                         .content_type = type,
                                         .address = ADDRESS,
                                         .origin = w->origin};
    buf_reset(&w->x.body);
    buf_add_str(&w->x.body, body);
    exchange_answer(&w->x, 0, NULL);
    serve(&w->oauth, &w->x);
    return w->x.status;
}

static json_t *answer(const struct world *w)
{
    struct err e = ERR_INIT;
    json_t *all = json_parse(w->x.text.data, w->x.text.len, 8, &e);

    assert_non_null(all);
    return all;
}

/* An error of RFC 6749 (5.2), which says why. */
static void expect_error(struct world *w, endpoint *serve, const char *type, const char *body,
                         int status, const char *code)
{
    if (post(w, serve, type, body) != status)
        fail_msg("%s: %d, not %d: %s", body, w->x.status, status, buf_str(&w->x.text));
    json_auto_t *all = answer(w);
    assert_string_equal(json_get_string(all, "error"), code);
    assert_true(*json_get_string(all, "error_description") != '\0');
}

static void allow(struct world *w, char code[CODE_LEN + 1])
{
    const struct grant_terms terms = {.client = "c1",
                                      .client_name = "A client",
                                      .host = "client.example.org",
                                      .tenant = "alice",
                                      .scope = "run files",
                                      .resource = BASE "/mcp"};
    AUTO_STORE struct store s = STORE_INIT;
    struct err e;

    assert_works(store_begin(w->oauth.folder_fd, &s, &e), e);
    assert_works(grant_allow(s.state, &terms, CLIENT, FITTING, clock_unix_s(), code, &e), e);
    assert_works(grants_save(&s, clock_unix_s(), &e), e);
}

/* A code's tokens; heap. */
static json_t *tokens_for_a_code(struct world *w)
{
    char code[CODE_LEN + 1];

    allow(w, code);
    AUTO_FREE char *body = mem_printf(WITH_CODE "&resource=" BASE "/mcp&code=%s", code);
    assert_int_equal(post(w, token_serve, FORM, body), 200);
    return answer(w);
}

static void a_code_and_a_refresh_token_get_tokens(void **state)
{
    struct world *w = *state;
    json_auto_t *first = tokens_for_a_code(w);
    json_auto_t *claims = signing_key_verify(w->oauth.key, json_get_string(first, "access_token"));
    AUTO_FREE char *body = mem_printf(REFRESH "&scope=files&refresh_token=%s",
                                      json_get_string(first, "refresh_token"));

    assert_contains(buf_str(&w->x.headers), "Cache-Control: no-store");
    assert_string_equal(json_get_string(first, "token_type"), "Bearer");
    assert_string_equal(json_get_string(first, "scope"), "run files");
    assert_string_equal(json_get_string(claims, "iss"), BASE);
    assert_string_equal(json_get_string(claims, "aud"), BASE "/mcp");
    assert_string_equal(json_get_string(claims, "tenant"), "alice");
    assert_string_equal(json_get_string(claims, "client_id"), "c1");
    assert_string_equal(json_get_string(claims, "scope"), "run files");
    assert_int_equal(json_get_integer(claims, "exp", 0) - json_get_integer(claims, "iat", 0),
                     json_get_integer(first, "expires_in", -1));
    assert_int_equal(post(w, token_serve, FORM, body), 200);
    json_auto_t *second = answer(w);
    assert_string_equal(json_get_string(second, "scope"), "files");
    assert_string_not_equal(json_get_string(second, "refresh_token"),
                            json_get_string(first, "refresh_token"));
    expect_error(w, token_serve, FORM, body, 400, "invalid_grant");
}

static void what_cannot_be_granted_is_refused_as_the_rfc_says(void **state)
{
    static const struct {
        endpoint *serve;
        const char *type, *body, *code;
    } cases[] = {
        {token_serve, NULL, REFRESH "&refresh_token=x", "invalid_request"},
        {token_serve, "application/json", REFRESH "&refresh_token=x", "invalid_request"},
        {token_serve, FORM, "", "invalid_request"},
        {token_serve, FORM, "grant_type=%zz", "invalid_request"},
        {token_serve, FORM, "grant_type=password&client_id=c1", "unsupported_grant_type"},
        {token_serve, FORM, "grant_type=refresh_token&refresh_token=x", "invalid_request"},
        {token_serve, FORM, REFRESH, "invalid_request"},
        {token_serve, FORM, REFRESH "&refresh_token=x", "invalid_grant"},
        {token_serve, FORM, REFRESH "&refresh_token=x&resource=https://other/mcp",
         "invalid_target"},
        {token_serve, FORM, WITH_CODE, "invalid_request"},
        {token_serve, FORM, WITH_CODE "&code=x", "invalid_grant"},
        {token_serve, FORM,
         WITH_CODE ".too.long..............................................."
                   "................................"
                   "&code=x",
         "invalid_request"},
        {token_serve, FORM,
         "grant_type=authorization_code&client_id=c1&code=x&code_verifier=" VERIFIER,
         "invalid_request"},
        {token_serve, FORM,
         "grant_type=authorization_code&client_id=c1&code=x&redirect_uri=" CLIENT,
         "invalid_request"},
        {token_serve, FORM,
         "grant_type=authorization_code&client_id=c1&code=x&redirect_uri=" CLIENT
         "&code_verifier=short",
         "invalid_request"},
        {revoke_serve, NULL, "token=x", "invalid_request"},
        {revoke_serve, FORM, "", "invalid_request"},
        {register_serve, "application/json", "", "invalid_client_metadata"},
        {register_serve, "application/json", "[]", "invalid_client_metadata"},
        {register_serve, "application/json", "{\"redirect_uris\":[\"http://other.example/\"]}",
         "invalid_redirect_uri"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_error(w, cases[i].serve, cases[i].type, cases[i].body, 400, cases[i].code);
}

static void either_token_of_a_grant_ends_it_and_others_end_nothing(void **state)
{
    static const char *const names[] = {"refresh_token", "access_token"};
    struct world *w = *state;
    AUTO_BUF struct buf before = BUF_INIT(10000), after = BUF_INIT(10000);
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_auto_t *tokens = tokens_for_a_code(w);
        AUTO_FREE char *revoke = mem_printf("token=%s", json_get_string(tokens, names[i]));
        AUTO_FREE char *refresh = mem_printf(REFRESH "&refresh_token=%s",
                                             json_get_string(tokens, "refresh_token"));
        assert_int_equal(post(w, revoke_serve, FORM, "token=x"), 200);
        assert_int_equal(post(w, token_serve, FORM, refresh), 200);
        assert_int_equal(post(w, revoke_serve, FORM, revoke), 200);
        assert_int_equal(w->x.text.len, 0);
        json_auto_t *list = NULL;
        AUTO_BUF struct buf revoked = BUF_INIT(1000);
        assert_works(store_read(w->oauth.folder_fd, STORE_REVOKED, &revoked, &e), e);
        list = json_parse(revoked.data, revoked.len, 2, &e);
        assert_int_equal(json_array_size(list), i + 1);
    }
}

static void a_client_registers_and_nothing_is_kept_of_it(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf state_text = BUF_INIT(1000);
    struct err e;

    assert_int_equal(post(w, register_serve, "application/json",
                          "{\"client_name\":\"C\",\"redirect_uris\":[\"" CLIENT "\"]}"),
                     201);
    json_auto_t *said = answer(w);
    assert_string_not_equal(json_get_string(said, "client_id"), "");
    assert_fails(store_read(w->oauth.folder_fd, STORE_STATE, &state_text, &e), ERR_NOT_FOUND, e);
}

/* A damaged state is no client's fault. */
static void without_its_state_the_server_has_failed(void **state)
{
    struct world *w = *state;
    json_auto_t *tokens = tokens_for_a_code(w);
    AUTO_FREE char *revoke = mem_printf("token=%s", json_get_string(tokens, "refresh_token"));
    struct err e;

    assert_works(store_write(w->oauth.folder_fd, STORE_STATE, "{", 1, &e), e);
    expect_error(w, token_serve, FORM, WITH_CODE "&code=x", 500, "server_error");
    expect_error(w, token_serve, FORM, REFRESH "&refresh_token=x", 500, "server_error");
    expect_error(w, revoke_serve, FORM, revoke, 500, "server_error");
}

/* ---- the page that asks the operator ---- */

/* What the browser has of a page. */
struct page {
    char cookie[200], made[24], proof[80];
    char body[2000]; /* of the form, without what the operator enters */
};

static void copy_between(const char *text, const char *before, const char *after, char *out,
                         size_t size)
{
    const char *at = strstr(text, before);

    assert_non_null(at);
    at += strlen(before);
    assert_true(strcspn(at, after) < size);
    snprintf(out, size, "%.*s", (int)strcspn(at, after), at);
}

static void get_page(struct world *w, const char *client, struct page *out)
{
    AUTO_BUF struct buf body = BUF_INIT(sizeof out->body);
    AUTO_FREE char *query = mem_printf("response_type=code&client_id=%s&redirect_uri=" CLIENT
                                       "&scope=run&state=a%%20b&code_challenge_method=S256"
                                       "&code_challenge=" FITTING,
                                       client);

    *w->cookie = '\0';
    w->x.request = (struct http_request){.source = &w->source, .method = "GET"};
    w->x.query = query;
    exchange_answer(&w->x, 0, NULL);
    authorize_serve(&w->oauth, &w->x);
    assert_int_equal(w->x.status, 200);
    const char *text = buf_str(&w->x.text);
    copy_between(buf_str(&w->x.headers), "Set-Cookie: ", ";", out->cookie, sizeof out->cookie);
    copy_between(text, "name=\"made\" value=\"", "\"", out->made, sizeof out->made);
    copy_between(text, "name=\"proof\" value=\"", "\"", out->proof, sizeof out->proof);
    form_add(&body, '&', "request", query);
    form_add(&body, '&', "made", out->made);
    form_add(&body, '&', "proof", out->proof);
    snprintf(out->body, sizeof out->body, "%s", buf_str(&body));
}

static int answer_page(struct world *w, const struct page *page, const char *cookie,
                       const char *entered)
{
    AUTO_FREE char *body = mem_printf("%s&%s", page->body, entered);

    snprintf(w->cookie, sizeof w->cookie, "%s", cookie);
    return post(w, authorize_serve, FORM, body);
}

static char *register_client(struct world *w)
{
    assert_int_equal(post(w, register_serve, "application/json",
                          "{\"client_name\":\"C\",\"redirect_uris\":[\"" CLIENT "\"]}"),
                     201);
    json_auto_t *said = answer(w);
    return mem_strdup(json_get_string(said, "client_id"));
}

static void what_the_operator_allows_gets_a_code_for_the_client(void **state)
{
    struct world *w = *state;
    AUTO_FREE char *client = register_client(w);
    AUTO_FREE char *two = NULL;
    struct page page, other;
    char code[CODE_LEN + 1];
    struct err e;

    assert_works(passphrase_set(w->oauth.folder_fd, PASSPHRASE, &e), e);
    get_page(w, client, &other);
    get_page(w, client, &page);
    two = mem_printf("%s; %s", page.cookie, page.cookie);
    const struct {
        const char *cookie, *entered;
        int status;
        const char *said;
    } cases[] = {
        {"", "passphrase=" PASSPHRASE, 403, "came from elsewhere"},
        {other.cookie, "passphrase=" PASSPHRASE, 403, "came from elsewhere"},
        {two, "passphrase=" PASSPHRASE, 403, "came from elsewhere"},
        {page.cookie, "tenant=a/b&passphrase=" PASSPHRASE, 400, "tenant&#39;s name is"},
        {page.cookie, "passphrase=wrong", 403, "The passphrase is wrong."},
        {page.cookie, "act=deny", 200, "?error=access_denied&amp;state=a%20b&amp;iss="},
        {page.cookie, "tenant=bob&passphrase=" PASSPHRASE, 200, "&amp;state=a%20b&amp;iss="},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(answer_page(w, &page, cases[i].cookie, cases[i].entered), cases[i].status);
        assert_contains(buf_str(&w->x.text), cases[i].said);
        assert_int_equal(strstr(buf_str(&w->x.text), "?code=") != NULL, i == ARRAY_LEN(cases) - 1);
    }
    copy_between(buf_str(&w->x.text), "?code=", "&", code, sizeof code);
    AUTO_FREE char *body = mem_printf(
        "grant_type=authorization_code&client_id=%s&redirect_uri=" CLIENT "&code_verifier=" VERIFIER
        "&code=%s",
        client, code);
    assert_int_equal(post(w, token_serve, FORM, body), 200);
    json_auto_t *tokens = answer(w);
    json_auto_t *claims = signing_key_verify(w->oauth.key, json_get_string(tokens, "access_token"));
    assert_string_equal(json_get_string(claims, "tenant"), "bob");
    assert_string_equal(json_get_string(claims, "scope"), "run");
    assert_string_equal(json_get_string(claims, "aud"), BASE "/mcp");
}

/* Makes the tries that bar an address, without the time that a look at a passphrase takes. */
static void bar(const struct world *w, const char *address)
{
    AUTO_STORE struct store s = STORE_INIT;
    int64_t now = clock_unix_s(), waits = 0;
    struct err e;

    assert_works(store_begin(w->oauth.folder_fd, &s, &e), e);
    for (; waits < 60; now += waits)
        waits = attempts_begin(json_object_get(s.state, "attempts"), address, now);
    assert_works(store_save(&s, &e), e);
}

static void who_guesses_the_passphrase_is_told_to_wait(void **state)
{
    struct world *w = *state;
    AUTO_FREE char *client = register_client(w);
    struct page page;

    bar(w, ADDRESS);
    get_page(w, client, &page);
    assert_int_equal(answer_page(w, &page, page.cookie, "passphrase=" PASSPHRASE), 429);
    assert_contains(buf_str(&w->x.headers), "Retry-After: ");
    assert_contains(buf_str(&w->x.text), "too many wrong passphrases");
}

/* H-74 */
static void a_code_of_the_administrator_is_barred_by_no_wrong_passphrase(void **state)
{
    struct world *w = *state;
    AUTO_FREE char *client = register_client(w);
    char code[ONCE_LEN + 1];
    struct page page;
    struct err e;

    bar(w, ADDRESS);
    AUTO_STORE struct store s = STORE_INIT;
    assert_works(store_begin(w->oauth.folder_fd, &s, &e), e);
    once_make(json_object_get(s.state, "once"), clock_unix_s(), code);
    assert_works(store_save(&s, &e), e);
    store_end(&s);
    AUTO_FREE char *entered = mem_printf("passphrase=%s", code);
    get_page(w, client, &page);
    assert_int_equal(answer_page(w, &page, page.cookie, entered), 200);
    assert_contains(buf_str(&w->x.text), "?code=");
    get_page(w, client, &page);
    assert_int_equal(answer_page(w, &page, page.cookie, entered), 403);
    assert_contains(buf_str(&w->x.text), "The code was used");
    assert_null(strstr(buf_str(&w->x.text), "?code="));
}

static void half_an_origin_is_not_our_page(void **state)
{
    static const char *const bad[] = {"https:",
                                      "https:/",
                                      "https://",
                                      "https://sandbox",
                                      "null",
                                      BASE ".evil",
                                      "http://sandbox.example.org"};
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        w->origin = bad[i];
        if (post(w, authorize_serve, FORM, "request=x") != 403)
            fail_msg("%s: %d", bad[i], w->x.status);
    }
    w->origin = BASE;
    assert_int_equal(post(w, authorize_serve, FORM, "request=x"), 400);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
    TEST(a_code_and_a_refresh_token_get_tokens),
    TEST(what_cannot_be_granted_is_refused_as_the_rfc_says),
    TEST(either_token_of_a_grant_ends_it_and_others_end_nothing),
    TEST(a_client_registers_and_nothing_is_kept_of_it),
    TEST(without_its_state_the_server_has_failed),
    TEST(what_the_operator_allows_gets_a_code_for_the_client),
    TEST(who_guesses_the_passphrase_is_told_to_wait),
    TEST(a_code_of_the_administrator_is_barred_by_no_wrong_passphrase),
    TEST(half_an_origin_is_not_our_page),
};
UNIT_TESTS(tests)
