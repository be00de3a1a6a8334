/* The builtin authorization server without a web server: forms, URIs, clients, codes, refresh
 * tokens, wrong passphrases, the signing key, and what its pages say. */
#include "config.h"

#include "common/base/b64.h"
#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/tools.h"
#include "fcgi/oauth/server/attempts.h"
#include "fcgi/oauth/server/clients.h"
#include "fcgi/oauth/server/documents.h"
#include "fcgi/oauth/server/form.h"
#include "fcgi/oauth/server/grant_list.h"
#include "fcgi/oauth/server/grants.h"
#include "fcgi/oauth/server/once.h"
#include "fcgi/oauth/server/page.h"
#include "fcgi/oauth/server/passphrase.h"
#include "fcgi/oauth/server/signing_key.h"
#include "fcgi/oauth/server/uri.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/resource.h>
#include <time.h>

#define NOW      1800000000
#define BASE     "https://sandbox.example.org/path"
#define REDIRECT "https://client.example.org/cb"
#define VERIFIER "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" /* of RFC 7636, appendix B */
#define FITTING  "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

static const uint8_t secret[STORE_SECRET_LEN] = {7, 8, 9};

/* ---- a folder, and a state without one ---- */

static int make_folder(char path[PATH_MAX])
{
    unit_make_folder(path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(mkdirat(fd, STORE_PUBLIC, 0700), 0);
    return fd;
}

static json_t *new_state(void)
{
    return json_pack("{s:{}, s:{}, s:{}, s:{}, s:{}}", "clients", "documents", "codes", "grants",
                     "attempts");
}

static void make_code(json_t *state, int64_t now, char code[CODE_LEN + 1])
{
    const struct grant_terms terms = {.client = "c1",
                                      .client_name = "A client",
                                      .host = "client.example.org",
                                      .tenant = "alice",
                                      .scope = "run files",
                                      .resource = BASE "/mcp"};
    struct err e;

    assert_works(grant_allow(state, &terms, REDIRECT, FITTING, now, code, &e), e);
}

static struct grant_claim with_code(const char *code)
{
    return (struct grant_claim){
        .code = code, .redirect = REDIRECT, .verifier = VERIFIER, .client = "c1"};
}

static struct grant_claim with_refresh(const char *token)
{
    return (struct grant_claim){.refresh_token = token, .client = "c1"};
}

static void redeem(json_t *state, int64_t now, struct grant_issue *out)
{
    char code[CODE_LEN + 1];
    struct err e = ERR_INIT;

    make_code(state, now, code);
    struct grant_claim claim = with_code(code);
    assert_null(grant_redeem(state, secret, &claim, now, out, &e));
}

static bool is_revoked(json_t *state, const char *id)
{
    return grant_is_revoked(json_object_get(json_object_get(state, "grants"), id));
}

/* ---- forms ---- */

static int parse(const char *text, struct form *f, struct err *e)
{
    *e = ERR_INIT;
    return form_parse(text, strlen(text), f, e);
}

static void a_form_is_decoded(void **state)
{
    AUTO_FORM struct form f = {0};
    AUTO_BUF struct buf back = BUF_INIT(100);
    struct err e;

    (void)state;
    assert_works(parse("a=1&b=x%26y+z%c3%A9&empty=&&flag", &f, &e), e);
    assert_string_equal(form_get(&f, "a"), "1");
    assert_string_equal(form_get(&f, "b"), "x&y z\xc3\xa9");
    assert_null(form_get(&f, "empty"));
    assert_null(form_get(&f, "flag"));
    assert_null(form_get(&f, "A"));
    form_add(&back, '?', "b", form_get(&f, "b"));
    assert_string_equal(buf_str(&back), "?b=x%26y%20z%C3%A9");
}

static void malformed_and_large_forms_are_refused(void **state)
{
    static const char *const bad[] = {
        "a=%",   "a=%4",    "a=%zz",    "a=%00", "a=%0a", "a=%ff", "a=%c3x",
        "%zz=a", "a=1&a=1", "a=1&b&a=", "a=\n",  "a=%7f", "%00",   "a=b%0d%0aX: y"};
    AUTO_FREE char *large = mem_alloc(FORM_MAX + 2), *many = mem_strdup("");
    struct form f;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_fails(form_parse(bad[i], strlen(bad[i]), &f, &e), ERR_INVALID, e);
    assert_fails(form_parse("a\0b", 3, &f, &e), ERR_INVALID, e);
    memset(large, 'a', FORM_MAX + 1);
    assert_fails(form_parse(large, FORM_MAX + 1, &f, &e), ERR_LIMIT, e);
    for (int i = 0; i <= FORM_FIELDS_MAX; i++) {
        char *more = mem_printf("%s&f%d=1", many, i);
        free(many);
        many = more;
    }
    assert_fails(form_parse(many, strlen(many), &f, &e), ERR_LIMIT, e);
    assert_fails(parse("client_id=%zz", &f, &e), ERR_INVALID, e);
    assert_contains(e.text, "client_id");
    assert_fails(parse("<b>=%zz", &f, &e), ERR_INVALID, e);
    assert_null(strchr(e.text, '<'));
}

/* ---- URIs ---- */

static void redirect_uris_that_may_be_registered(void **state)
{
    static const char *const good[] = {"https://claude.ai/api/mcp/auth_callback",
                                       "https://a.example:8443/x?y=z",
                                       "http://127.0.0.1/cb",
                                       "http://[::1]:1/",
                                       "http://localhost:33418",
                                       "cursor://anysphere.cursor-mcp/oauth/callback",
                                       "com.example.app://x"};
    static const char *const bad[] = {"",
                                      "x",
                                      "https:",
                                      "https://",
                                      "https:///x",
                                      "https:x",
                                      "http://client.example.org/",
                                      "http://127.0.0.2/",
                                      "http://localhost.example.org/",
                                      "http://127.0.0.1@evil.example/",
                                      "http://127.0.0.1:/",
                                      "http://127.0.0.1:123456/",
                                      "http://[::1/",
                                      "https://a b/",
                                      "https://a/\\x",
                                      "https://a\\@b/",
                                      "https://u:p@a/",
                                      "https://a/#f",
                                      "https://a/\xc3\xa9",
                                      "HTTPS://a/",
                                      "javascript://x/%0aalert(1)",
                                      "ms-msdt://x",
                                      "ms-officecmd://x",
                                      "search-ms://x",
                                      "shell://x",
                                      "ssh://x",
                                      "itms-services://x",
                                      "data://x",
                                      "file:///etc/passwd",
                                      "vbscript://x",
                                      "view-source://x",
                                      "blob://x",
                                      "about://blank",
                                      "relative",
                                      "https://a/\n",
                                      "://x",
                                      "1a://x"};
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_works(redirect_check(good[i], &e), e);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_fails(redirect_check(bad[i], &e), ERR_INVALID, e);
}

static void loopback_redirects_have_any_port(void **state)
{
    (void)state;
    assert_true(redirect_matches("https://a/cb", "https://a/cb"));
    assert_true(redirect_matches("http://127.0.0.1/cb", "http://127.0.0.1:4711/cb"));
    assert_true(redirect_matches("http://[::1]:1/cb?a", "http://[::1]:2/cb?a"));
    assert_true(redirect_matches("http://localhost:1234/cb", "http://localhost/cb"));
    assert_true(redirect_matches("http://127.0.0.1/cb", "http://127.0.0.1:65535/cb"));
    assert_false(redirect_matches("https://a/cb", "https://a:443/cb"));
    assert_false(redirect_matches("https://a/cb", "https://a/cb/"));
    assert_false(redirect_matches("https://a/cb", "https://A/cb"));
    assert_false(redirect_matches("http://127.0.0.1/cb", "http://localhost/cb"));
    assert_false(redirect_matches("http://127.0.0.1/cb", "http://127.0.0.1/cb2"));
    assert_false(redirect_matches("http://127.0.0.1/cb", "https://127.0.0.1/cb"));
    assert_false(redirect_matches("http://127.0.0.1/cb", "http://127.0.0.1:1@evil/cb"));
    assert_false(redirect_matches("http://127.0.0.1/cb", "http://127.0.0.2:1/cb"));
    assert_false(redirect_matches("http://127.0.0.1/cb", "http://127.0.0.1.evil/cb"));
    assert_false(redirect_matches("http://127.0.0.1/cb", "http://127.0.0.1:123456/cb"));
    assert_false(redirect_matches("http://127.0.0.1/cb", "http://127.0.0.1:/cb"));
}

static void clients_urls_and_resources(void **state)
{
    static const char *const good[] = {"", "/", "/mcp", "/mcp/", "/mcp/all"};
    static const char *const bad[] = {"x",      "/mcpx",  "/mcp/All",  "/mcp/a/b", "/mcp?x",
                                      "/mcp#x", "/other", ".evil/mcp", "/mcp//"};
    struct err e = ERR_INIT;

    (void)state;
    assert_true(client_url_is_valid("https://claude.ai/oauth/client.json"));
    assert_false(client_url_is_valid("https://claude.ai"));
    assert_false(client_url_is_valid("https://claude.ai/"));
    assert_false(client_url_is_valid("https://claude.ai/x#y"));
    assert_false(client_url_is_valid("https://user@claude.ai/x"));
    assert_false(client_url_is_valid("https://claude.ai:444/x"));
    assert_false(client_url_is_valid("http://claude.ai/x"));
    assert_false(client_url_is_valid("https://claude.ai/a/../b"));
    assert_false(client_url_is_valid("https://claude.ai/%2E%2e/b"));
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        AUTO_FREE char *uri = mem_printf("HTTPS://Sandbox.example.org/path%s", good[i]);
        AUTO_BUF struct buf out = BUF_INIT(URI_MAX);
        assert_works(resource_read(BASE, uri, &out, &e), e);
        assert_memory_equal(buf_str(&out), BASE, strlen(BASE));
        assert_true(out.data[out.len - 1] != '/');
    }
    for (size_t i = 0; i < ARRAY_LEN(bad) - 1; i++) {
        AUTO_FREE char *uri = mem_printf(BASE "%s", bad[i]);
        AUTO_BUF struct buf out = BUF_INIT(URI_MAX);
        assert_fails(resource_read(BASE, uri, &out, &e), ERR_INVALID, e);
    }
}

/* ---- clients ---- */

static json_t *metadata(const char *name)
{
    return json_pack("{s:s, s:[s]}", "client_name", name, "redirect_uris", REDIRECT);
}

/* The id of a client that has registered with the secret; on the heap. */
static char *registered(const json_t *said)
{
    const char *code;
    struct err e = ERR_INIT;
    json_auto_t *answer = client_register(secret, said, NOW, &code, &e);

    assert_non_null(answer);
    return mem_strdup(json_get_string(answer, "client_id"));
}

static void an_id_holds_its_client_and_nobody_else_can_make_one(void **state)
{
    static const uint8_t other[STORE_SECRET_LEN] = {2};
    char path[PATH_MAX];
    AUTO_FD int folder = make_folder(path);
    json_auto_t *said = metadata("Ä \"client\"");
    AUTO_FREE char *id = registered(said), *second = registered(said);
    struct client found;
    struct err e = ERR_INIT;

    (void)state;
    assert_string_not_equal(id, second);
    assert_works(client_find(folder, -1, secret, id, &found, &e), e);
    assert_string_equal(found.name, "Ä \"client\"");
    assert_true(client_has_redirect(&found, REDIRECT));
    assert_false(client_has_redirect(&found, "https://evil.example/cb"));
    assert_false(found.published);
    client_clear(&found);
    assert_fails(client_find(folder, -1, other, id, &found, &e), ERR_NOT_FOUND, e);
    for (size_t i = 0; id[i]; i++) {
        AUTO_FREE char *forged = mem_strdup(id);
        forged[i] = forged[i] == 'A' ? 'B' : 'A';
        assert_fails(client_find(folder, -1, secret, forged, &found, &e), ERR_NOT_FOUND, e);
        forged[i] = '\0';
        assert_fails(client_find(folder, -1, secret, forged, &found, &e), ERR_NOT_FOUND, e);
    }
    unit_remove_tree(path);
}

static void the_longest_metadata_fits_an_id(void **state)
{
    json_auto_t *said = metadata(""), *list = json_array();
    char name[CLIENT_NAME_MAX + 1], uri[CLIENT_REDIRECTS_LEN / CLIENT_REDIRECTS_MAX + 1];
    const char *code;
    struct err e = ERR_INIT;

    (void)state;
    memset(name, '"', CLIENT_NAME_MAX);
    name[CLIENT_NAME_MAX] = '\0';
    memset(uri, 'a', sizeof uri - 1);
    uri[sizeof uri - 1] = '\0';
    memcpy(uri, "https://", 8);
    for (int i = 0; i < CLIENT_REDIRECTS_MAX; i++)
        json_array_append_new(list, json_string(uri));
    json_object_set_new(said, "client_name", json_string(name));
    json_object_set(said, "redirect_uris", list);
    AUTO_FREE char *id = registered(said);
    assert_true(strlen(id) <= CLIENT_ID_MAX);
    json_array_set_new(list, 0,
                       json_string("https://a/and/some/more/than/that/which/is/too/long/"
                                   "and/longer/than/before/and/longer/than/that/and/still/"
                                   "longer/and/longer/and/longer"));
    assert_null(client_register(secret, said, NOW, &code, &e));
    assert_string_equal(code, "invalid_redirect_uri");
}

static void clients_of_an_earlier_version_stay_registered(void **state)
{
    char path[PATH_MAX];
    AUTO_FD int folder = make_folder(path);
    AUTO_STORE struct store s = STORE_INIT;
    struct client found;
    struct err e = ERR_INIT;

    (void)state;
    assert_works(store_begin(folder, &s, &e), e);
    json_object_set_new(
        json_object_get(s.state, "clients"), "0123456789abcdef",
        json_pack("{s:s, s:[s], s:i}", "name", "Old", "redirects", REDIRECT, "made", 1));
    assert_works(store_save(&s, &e), e);
    store_end(&s);
    assert_works(client_find(folder, -1, secret, "0123456789abcdef", &found, &e), e);
    assert_string_equal(found.name, "Old");
    client_clear(&found);
    assert_fails(client_find(folder, -1, secret, "0123456789abcdee", &found, &e), ERR_NOT_FOUND, e);
    unit_remove_tree(path);
}

static void metadata_of_clients_is_checked(void **state)
{
    static const char *const bad[] = {
        "[]",
        "{}",
        "{\"redirect_uris\":[]}",
        "{\"redirect_uris\":\"https://a/\"}",
        "{\"redirect_uris\":[7]}",
        "{\"redirect_uris\":[\"https://a/\\u0000\"]}",
        "{\"redirect_uris\":[\"https://a/\"],\"client_name\":7}",
        "{\"redirect_uris\":[\"https://a/\"],\"client_name\":\"a\\nb\"}",
        "{\"redirect_uris\":[\"https://a/\",\"javascript://x\"]}"};
    struct err e = ERR_INIT;
    const char *code;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        json_auto_t *said = json_parse(bad[i], strlen(bad[i]), 8, &e);
        assert_non_null(said);
        assert_null(client_read_metadata(said, &code, &e));
        assert_non_null(code);
    }
    json_auto_t *unnamed = json_pack("{s:[s]}", "redirect_uris", REDIRECT);
    json_auto_t *read = client_read_metadata(unnamed, &code, &e);
    assert_string_equal(json_get_string(read, "name"), "client.example.org");
}

static void a_document_must_name_its_own_address(void **state)
{
    static const char url[] = "https://client.example.org/c.json";
    AUTO_FREE char *good = mem_printf("{\"client_id\":\"%s\",\"client_name\":\"C\","
                                      "\"redirect_uris\":[\"" REDIRECT "\"]}",
                                      url);
    struct err e = ERR_INIT;
    json_auto_t *read = client_read_document(url, good, strlen(good), &e);

    (void)state;
    assert_string_equal(json_get_string(read, "name"), "C");
    assert_null(client_read_document("https://client.example.org/d.json", good, strlen(good), &e));
    assert_null(client_read_document(url, good, strlen(good) - 1, &e));
    assert_null(client_read_document(url, "null", 4, &e));
    assert_null(client_read_document(url, "<html>", 6, &e));
}

/* ---- codes ---- */

static void pkce_is_that_of_the_rfc(void **state)
{
    json_auto_t *all = new_state();
    struct grant_issue issue;

    (void)state;
    redeem(all, NOW, &issue);
    assert_string_equal(issue.scope, "run files");
    assert_string_equal(json_get_string(issue.grant, "tenant"), "alice");
    assert_true(grant_of_token(secret, issue.refresh_token, issue.id));
}

static void a_code_is_for_one_use_one_client_one_place_and_a_minute(void **state)
{
    static const struct {
        const char *client, *redirect, *verifier, *resource, *error;
        int later_s;
        bool spent; /* nothing else can be done with the code afterwards */
    } cases[] = {
        {"c2", REDIRECT, VERIFIER, NULL, "invalid_grant", 0, false},
        {"c1", REDIRECT "/", VERIFIER, NULL, "invalid_grant", 0, true},
        {"c1", REDIRECT, FITTING, NULL, "invalid_grant", 0, true},
        {"c1", REDIRECT, VERIFIER, BASE "/mcp/all", "invalid_target", 0, true},
        {"c1", REDIRECT, VERIFIER, NULL, "invalid_grant", CODE_S + 1, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *all = new_state();
        char code[CODE_LEN + 1];
        struct grant_issue issue;
        struct err e = ERR_INIT;
        make_code(all, NOW, code);
        const struct grant_claim claim = {.code = code,
                                          .client = cases[i].client,
                                          .redirect = cases[i].redirect,
                                          .verifier = cases[i].verifier,
                                          .resource = cases[i].resource};
        struct grant_claim right = with_code(code);
        const char *error = grant_redeem(all, secret, &claim, NOW + cases[i].later_s, &issue, &e);
        assert_non_null(error);
        assert_string_equal(error, cases[i].error);
        error = grant_redeem(all, secret, &right, NOW, &issue, &e);
        assert_int_equal(error != NULL, cases[i].spent);
    }
}

static void a_code_used_twice_revokes(void **state)
{
    json_auto_t *all = new_state();
    char code[CODE_LEN + 1];
    struct grant_issue issue, again;
    struct err e = ERR_INIT;

    (void)state;
    make_code(all, NOW, code);
    struct grant_claim claim = with_code(code);
    assert_null(grant_redeem(all, secret, &claim, NOW, &issue, &e));
    assert_string_equal(grant_redeem(all, secret, &claim, NOW + 1, &again, &e), "invalid_grant");
    assert_true(is_revoked(all, issue.id));
    claim = with_refresh(issue.refresh_token);
    assert_string_equal(grant_refresh(all, secret, &claim, NOW + 2, &again, &e), "invalid_grant");
}

static void a_code_that_nobody_redeems_leaves_no_grant(void **state)
{
    json_auto_t *all = new_state();
    char code[CODE_LEN + 1];

    (void)state;
    make_code(all, NOW, code);
    grants_sweep(all, NOW + CODE_S);
    assert_int_equal(json_object_size(json_object_get(all, "grants")), 1);
    grants_sweep(all, NOW + CODE_S + 1);
    assert_int_equal(json_object_size(json_object_get(all, "grants")), 0);
    assert_int_equal(json_object_size(json_object_get(all, "codes")), 0);
}

static void grants_are_bounded(void **state)
{
    json_auto_t *all = new_state();
    const struct grant_terms terms = {.client = "c1",
                                      .client_name = "C",
                                      .host = "h",
                                      .tenant = "t",
                                      .scope = "run",
                                      .resource = BASE};
    char code[CODE_LEN + 1];
    struct err e;

    (void)state;
    for (int i = 0; i < GRANTS_MAX; i++)
        make_code(all, NOW, code);
    assert_fails(grant_allow(all, &terms, REDIRECT, FITTING, NOW, code, &e), ERR_LIMIT, e);
    assert_works(grant_allow(all, &terms, REDIRECT, FITTING, NOW + CODE_S + 1, code, &e), e);
}

/* ---- refresh tokens ---- */

static void refresh_tokens_rotate_and_a_used_one_revokes(void **state)
{
    json_auto_t *all = new_state();
    struct grant_issue first, second, third;
    struct err e = ERR_INIT;

    (void)state;
    redeem(all, NOW, &first);
    struct grant_claim claim = with_refresh(first.refresh_token);
    assert_null(grant_refresh(all, secret, &claim, NOW + 10, &second, &e));
    assert_string_not_equal(first.refresh_token, second.refresh_token);
    claim = with_refresh(second.refresh_token);
    claim.scope = "files";
    assert_null(grant_refresh(all, secret, &claim, NOW + 20, &third, &e));
    assert_string_equal(third.scope, "files");
    claim = with_refresh(first.refresh_token);
    assert_string_equal(grant_refresh(all, secret, &claim, NOW + 30, &second, &e), "invalid_grant");
    assert_true(is_revoked(all, first.id));
    claim = with_refresh(third.refresh_token);
    assert_string_equal(grant_refresh(all, secret, &claim, NOW + 40, &second, &e), "invalid_grant");
}

static void refresh_tokens_that_are_not_ours_end_nothing(void **state)
{
    json_auto_t *all = new_state();
    struct grant_issue issue, again;
    struct err e = ERR_INIT;
    uint8_t other[STORE_SECRET_LEN] = {1};
    char id[GRANT_ID_LEN + 1];

    (void)state;
    redeem(all, NOW, &issue);
    for (size_t i = 0; i < strlen(issue.refresh_token); i++) {
        AUTO_FREE char *text = mem_strdup(issue.refresh_token);
        text[i] = text[i] == '1' ? '2' : '1';
        struct grant_claim claim = with_refresh(text);
        assert_string_equal(grant_refresh(all, secret, &claim, NOW, &again, &e), "invalid_grant");
        text[i] = '\0';
        assert_false(grant_of_token(secret, text, id));
    }
    assert_false(grant_of_token(other, issue.refresh_token, id));
    struct grant_claim claim = with_refresh(issue.refresh_token);
    claim.client = "c2";
    assert_string_equal(grant_refresh(all, secret, &claim, NOW, &again, &e), "invalid_grant");
    claim.client = "c1";
    claim.scope = "run network";
    assert_string_equal(grant_refresh(all, secret, &claim, NOW, &again, &e), "invalid_scope");
    claim.scope = NULL;
    claim.resource = "https://elsewhere";
    assert_string_equal(grant_refresh(all, secret, &claim, NOW, &again, &e), "invalid_target");
    claim.resource = NULL;
    assert_false(is_revoked(all, issue.id));
    assert_null(grant_refresh(all, secret, &claim, NOW, &again, &e));
}

static void a_grant_ends_when_it_is_not_used(void **state)
{
    json_auto_t *all = new_state();
    struct grant_issue issue, again;
    struct err e = ERR_INIT;

    (void)state;
    redeem(all, NOW, &issue);
    struct grant_claim claim = with_refresh(issue.refresh_token);
    assert_string_equal(grant_refresh(all, secret, &claim, NOW + GRANT_IDLE_S + 1, &again, &e),
                        "invalid_grant");
    assert_null(grant_refresh(all, secret, &claim, NOW + GRANT_IDLE_S, &again, &e));
    grants_sweep(all, NOW + 2 * GRANT_IDLE_S + 1);
    assert_int_equal(json_object_size(json_object_get(all, "grants")), 0);
}

/* ---- what is kept ---- */

static void revoked_grants_are_listed_until_their_tokens_have_expired(void **state)
{
    char path[PATH_MAX];
    AUTO_FD int folder = make_folder(path);
    struct grant_issue issue;
    struct store s;
    struct err e;

    (void)state;
    assert_works(store_begin(folder, &s, &e), e);
    redeem(s.state, NOW, &issue);
    assert_true(grant_revoke(s.state, issue.id, NOW));
    assert_false(grant_revoke(s.state, issue.id, NOW));
    assert_false(grant_revoke(s.state, "0123456789abcdef", NOW));
    assert_works(grants_save(&s, NOW, &e), e);
    AUTO_BUF struct buf text = BUF_INIT(1000), later = BUF_INIT(1000);
    assert_works(store_read(folder, STORE_REVOKED, &text, &e), e);
    assert_contains(buf_str(&text), issue.id);
    assert_works(grants_save(&s, NOW + ACCESS_TOKEN_S + 100, &e), e);
    assert_works(store_read(folder, STORE_REVOKED, &later, &e), e);
    assert_string_equal(buf_str(&later), "[]");
    store_end(&s);
    unit_remove_tree(path);
}

static void an_administrator_lists_and_revokes(void **state)
{
    char path[PATH_MAX];
    AUTO_FD int folder = make_folder(path);
    int64_t now = (int64_t)time(NULL);
    struct grant_issue one, two;
    struct store s;
    struct err e;

    (void)state;
    assert_works(store_begin(folder, &s, &e), e);
    redeem(s.state, now, &one);
    redeem(s.state, now, &two);
    assert_works(grants_save(&s, now, &e), e);
    store_end(&s);
    json_auto_t *all = grant_list(folder, "alice", &e), *none = grant_list(folder, "bob", &e);
    assert_int_equal(json_array_size(all), 2);
    assert_int_equal(json_array_size(none), 0);
    json_auto_t *gone = grant_list_revoke(folder, one.id, NULL, &e);
    assert_int_equal(json_array_size(gone), 1);
    json_auto_t *rest = grant_list_revoke(folder, NULL, "alice", &e);
    assert_int_equal(json_array_size(rest), 1);
    unit_remove_tree(path);
}

static void a_damaged_state_is_an_error_and_stays(void **state)
{
    char path[PATH_MAX];
    AUTO_FD int folder = make_folder(path);
    AUTO_BUF struct buf text = BUF_INIT(100);
    struct store s;
    struct err e;

    (void)state;
    assert_works(store_write(folder, STORE_STATE, "{\"clients\":", 11, &e), e);
    assert_fails(store_begin(folder, &s, &e), ERR_IO, e);
    assert_contains(e.text, STORE_STATE);
    assert_works(store_read(folder, STORE_STATE, &text, &e), e);
    assert_string_equal(buf_str(&text), "{\"clients\":");
    unit_remove_tree(path);
}

static void what_cannot_be_written_whole_leaves_the_state_as_it_is(void **state)
{
    char path[PATH_MAX];
    AUTO_FD int folder = make_folder(path);
    AUTO_BUF struct buf text = BUF_INIT(100);
    struct rlimit before;
    struct err e;

    (void)state;
    assert_works(store_write(folder, STORE_STATE, "old", 3, &e), e);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){4, before.rlim_max});
    int rc = store_write(folder, STORE_STATE, "longer", 6, &e);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(rc, -1);
    assert_contains(e.text, STORE_STATE);
    assert_works(store_read(folder, STORE_STATE, &text, &e), e);
    assert_string_equal(buf_str(&text), "old");
    unit_remove_tree(path);
}

static void one_document_is_fetched_at_a_time(void **state)
{
    char path[PATH_MAX];
    AUTO_FD int folder = make_folder(path);
    struct err e = ERR_INIT;
    AUTO_FD int fetch = store_lock_fetch(folder, &e);
    AUTO_FD int other = store_lock(folder, &e); /* the folder's is another lock */

    (void)state;
    assert_true(fetch >= 0);
    assert_true(other >= 0);
    assert_fails(store_lock_fetch(folder, &e), ERR_BUSY, e);
    auto_close_fd(&fetch);
    fetch = store_lock_fetch(folder, &e);
    assert_true(fetch >= 0);
    unit_remove_tree(path);
}

/* ---- the passphrase ---- */

static void the_passphrase_is_kept_as_its_hash(void **state)
{
    char path[PATH_MAX];
    AUTO_FD int folder = make_folder(path);
    AUTO_BUF struct buf text = BUF_INIT(1000);
    bool right;
    struct err e;

    (void)state;
    const struct settings wanted = {.access = {.builtin = true}}, other = {0};
    assert_fails(passphrase_need(&wanted, folder, &e), ERR_INVALID, e);
    assert_fails(passphrase_need(&wanted, -1, &e), ERR_INVALID, e);
    assert_works(passphrase_need(&other, -1, &e), e);
    assert_fails(passphrase_check(folder, "x", &right, &e), ERR_NOT_FOUND, e);
    assert_fails(passphrase_set(folder, "short", &e), ERR_INVALID, e);
    assert_fails(passphrase_set(folder, "aaaaaaaaaaaaaaaa", &e), ERR_INVALID, e);
    assert_works(passphrase_set(folder, "correct horse battery", &e), e);
    assert_works(passphrase_need(&wanted, folder, &e), e);
    assert_works(store_read(folder, STORE_PASSPHRASE, &text, &e), e);
    assert_contains(buf_str(&text), "$argon2id$v=19$m=65536,t=3,p=1$");
    assert_works(passphrase_check(folder, "correct horse battery", &right, &e), e);
    assert_true(right);
    assert_works(passphrase_check(folder, "correct horse batterY", &right, &e), e);
    assert_false(right);
    assert_works(passphrase_check(folder, "", &right, &e), e);
    assert_false(right);
    unit_remove_tree(path);
}

static void wrong_passphrases_make_wait(void **state)
{
    json_auto_t *tries = json_object();
    int64_t now = NOW, waited[10];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(attempts_begin(tries, "192.0.2.1", now), 0);
    for (size_t i = 0; i < ARRAY_LEN(waited); i++) {
        waited[i] = attempts_begin(tries, "192.0.2.1", now);
        assert_true(waited[i] > 0);
        now += waited[i];
        assert_int_equal(attempts_begin(tries, "192.0.2.1", now), 0);
    }
    for (size_t i = 1; i < ARRAY_LEN(waited); i++)
        assert_true(waited[i] >= waited[i - 1]);
    assert_int_equal(waited[0], 1);
    assert_int_equal(waited[5], 32);
    assert_int_equal(attempts_begin(tries, "192.0.2.2", now), 0);
    attempts_forget(tries, "192.0.2.1");
    assert_int_equal(attempts_begin(tries, "192.0.2.1", now), 0);
}

static void a_network_of_64_bits_counts_as_one_address(void **state)
{
    static const struct {
        const char *first, *second;
        bool one;
    } cases[] = {
        {"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
        {"2001:db8:1:2::1", "2001:db8:1:3::1", false},
        {"192.0.2.1", "192.0.2.2", false},
        {"192.0.2.1", "::ffff:192.0.2.1", true},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
        {"", "unknown", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *tries = json_object();
        for (int n = 0; n < 4; n++)
            assert_int_equal(attempts_begin(tries, cases[i].first, NOW), 0);
        if ((attempts_begin(tries, cases[i].second, NOW) > 0) != cases[i].one)
            fail_msg("%s and %s", cases[i].first, cases[i].second);
        attempts_forget(tries, cases[i].first);
        assert_int_equal(attempts_begin(tries, cases[i].first, NOW), 0);
    }
}

static void a_code_counts_once_and_for_ten_minutes(void **state)
{
    static const char *const bad[] = {"", "once-", "once-upon-a-time-in-the-west!",
                                      "once-0123456789abcdef0123456G"};
    json_auto_t *once = json_object();
    char code[ONCE_LEN + 1], late[ONCE_LEN + 1], kept[ONCE_LEN + 1];
    char first_of_eight[ONCE_LEN + 1];

    (void)state;
    once_make(once, NOW, code);
    once_make(once, NOW + 1, late);
    assert_true(once_is_code(code));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(once_is_code(bad[i]));
    assert_null(json_object_get(once, code)); /* but its hash */
    assert_true(once_take(once, code, NOW + ONCE_S));
    assert_false(once_take(once, code, NOW + ONCE_S));
    assert_false(once_take(once, late, NOW + 2 + ONCE_S));
    once_make(once, NOW, code);
    for (int i = 0; i < 8; i++)
        once_make(once, NOW + 1 + i, i == 0 ? first_of_eight : kept);
    assert_int_equal(json_object_size(once), 8);
    assert_false(once_take(once, code, NOW + 10)); /* the oldest */
    assert_true(once_take(once, kept, NOW + 10));
    once_make(once, NOW + 9, kept);
    assert_true(once_take(once, first_of_eight, NOW + 10));
}

static void guesses_from_everywhere_are_bounded(void **state)
{
    json_auto_t *tries = json_object();
    int good = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        AUTO_FREE char *address = mem_printf("192.0.2.%d", i);
        good += attempts_begin(tries, address, NOW) == 0;
    }
    assert_int_equal(good, 30);
    for (int i = 0; i < 1000; i++) {
        AUTO_FREE char *address = mem_printf("2001:db8::%d", i);
        attempts_begin(tries, address, NOW + 60 * i);
    }
    assert_true(json_object_size(tries) <= 257);
    assert_int_equal(attempts_begin(tries, "192.0.2.1", NOW + 100000), 0);
    /* A clock that goes back locks nobody out for ever. */
    assert_true(attempts_begin(tries, "192.0.2.1", NOW) <= 900);
}

/* ---- tokens ---- */

static void a_token_is_what_the_key_has_signed(void **state)
{
    char path[PATH_MAX];
    AUTO_FD int folder = make_folder(path);
    AUTO_BUF struct buf token = BUF_INIT(4000), head = BUF_INIT(1000), jwks = BUF_INIT(2000);
    json_auto_t *claims = json_pack("{s:s}", "gid", "0123456789abcdef");
    struct err e = ERR_INIT;

    (void)state;
    struct signing_key *k = signing_key_open(folder, &e), *same = signing_key_open(folder, &e);
    assert_non_null(k);
    assert_works(signing_key_sign(k, claims, &token, &e), e);
    json_auto_t *read = signing_key_verify(same, buf_str(&token));
    assert_true(json_equal(read, claims));
    assert_works(b64url_decode(token.data, strcspn(token.data, "."), &head), e);
    assert_contains(buf_str(&head), "\"typ\":\"at+jwt\"");
    assert_contains(buf_str(&head), "\"alg\":\"ES256\"");
    assert_works(store_read(folder, STORE_JWKS, &jwks, &e), e);
    assert_null(strstr(buf_str(&jwks), "\"d\""));
    for (size_t i = 0; i + 2 < token.len; i++) { /* the last character has unused bits */
        char kept = token.data[i];
        token.data[i] = kept == 'A' ? 'B' : 'A';
        assert_null(signing_key_verify(k, token.data));
        token.data[i] = kept;
    }
    char *signature = strrchr(token.data, '.') + 1;
    AUTO_FREE char *ours = mem_strdup(signature);
    memset(signature, 'A', strlen(signature)); /* zeros, which a careless library takes */
    assert_null(signing_key_verify(k, token.data));
    assert_int_equal(ERR_peek_error(), 0); /* its complaint is not left for the next call */
    memcpy(signature, ours, strlen(ours));
    assert_null(signing_key_verify(k, ""));
    assert_null(signing_key_verify(k, ".."));
    assert_int_equal(unlinkat(folder, STORE_KEY, 0), 0);
    struct signing_key *other = signing_key_open(folder, &e);
    assert_null(signing_key_verify(other, buf_str(&token)));
    assert_works(store_write(folder, STORE_KEY, "no key", 6, &e), e);
    assert_null(signing_key_open(folder, &e));
    assert_contains(e.text, STORE_KEY);
    signing_key_free(k);
    signing_key_free(same);
    signing_key_free(other);
    unit_remove_tree(path);
}

/* ---- pages ---- */

static void a_page_shows_what_it_is_given_as_text(void **state)
{
    static const char bad[] = "<script>\"'&{{proof}}";
    AUTO_BUF struct buf page = BUF_INIT(PAGE_MAX), headers = BUF_INIT(4000);
    const struct consent c = {.client = bad,
                              .redirect = bad,
                              .resource = bad,
                              .tenant = bad,
                              .document = bad,
                              .scopes = SCOPE_ALL,
                              .problem = bad,
                              .request = bad,
                              .proof = "the proof",
                              .made = "1"};

    (void)state;
    page_consent(&c, &page);
    assert_true(buf_ok(&page));
    assert_null(strstr(buf_str(&page), "<script"));
    assert_contains(buf_str(&page), "&lt;script&gt;&quot;&#39;&amp;{{proof}}");
    assert_contains(buf_str(&page), "run programs in sandboxes");
    assert_contains(buf_str(&page), "delete whole conversations");
    buf_reset(&page);
    page_note(bad, bad, "https://a/?x=\"><script>", bad, true, &page);
    assert_null(strstr(buf_str(&page), "<script"));
    page_headers(&headers);
    assert_contains(buf_str(&headers), "frame-ancestors 'none'");
}

/* ---- the process that fetches documents ---- */

static void the_process_for_documents_holds_no_descriptor_of_the_server(void **state)
{
    const struct account account = {geteuid() == 0 ? 65534 : geteuid(),
                                    geteuid() == 0 ? 65534 : getegid()};
    AUTO_BUF struct buf out = BUF_INIT(1000);
    struct err e = ERR_INIT;
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0); /* as the folder of keys is open */
    AUTO_FD int ours = ends[0];
    AUTO_FD int fetch = documents_start(&account, &e);
    assert_true(fetch >= 0);
    close(ends[1]);
    struct pollfd p = {.fd = ours};
    assert_int_equal(poll(&p, 1, 20000), 1);
    assert_int_equal(p.revents, POLLHUP);
    assert_fails(document_fetch(fetch, "https://", &out, &e), ERR_NOT_FOUND, e); /* it answers */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_form_is_decoded),
    cmocka_unit_test(malformed_and_large_forms_are_refused),
    cmocka_unit_test(redirect_uris_that_may_be_registered),
    cmocka_unit_test(loopback_redirects_have_any_port),
    cmocka_unit_test(clients_urls_and_resources),
    cmocka_unit_test(an_id_holds_its_client_and_nobody_else_can_make_one),
    cmocka_unit_test(the_longest_metadata_fits_an_id),
    cmocka_unit_test(clients_of_an_earlier_version_stay_registered),
    cmocka_unit_test(metadata_of_clients_is_checked),
    cmocka_unit_test(a_document_must_name_its_own_address),
    cmocka_unit_test(pkce_is_that_of_the_rfc),
    cmocka_unit_test(a_code_is_for_one_use_one_client_one_place_and_a_minute),
    cmocka_unit_test(a_code_used_twice_revokes),
    cmocka_unit_test(a_code_that_nobody_redeems_leaves_no_grant),
    cmocka_unit_test(grants_are_bounded),
    cmocka_unit_test(refresh_tokens_rotate_and_a_used_one_revokes),
    cmocka_unit_test(refresh_tokens_that_are_not_ours_end_nothing),
    cmocka_unit_test(a_grant_ends_when_it_is_not_used),
    cmocka_unit_test(revoked_grants_are_listed_until_their_tokens_have_expired),
    cmocka_unit_test(an_administrator_lists_and_revokes),
    cmocka_unit_test(a_damaged_state_is_an_error_and_stays),
    cmocka_unit_test(what_cannot_be_written_whole_leaves_the_state_as_it_is),
    cmocka_unit_test(one_document_is_fetched_at_a_time),
    cmocka_unit_test(the_passphrase_is_kept_as_its_hash),
    cmocka_unit_test(wrong_passphrases_make_wait),
    cmocka_unit_test(a_network_of_64_bits_counts_as_one_address),
    cmocka_unit_test(a_code_counts_once_and_for_ten_minutes),
    cmocka_unit_test(guesses_from_everywhere_are_bounded),
    cmocka_unit_test(a_token_is_what_the_key_has_signed),
    cmocka_unit_test(a_page_shows_what_it_is_given_as_text),
    cmocka_unit_test(the_process_for_documents_holds_no_descriptor_of_the_server),
};
UNIT_TESTS(tests)
