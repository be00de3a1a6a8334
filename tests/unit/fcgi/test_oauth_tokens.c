/* Access tokens as hostile clients and issuers make them: each is refused with a reason, none is a
 * crash. The judge reads the keys from the files of builtin. */
#include "config.h"

#include "common/base/log.h"
#include "common/base/loop.h"
#include "common/base/mem.h"
#include "fcgi/oauth/grant.h"
#include "fcgi/oauth/judge.h"
#include "fcgi/oauth/oauth_settings.h"
#include "tests/unit/fcgi/oauth_signer.h"

#include <time.h>

#define BASE     "https://sandbox.example.org"
#define KIDS     "rs", "es", "ed"
#define TEXT_MAX 400

static const char *const algs[JWT_ALGS] = {"RS256", "ES256", "EdDSA"};
static const char *const kids[JWT_ALGS] = {KIDS};

struct world {
    char folder[PATH_MAX];
    int fd;
    EVP_PKEY *keys[JWT_ALGS], *stranger;
    struct settings s;
    struct judge *judge;
    struct loop loop;
    struct buf token;
    char text[VERDICT_TEXT_MAX];
    unsigned changes;
};

static struct world w;

static void on_changed(void *ctx)
{
    ((struct world *)ctx)->changes++;
}

static void put_file(const char *name, const char *text)
{
    AUTO_FREE char *path = mem_printf("%s/%s", w.folder, name);
    AUTO_FREE char *fresh = mem_printf("%s.new", path);

    unit_write_file(fresh, text, strlen(text));
    assert_int_equal(rename(fresh, path), 0);
}

static void put_keys(void)
{
    AUTO_BUF struct buf set = BUF_INIT(SIGNED_MAX);

    buf_add_str(&set, "{\"keys\":[");
    for (enum jwt_alg alg = JWT_RS256; alg < JWT_ALGS; alg++) {
        buf_add_str(&set, alg ? "," : "");
        signer_jwk(w.keys[alg], alg, kids[alg], ",\"use\":\"sig\"", &set);
    }
    buf_add_str(&set, "]}");
    put_file("jwks.json", buf_str(&set));
}

static void look_at_files(void)
{
    const struct timespec pause = {.tv_nsec = 300000000};
    struct err e = ERR_INIT;

    nanosleep(&pause, NULL);
    assert_works(judge_wait(w.judge, &w.loop, deadline_in_ms(0), NULL, &e), e);
}

static char *copy(const char *text)
{
    return mem_strdup(text);
}

static void settings_fill(struct settings *s)
{
    static char base[] = BASE, broker[] = "/run/x/broker.sock", empty[] = "";

    s->public_base_url = base;
    s->broker = broker;
    s->tenants_file = empty;
    s->oauth = copy("builtin");
    s->access.audience = copy("");
    s->access.tenant = copy("");
    s->access.scope_names = copy("");
    s->access.limits = copy("");
    s->access.introspect = copy("");
    s->access.client_file = copy("");
    tenants_init(&s->tenants);
}

static int setup(void **state)
{
    struct err e = ERR_INIT;

    (void)state;
    log_setup(LOG_LEVEL_ERROR, "test");
    unit_make_folder(w.folder);
    w.fd = open(w.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (enum jwt_alg alg = JWT_RS256; alg < JWT_ALGS; alg++)
        w.keys[alg] = signer_key(alg);
    w.stranger = signer_key(JWT_ES256);
    w.token = BUF_INIT(SIGNED_MAX);
    w.loop = LOOP_INIT;
    settings_fill(&w.s);
    put_keys();
    const struct oauth_context others = {.oauth = w.s.oauth,
                                         .public_base_url = w.s.public_base_url,
                                         .broker = w.s.broker,
                                         .tenants_file = w.s.tenants_file};
    assert_works(oauth_settings_check(&w.s.access, &others, &e), e);
    w.judge = judge_new(&w.s, w.fd, NULL, on_changed, &w, &e);
    assert_non_null(w.judge);
    assert_works(loop_init(&w.loop, NULL, &e), e);
    look_at_files();
    return 0;
}

static int teardown(void **state)
{
    char *const owned[] = {
        w.s.oauth,         w.s.access.check,       w.s.access.audience,   w.s.access.tenant,
        w.s.access.limits, w.s.access.scope_names, w.s.access.introspect, w.s.access.client_file};

    (void)state;
    judge_free(w.judge);
    loop_clear(&w.loop);
    for (enum jwt_alg alg = JWT_RS256; alg < JWT_ALGS; alg++)
        EVP_PKEY_free(w.keys[alg]);
    EVP_PKEY_free(w.stranger);
    buf_clear(&w.token);
    tenants_clear(&w.s.tenants);
    for (size_t i = 0; i < ARRAY_LEN(owned); i++)
        free(owned[i]);
    auto_close_fd(&w.fd);
    unit_remove_tree(w.folder);
    return 0;
}

static enum judged judge_text(const char *token)
{
    uint8_t digest[CRYPTO_SHA256_LEN];
    struct err e = ERR_INIT;

    assert_works(crypto_sha256(token, strlen(token), digest, &e), e);
    int64_t until_s = 0;

    return judge_token(w.judge, token, digest, true, w.text, &until_s);
}

static char *claims_with(const char *more)
{
    int64_t now = clock_unix_s();

    return mem_printf("{\"iss\":\"" BASE "\",\"aud\":\"" BASE
                      "/mcp\",\"sub\":\"operator\",\"tenant\":\"alice\",\"scope\":\"run files\","
                      "\"iat\":%jd,\"exp\":%jd%s}",
                      (intmax_t)now, (intmax_t)(now + 600), more);
}

static char *header_of(enum jwt_alg alg, const char *more)
{
    return mem_printf("{\"typ\":\"at+jwt\",\"alg\":\"%s\",\"kid\":\"%s\"%s}", algs[alg], kids[alg],
                      more);
}

static void refused(const char *token, const char *why)
{
    if (judge_text(token) != JUDGED_BAD || !strstr(w.text, why))
        fail_msg("\"%s\", not \"%s\": %.100s", w.text, why, token);
    for (const char *c = w.text; *c; c++)
        assert_true(*c >= ' ' && *c <= '~' && *c != '"' && *c != '\\');
}

static void good_tokens_name_tenant_and_scopes(void **state)
{
    (void)state;
    for (enum jwt_alg alg = JWT_RS256; alg < JWT_ALGS; alg++) {
        AUTO_FREE char *header = header_of(alg, ""), *claims = claims_with("");
        signer_sign(w.keys[alg], alg, header, claims, &w.token);
        assert_int_equal(judge_text(buf_str(&w.token)), JUDGED_GOOD);
        assert_string_equal(w.text, "alice run,files");
        assert_int_equal(judge_text(buf_str(&w.token)), JUDGED_GOOD); /* as it is kept */
    }
}

static void wrong_headers_are_refused(void **state)
{
    static const struct {
        const char *header, *why;
    } cases[] = {
        {"{\"typ\":\"at+jwt\",\"alg\":\"none\",\"kid\":\"es\"}", "must be signed with"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"None\",\"kid\":\"es\"}", "must be signed with"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"HS256\",\"kid\":\"rs\"}", "must be signed with"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"HS256\",\"kid\":\"es\"}", "must be signed with"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"ES384\",\"kid\":\"es\"}", "must be signed with"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"PS256\",\"kid\":\"rs\"}", "must be signed with"},
        {"{\"typ\":\"at+jwt\",\"alg\":256,\"kid\":\"es\"}", "must be signed with"},
        {"{\"typ\":\"at+jwt\",\"kid\":\"es\"}", "must be signed with"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":\"es\"}", "no such key"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"EdDSA\",\"kid\":\"es\"}", "no such key"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"ES256\",\"kid\":\"other\"}", "no such key"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"ES256\",\"kid\":\"../../etc/passwd\"}", "no such key"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"ES256\",\"kid\":\"\"}", "no such key"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"ES256\",\"kid\":{}}", "(kid)"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"ES256\",\"kid\":\"es\\u0000\"}", "(kid)"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"ES256\",\"kid\":\"es\",\"crit\":[\"exp\"]}", "crit"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"ES256\",\"kid\":\"es\",\"crit\":[]}", "crit"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"ES256\",\"kid\":\"es\",\"b64\":false}", "not encoded"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"ES256\",\"kid\":\"es\",\"zip\":\"DEF\"}", "compressed"},
        {"{\"typ\":\"JWT\",\"alg\":\"ES256\",\"kid\":\"es\"}", "not an access token"},
        {"{\"typ\":\"logout+jwt\",\"alg\":\"ES256\",\"kid\":\"es\"}", "not an access token"},
        {"{\"typ\":[\"at+jwt\"],\"alg\":\"ES256\",\"kid\":\"es\"}", "not an access token"},
        {"{\"alg\":\"ES256\",\"kid\":\"es\"}", "not an access token"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"none\",\"alg\":\"ES256\",\"kid\":\"es\"}",
         "not valid JSON"},
        {"{\"alg\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}", "not valid JSON"},
        {"{\"typ\":\"at+jwt\",\"alg\":\"ES256\"", "not valid JSON"},
    };
    AUTO_FREE char *claims = claims_with("");

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        signer_sign(w.keys[JWT_ES256], JWT_ES256, cases[i].header, claims, &w.token);
        refused(buf_str(&w.token), cases[i].why);
    }
}

/* jku, jwk, x5u and x5c would let a stranger bring the key along. */
static void keys_in_headers_are_not_looked_at(void **state)
{
    AUTO_BUF struct buf jwk = BUF_INIT(2000);
    AUTO_FREE char *claims = claims_with("");

    (void)state;
    signer_jwk(w.stranger, JWT_ES256, "es", "", &jwk);
    const struct {
        const char *name, *value;
    } members[] = {{"jwk", buf_str(&jwk)},
                   {"jku", "\"https://evil.example/jwks.json\""},
                   {"x5u", "\"https://evil.example/cert.pem\""},
                   {"x5c", "[\"MIIB\"]"}};
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        AUTO_FREE char *more = mem_printf(",\"%s\":%s", members[i].name, members[i].value);
        AUTO_FREE char *header = header_of(JWT_ES256, more);
        signer_sign(w.stranger, JWT_ES256, header, claims, &w.token);
        refused(buf_str(&w.token), "signature");
        signer_sign(w.keys[JWT_ES256], JWT_ES256, header, claims, &w.token);
        assert_int_equal(judge_text(buf_str(&w.token)), JUDGED_GOOD);
    }
    assert_int_equal(judge_fetches(w.judge), 0);
}

static void wrong_claims_are_refused(void **state)
{
    static const struct {
        const char *claims, *why;
    } cases[] = {
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE "/mcp\",\"tenant\":\"a\"}", "no end"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE "/mcp\",\"tenant\":\"a\",\"exp\":1000}",
         "expired"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE "/mcp\",\"tenant\":\"a\",\"exp\":\"9999999999\"}",
         "exp of the token is not a time"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE "/mcp\",\"tenant\":\"a\",\"exp\":-1}",
         "not a time"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE "/mcp\",\"tenant\":\"a\",\"exp\":1e300}",
         "not a time"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE
         "/mcp\",\"tenant\":\"a\",\"exp\":9999999999,\"nbf\":9999999998}",
         "not valid yet"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE
         "/mcp\",\"tenant\":\"a\",\"exp\":9999999999,\"iat\":9999999998}",
         "in the future"},
        {"{\"iss\":\"https://evil.example\",\"aud\":\"" BASE "/mcp\",\"exp\":9999999999}",
         "issuer"},
        {"{\"iss\":\"" BASE "/\",\"aud\":\"" BASE "/mcp\",\"exp\":9999999999}", "issuer"},
        {"{\"iss\":[\"" BASE "\"],\"aud\":\"" BASE "/mcp\",\"exp\":9999999999}", "issuer"},
        {"{\"aud\":\"" BASE "/mcp\",\"exp\":9999999999}", "issuer"},
        {"{\"iss\":\"" BASE "\",\"exp\":9999999999}", "another server"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"https://other.example/mcp\",\"exp\":9999999999}",
         "another server"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE ".evil.example/mcp\",\"exp\":9999999999}",
         "another server"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE "/mcp/../files\",\"exp\":9999999999}",
         "another server"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE "/mcpx\",\"exp\":9999999999}", "another server"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE "/mcp\\u0000\",\"exp\":9999999999}",
         "another server"},
        {"{\"iss\":\"" BASE "\",\"aud\":[],\"exp\":9999999999}", "another server"},
        {"{\"iss\":\"" BASE "\",\"aud\":{\"a\":\"" BASE "/mcp\"},\"exp\":9999999999}",
         "another server"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE "/mcp\",\"exp\":9999999999}", "no claim tenant"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE
         "/mcp\",\"exp\":9999999999,\"tenant\":\"../../root\"}",
         "no tenant's name"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE
         "/mcp\",\"exp\":9999999999,\"tenant\":\"a\\r\\nSandcgi-Row: b\"}",
         "no tenant's name"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE
         "/mcp\",\"exp\":9999999999,\"tenant\":\"bob\\u0000\"}",
         "no claim tenant"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE
         "/mcp\",\"exp\":9999999999,\"tenant\":\"a\",\"cnf\":{\"jkt\":\"x\"}}",
         "bound to a key"},
        {"{\"iss\":\"" BASE "\",\"aud\":\"" BASE
         "/mcp\",\"exp\":9999999999,\"exp\":1,\"tenant\":\"a\"}",
         "not valid JSON"},
        {"{\"iss\":\"" BASE "\",\"a\":[[[[[[[[[[[[1]]]]]]]]]]]]}", "not valid JSON"},
        {"[\"" BASE "\"]", "not a JSON object"},
        {"\"eyJhbGciOiJub25lIn0\"", "not a JSON object"},
    };
    AUTO_FREE char *header = header_of(JWT_ES256, "");

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        signer_sign(w.keys[JWT_ES256], JWT_ES256, header, cases[i].claims, &w.token);
        refused(buf_str(&w.token), cases[i].why);
    }
}

/* Each character of the token is changed once. */
static void changed_tokens_are_refused(void **state)
{
    (void)state;
    for (enum jwt_alg alg = JWT_RS256; alg < JWT_ALGS; alg++) {
        AUTO_FREE char *header = header_of(alg, ""), *claims = claims_with(",\"jti\":\"x\"");
        signer_sign(w.keys[alg], alg, header, claims, &w.token);
        for (size_t i = 0; i < w.token.len; i++) {
            AUTO_FREE char *changed = mem_strdup(buf_str(&w.token));
            changed[i] = changed[i] == 'A' ? 'B' : 'A';
            assert_int_equal(judge_text(changed), JUDGED_BAD);
            changed[i] = '\0';
            assert_int_equal(judge_text(changed), JUDGED_BAD);
        }
    }
}

static void broken_forms_are_refused(void **state)
{
    AUTO_FREE char *header = header_of(JWT_ES256, ""), *claims = claims_with("");
    static const char *const forms[] = {
        "",
        ".",
        "..",
        "...",
        "eyJ.eyJ.",
        "eyJ..",
        "eyJ.a.b",
        "eyJ.eyJ.eyJ.eyJ",
        "eyJ.eyJ.eyJ.eyJ.eyJ",
        "eyJhbGciOiJub25lIn0.e30.",
        "eyJhbGciOiJub25lIn0.e30.AA",
        "eyJ=.e30.AA",
        "eyJ+/.e30.AA",
        "eyJ\x80.e30.AA",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        refused(forms[i], "token");
    signer_sign(w.keys[JWT_ES256], JWT_ES256, header, claims, &w.token);
    AUTO_FREE char *more = mem_printf("%s=", buf_str(&w.token));
    refused(more, "base64url");
    AUTO_FREE char *alone = mem_strdup(buf_str(&w.token));
    strrchr(alone, '.')[1] = '\0';
    refused(alone, "signature");
    signer_sign(w.stranger, JWT_ES256, header, claims, &w.token);
    refused(buf_str(&w.token), "signature");
}

/* A DER signature and r, s of zero (CVE-2022-21449) are none. */
static void odd_signatures_are_refused(void **state)
{
    AUTO_FREE char *header = header_of(JWT_ES256, ""), *claims = claims_with("");
    AUTO_BUF struct buf zero = BUF_INIT(SIGNED_MAX);
    static const unsigned char none[64];

    (void)state;
    signer_sign(w.keys[JWT_ES256], JWT_ES256, header, claims, &w.token);
    const char *dot = strrchr(buf_str(&w.token), '.');
    buf_add(&zero, w.token.data, (size_t)(dot + 1 - w.token.data));
    add_b64url(&zero, none, sizeof none);
    refused(buf_str(&zero), "signature");
}

static void large_tokens_are_refused(void **state)
{
    AUTO_FREE char *pad = mem_alloc(9001);
    AUTO_FREE char *claims = claims_with("");

    (void)state;
    memset(pad, 'x', 9000);
    AUTO_FREE char *claim = mem_printf(",\"pad\":\"%s\"", pad);
    AUTO_FREE char *header = header_of(JWT_ES256, ""), *large = claims_with(claim);
    signer_sign(w.keys[JWT_ES256], JWT_ES256, header, large, &w.token);
    refused(buf_str(&w.token), "over 8000 characters");
    pad[3000] = '\0';
    AUTO_FREE char *member = mem_printf(",\"pad\":\"%s\"", pad);
    AUTO_FREE char *wide = header_of(JWT_ES256, member);
    signer_sign(w.keys[JWT_ES256], JWT_ES256, wide, claims, &w.token);
    refused(buf_str(&w.token), "header of the token is over 2048");
}

static void audiences_have_several_spellings(void **state)
{
    static const char *const good[] = {
        BASE "/mcp",     BASE "/mcp/",    BASE, BASE "/", "HTTPS://SANDBOX.example.org/mcp",
        BASE ":443/mcp", BASE "/mcp/api",
    };
    AUTO_FREE char *header = header_of(JWT_ES256, "");

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        AUTO_FREE char *claims = mem_printf("{\"iss\":\"" BASE "\",\"aud\":[\"x\",\"%s\"],"
                                            "\"exp\":9999999999.5,\"tenant\":\"a\"}",
                                            good[i]);
        signer_sign(w.keys[JWT_ES256], JWT_ES256, header, claims, &w.token);
        if (judge_text(buf_str(&w.token)) != JUDGED_GOOD)
            fail_msg("%s: %s", good[i], w.text);
        assert_string_equal(w.text, "a none");
    }
}

static void a_tenants_name_is_made_of_claims(void **state)
{
    static const char *const good[] = {"{sub}", "all-{tenant}", "{org}.{email:hash}", "a{b}_c"};
    static const char *const bad[] = {"",   "tenant", "{",      "{sub",     "sub}",
                                      "{}", "{sub}}", "{{sub}", "a b{sub}", "/{sub}"};
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_works(grant_check_template(good[i], &e), e);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (grant_check_template(bad[i], &e) == 0)
            fail_msg("\"%s\" is taken", bad[i]);
}

static void a_revoked_grant_counts_at_once(void **state)
{
    AUTO_FREE char *header = header_of(JWT_ES256, ""), *claims = claims_with(",\"gid\":\"g1\"");

    (void)state;
    signer_sign(w.keys[JWT_ES256], JWT_ES256, header, claims, &w.token);
    assert_int_equal(judge_text(buf_str(&w.token)), JUDGED_GOOD);
    put_file("revoked.json", "[\"g0\",\"g1\"]");
    look_at_files();
    refused(buf_str(&w.token), "revoked");
    put_file("revoked.json", "not a list");
    look_at_files();
    refused(buf_str(&w.token), "revoked");
    put_file("revoked.json", "[]");
    look_at_files();
    assert_int_equal(judge_text(buf_str(&w.token)), JUDGED_GOOD);
}

/* What could not be taken in is looked at again, though nothing tells it from what was looked at.
 */
static void a_file_is_known_when_it_was_taken_in(void **state)
{
    AUTO_FREE char *header = header_of(JWT_ES256, ""), *claims = claims_with(",\"gid\":\"g1\"");
    AUTO_FREE char *path = mem_printf("%s/revoked.json", w.folder);
    struct stat st;

    (void)state;
    signer_sign(w.keys[JWT_ES256], JWT_ES256, header, claims, &w.token);
    put_file("revoked.json", "[\"g0\",\"g1\"!");
    look_at_files();
    assert_int_equal(judge_text(buf_str(&w.token)), JUDGED_GOOD);
    assert_int_equal(stat(path, &st), 0);
    AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "]", 1, st.st_size - 1), 1);
    assert_int_equal(futimens(fd, (struct timespec[]){st.st_atim, st.st_mtim}), 0);
    look_at_files();
    refused(buf_str(&w.token), "revoked");
}

/* A set without keys for us, broken or hostile, changes nothing. */
static void hostile_sets_of_keys_change_nothing(void **state)
{
    static const char *const sets[] = {
        "",
        "{}",
        "[]",
        "{\"keys\":{}}",
        "{\"keys\":[]}",
        "{\"keys\":[1,null,\"x\",[],{}]}",
        "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\",\"kid\":\"es\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\",\"kid\":\"rs\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"es\","
        "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
        "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}]}",
        "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}]}",
        "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"X25519\","
        "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}]}",
        "<html>Not found</html>",
    };
    AUTO_FREE char *header = header_of(JWT_RS256, ""), *claims = claims_with("");

    (void)state;
    log_setup(LOG_LEVEL_ERROR, "hostile");
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        struct jwks keys = {0};
        struct err e;
        assert_fails(jwks_parse(sets[i], strlen(sets[i]), &keys, &e), ERR_INVALID, e);
        assert_int_equal(keys.n, 0);
    }
    put_file("jwks.json", sets[6]);
    look_at_files();
    signer_sign(w.keys[JWT_RS256], JWT_RS256, header, claims, &w.token);
    assert_int_equal(judge_text(buf_str(&w.token)), JUDGED_GOOD);
    put_keys();
    look_at_files();
}

static void keys_say_what_they_are_for(void **state)
{
    static const char *const not_for_us[] = {
        ",\"use\":\"enc\"",           ",\"key_ops\":[\"sign\"]", ",\"alg\":\"ES384\"",
        ",\"alg\":\"HS256\"",         ",\"d\":\"AAAA\"",         ",\"use\":7",
        ",\"key_ops\":[\"encrypt\"]",
    };
    struct jwks keys = {0};
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(not_for_us); i++) {
        AUTO_BUF struct buf set = BUF_INIT(4000);
        buf_add_str(&set, "{\"keys\":[");
        signer_jwk(w.stranger, JWT_ES256, "x", not_for_us[i], &set);
        buf_add_str(&set, "]}");
        assert_fails(jwks_parse(set.data, set.len, &keys, &e), ERR_INVALID, e);
    }
    AUTO_BUF struct buf two = BUF_INIT(4000);
    buf_add_str(&two, "{\"keys\":[");
    signer_jwk(w.stranger, JWT_ES256, "a", ",\"key_ops\":[\"verify\"]", &two);
    buf_add_str(&two, ",");
    signer_jwk(w.keys[JWT_ES256], JWT_ES256, "b", ",\"alg\":\"ES256\"", &two);
    buf_add_str(&two, "]}");
    for (int i = 0; i < 2; i++) /* a later set takes the place of an earlier one */
        assert_works(jwks_parse(two.data, two.len, &keys, &e), e);
    assert_int_equal(keys.n, 2);
    assert_null(jwks_find(&keys, NULL, JWT_ES256)); /* which of the two is not said */
    assert_string_equal(jwks_find(&keys, "b", JWT_ES256)->kid, "b");
    assert_null(jwks_find(&keys, "b", JWT_RS256));
    jwks_clear(&keys);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(good_tokens_name_tenant_and_scopes),
    cmocka_unit_test(wrong_headers_are_refused),
    cmocka_unit_test(keys_in_headers_are_not_looked_at),
    cmocka_unit_test(wrong_claims_are_refused),
    cmocka_unit_test(changed_tokens_are_refused),
    cmocka_unit_test(broken_forms_are_refused),
    cmocka_unit_test(odd_signatures_are_refused),
    cmocka_unit_test(large_tokens_are_refused),
    cmocka_unit_test(audiences_have_several_spellings),
    cmocka_unit_test(a_tenants_name_is_made_of_claims),
    cmocka_unit_test(a_revoked_grant_counts_at_once),
    cmocka_unit_test(a_file_is_known_when_it_was_taken_in),
    cmocka_unit_test(hostile_sets_of_keys_change_nothing),
    cmocka_unit_test(keys_say_what_they_are_for),
};
UNIT_TESTS_IN(tests, setup, teardown)
