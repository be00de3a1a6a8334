/* Tokens: rows of the file, the table that workers look in, changes of the file, and what scopes
 * leave of a server. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/mcp/features/tool.h"
#include "fcgi/http/http_request.h"
#include "fcgi/tokens/token_edit.h"
#include "tests/unit/unit.h"

#include <sys/mman.h>
#include <sys/wait.h>

#define OWN       "an-own-token.of+32/characters~or_more"
#define API_TOKEN "0123456789abcdef0123456789abcdef"

static char folder[PATH_MAX], path[PATH_MAX + 20];

static int setup(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_ERROR, "test");
    unit_make_folder(folder);
    snprintf(path, sizeof path, "%s/tokens", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static struct token made(const char *tenant, unsigned scopes, int64_t expires_s,
                         char text[TOKEN_TEXT_MAX + 1])
{
    struct token t = {.scopes = scopes, .made_s = 1700000000, .expires_s = expires_s};
    struct err e;

    snprintf(t.tenant, sizeof t.tenant, "%s", tenant);
    assert_works(token_make(&t, text, &e), e);
    return t;
}

static void add(const struct token *t, const char *text)
{
    struct token_added added = {t, text};
    struct err e;
    bool changed;

    assert_works(token_edit(path, &added, NULL, NULL, NULL, &changed, &e), e);
    assert_true(changed);
}

static enum token_verdict find(const struct token_table *t, const char *text)
{
    struct token out;

    return token_table_find(t, text, &out);
}

static void a_row_says_what_was_written(void **state)
{
    char text[TOKEN_TEXT_MAX + 1];
    AUTO_BUF struct buf row = BUF_INIT(1000);
    struct token t = made("alice", SCOPE_RUN | SCOPE_NETWORK, 1800000000, text), back;
    struct err e;

    (void)state;
    token_row_write(&t, &row);
    assert_null(strstr(buf_str(&row), strrchr(text, '_') + 1));
    row.data[row.len - 1] = '\0';
    assert_int_equal(token_row_parse(row.data, &back, &e), 1);
    assert_memory_equal(&t, &back, sizeof t);
    assert_string_equal(back.tenant, "alice");
    assert_int_equal(strlen(text), 56);
}

static void wrong_rows_are_refused(void **state)
{
    static const char *const bad[] = {
        "alice",
        "alice short",
        "alice " API_TOKEN " more",
        "-alice " API_TOKEN,
        "\"abcdefgh\" \"0123456789012345678901 alice\";",
        "\"abcdefgh\" \"0123456789012345678901 alice run,walk\";",
        "\"abcdefgh\" \"0123456789012345678901 alice \";",
        "\"abcdefgh\" \"012345678901234567890 alice run\";",
        "\"abcdefgh\" \"0123456789012345678901,x alice run\";",
        "\"abcdefgh\" \"0123456789012345678901,0 alice run\";",
        "\"ABCDEFGH\" \"0123456789012345678901 alice run\";",
        "\"abcdefg\" \"0123456789012345678901 alice run\";",
        "\"abcdefgh\" \"0123456789012345678901 alice run\"",
        "\"abcdefgh\" \"0123456789012345678901 alice run\"; evil",
        "\"abcdefgh\" \"0123456789012345678901 al ice run\";",
        "\"~^(?i:bearer) +.*$\" \"alice\";",
        "\"~^(?i:bearer) +" API_TOKEN "\" \"alice\";",
        "\"~^" API_TOKEN "$\" \"alice\";",
        "\"~^(?i:bearer) +" API_TOKEN "$\" \"\";",
    };
    struct token t;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        e = ERR_INIT;
        if (token_row_parse(bad[i], &t, &e) >= 0)
            fail_msg("taken: %s", bad[i]);
        assert_null(strstr(e.text, API_TOKEN));
    }
    assert_int_equal(token_row_parse("", &t, &e), 0);
    assert_int_equal(token_row_parse("  # alice", &t, &e), 0);
}

static void a_token_opens_its_tenant_alone(void **state)
{
    char a[TOKEN_TEXT_MAX + 1], b[TOKEN_TEXT_MAX + 1], old[TOKEN_TEXT_MAX + 1];
    const struct token alice = made("alice", SCOPE_FILES, 0, a);
    const struct token bob = made("bob", SCOPE_ALL, clock_unix_s() + 100, b);
    const struct token carol = made("carol", SCOPE_ALL, clock_unix_s() - 100, old);
    struct token own = {.tenant = "dave", .scopes = SCOPE_ALL}, out;
    struct err e;

    (void)state;
    assert_works(token_own_init(OWN, &own, &e), e);
    add(&alice, a);
    add(&bob, b);
    add(&carol, old);
    add(&own, OWN);
    struct token_table *t = token_table_new(path, API_TOKEN, &e);
    assert_non_null(t);
    assert_int_equal(token_table_find(t, a, &out), TOKEN_GOOD);
    assert_string_equal(out.tenant, "alice");
    assert_int_equal(out.scopes, SCOPE_FILES);
    assert_int_equal(token_table_find(t, b, &out), TOKEN_GOOD);
    assert_string_equal(out.tenant, "bob");
    assert_int_equal(find(t, old), TOKEN_EXPIRED);
    assert_int_equal(token_table_find(t, OWN, &out), TOKEN_GOOD);
    assert_string_equal(out.tenant, "dave");
    assert_int_equal(token_table_find(t, API_TOKEN, &out), TOKEN_GOOD);
    assert_string_equal(out.tenant, "default");
    AUTO_FREE char *mixed = mem_printf("%.13s%s", a, b + 13);
    AUTO_FREE char *cut = mem_strndup(a, strlen(a) - 1), *more = mem_printf("%sA", a);
    const char *const bad[] = {mixed, cut, more, "", "scg_", alice.id, a + 13, "alice", OWN "x"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(find(t, bad[i]), TOKEN_UNKNOWN);
    for (char *c = a + 13; *c; c++) { /* every character counts */
        *c = (char)(*c == 'A' ? 'B' : 'A');
        assert_int_equal(find(t, a), TOKEN_UNKNOWN);
        break;
    }
    token_table_free(t);
}

static bool is_alice(const void *ctx, const struct token *t)
{
    (void)ctx;
    return strcmp(t->tenant, "alice") == 0;
}

static void a_changed_file_counts_and_a_wrong_one_does_not(void **state)
{
    char a[TOKEN_TEXT_MAX + 1], b[TOKEN_TEXT_MAX + 1];
    const struct token alice = made("alice", SCOPE_ALL, 0, a), bob = made("bob", SCOPE_ALL, 0, b);
    struct token_list gone;
    struct err e = ERR_INIT;
    bool changed;

    (void)state;
    add(&alice, a);
    struct token_table *t = token_table_new(path, "", &e);
    assert_int_equal(find(t, a), TOKEN_GOOD);
    add(&bob, b);
    assert_int_equal(find(t, b), TOKEN_UNKNOWN);
    token_table_look(t);
    assert_int_equal(find(t, b), TOKEN_GOOD);
    assert_works(token_edit(path, NULL, is_alice, NULL, &gone, &changed, &e), e);
    assert_int_equal(gone.n, 1);
    token_list_clear(&gone);
    token_table_look(t);
    assert_int_equal(find(t, a), TOKEN_UNKNOWN);
    unit_write_file(path, "# fine\nnonsense\n", 16);
    log_setup(LOG_LEVEL_ERROR, "test");
    token_table_look(t);
    assert_int_equal(find(t, b), TOKEN_GOOD);
    unlink(path);
    token_table_look(t);
    assert_int_equal(find(t, b), TOKEN_GOOD);
    token_table_free(t);
    unit_write_file(path, "# fine\nnonsense\n", 16);
    assert_null(token_table_new(path, "", &e));
    assert_contains(e.text, "tokens, line 2: must be a row");
}

/* Else a worker that is taken over could add tokens for all. */
static void a_worker_cannot_write_the_table(void **state)
{
    char a[TOKEN_TEXT_MAX + 1];
    const struct token alice = made("alice", SCOPE_ALL, 0, a);
    struct err e = ERR_INIT;
    int status;

    (void)state;
    add(&alice, a);
    struct token_table *t = token_table_new(path, "", &e);
    pid_t pid = fork();
    if (pid == 0) {
        struct rw {
            void *memory;
        } *first = (void *)t; /* its first member */
        if (token_table_confine(t, &e) < 0 || find(t, a) != TOKEN_GOOD)
            _exit(1);
        _exit(mprotect(first->memory, 4096, PROT_READ | PROT_WRITE) == 0 ? 2 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    token_table_free(t);
}

static void a_change_keeps_other_lines_and_the_mode(void **state)
{
    static const char text[] = "# mine\n\nbob " API_TOKEN "\n";
    char a[TOKEN_TEXT_MAX + 1];
    const struct token alice = made("alice", SCOPE_ALL, 0, a);
    AUTO_BUF struct buf now = BUF_INIT(10000);
    struct token own = {.tenant = "bob", .scopes = SCOPE_ALL};
    struct token_added same = {&own, API_TOKEN};
    struct token_list gone;
    struct stat st;
    struct err e;
    bool changed;

    (void)state;
    unit_write_file(path, text, sizeof text - 1);
    chmod(path, 0640);
    add(&alice, a);
    assert_works(token_own_init(API_TOKEN, &own, &e), e);
    assert_works(token_edit(path, &same, NULL, NULL, NULL, &changed, &e), e);
    assert_false(changed);
    assert_works(token_edit(path, NULL, is_alice, NULL, &gone, &changed, &e), e);
    token_list_clear(&gone);
    assert_works(fdio_read_file(path, &now, &e), e);
    assert_string_equal(buf_str(&now), text);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    unit_write_file(path, "x\n", 2);
    assert_fails(token_edit(path, NULL, is_alice, NULL, &gone, &changed, &e), ERR_INVALID, e);
    assert_contains(e.text, "tokens, line 1");
}

/* ---- scopes ---- */

static void scopes_have_one_text(void **state)
{
    char text[SCOPE_TEXT_MAX];

    (void)state;
    assert_int_equal(scopes_parse("network, run"), SCOPE_RUN | SCOPE_NETWORK);
    assert_int_equal(scopes_parse("run,walk"), 0);
    assert_int_equal(scopes_parse(""), 0);
    scopes_format(SCOPE_ALL, text);
    assert_string_equal(text, "run,files,network,admin");
    assert_int_equal(token_scopes_parse("run,files,network"), SCOPE_ALL);
    assert_int_equal(token_scopes_parse("run,files"), SCOPE_RUN | SCOPE_FILES);
}

static bool offers(const struct mcp_server *server, const char *name)
{
    for (size_t i = 0; i < server->n_tools; i++)
        if (strcmp(server->tools[i]->name, name) == 0)
            return true;
    return false;
}

static void app_open(struct settings *s, struct app *app)
{
    struct err e;

    setenv("SANDBOX_ROOT", folder, 1);
    setenv("FILE_SECRET", "0123456789abcdef0123456789abcdef", 1);
    setenv("PUBLIC_BASE_URL", "https://own.test", 1);
    setenv("SANDCGI_AUTH", "token", 1);
    setenv("SANDCGI_TOKENS_FILE", path, 1);
    setenv("TOOLS", "all", 1);
    assert_works(settings_load(s, NULL, &e), e);
    assert_works(app_init(app, s, true, NULL, &e), e);
}

static void scopes_leave_a_part_of_a_server(void **state)
{
    struct settings s;
    struct app app;

    (void)state;
    unit_write_file(path, "", 0);
    app_open(&s, &app);
    const struct mcp_server *all = app_server(&app, NULL, SCOPE_ALL);
    const struct mcp_server *run = app_server(&app, NULL, SCOPE_RUN | SCOPE_NETWORK);
    const struct mcp_server *files = app_server(&app, "all", SCOPE_FILES);
    assert_true(offers(all, "run_code") && offers(all, "read_file") && all->resources);
    assert_true(offers(run, "run_code") && offers(run, "exec") && offers(run, "list_runners"));
    assert_false(offers(run, "read_file") || offers(run, "create_upload") || run->resources);
    assert_true(offers(files, "read_file") && offers(files, "download_archive") &&
                files->resources);
    assert_false(offers(files, "run_code") || offers(files, "import_url") || files->tasks ||
                 offers(files, "delete_conversation"));
    assert_ptr_equal(files, app_server(&app, "all", SCOPE_FILES));
    assert_null(app_server(&app, "nonsense", SCOPE_RUN));
    app_clear(&app);
    settings_clear(&s);
}

/* The status of a request with this header to these tools (NULL: the setting's); 200: let in. */
static int ask(const struct app *app, const char *header, const char *tools,
               struct http_request *out, char challenge[200])
{
    static const struct http_source source = {.cancel_fd = -1};
    struct http_answer a = HTTP_ANSWER_INIT;

    *out = (struct http_request){
        .source = &source, .authorization = header, .tenant = "mallory", .tools = tools};
    int rc = http_guard_who(app, out, &a);
    if (rc == 0 && !http_guard_tools(app, out, &a))
        rc = -1;
    snprintf(challenge, 200, "%s", a.headers ? a.headers : "");
    json_decref(a.body);
    return rc < 0 ? a.status : 200;
}

static void a_request_has_the_rights_of_its_token(void **state)
{
    char full[TOKEN_TEXT_MAX + 1], run[TOKEN_TEXT_MAX + 1], old[TOKEN_TEXT_MAX + 1], said[200];
    const struct token one = made("alice", SCOPE_ALL, 0, full);
    const struct token two = made("bob", SCOPE_RUN, 0, run);
    const struct token three = made("carol", SCOPE_ALL, 1700000001, old);
    struct http_request r;
    struct settings s;
    struct app app;

    (void)state;
    add(&one, full);
    add(&two, run);
    add(&three, old);
    app_open(&s, &app);
    AUTO_FREE char *bearer_full = mem_printf("Bearer %s", full);
    AUTO_FREE char *bearer_run = mem_printf("bearer   %s", run);
    AUTO_FREE char *bearer_old = mem_printf("Bearer %s", old);
    assert_int_equal(ask(&app, bearer_full, NULL, &r, said), 200);
    assert_string_equal(r.tenant, "alice");
    assert_null(http_request_origin(&r).network);
    assert_int_equal(ask(&app, bearer_full, "runner", &r, said), 200);
    assert_int_equal(ask(&app, bearer_run, NULL, &r, said), 200);
    assert_string_equal(r.tenant, "bob");
    assert_string_equal(http_request_origin(&r).network, "none");
    assert_int_equal(ask(&app, bearer_run, "runner", &r, said), 403);
    assert_contains(said, "insufficient_scope");
    assert_int_equal(ask(&app, bearer_old, NULL, &r, said), 401);
    assert_contains(said, "the token has expired");
    assert_int_equal(ask(&app, "Bearer wrong", NULL, &r, said), 401);
    assert_null(r.tenant);
    app_clear(&app);
    settings_clear(&s);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    CASE(a_row_says_what_was_written),
    CASE(wrong_rows_are_refused),
    CASE(a_token_opens_its_tenant_alone),
    CASE(a_changed_file_counts_and_a_wrong_one_does_not),
    CASE(a_worker_cannot_write_the_table),
    CASE(a_change_keeps_other_lines_and_the_mode),
    CASE(scopes_have_one_text),
    CASE(scopes_leave_a_part_of_a_server),
    CASE(a_request_has_the_rights_of_its_token),
};
UNIT_TESTS(tests)
