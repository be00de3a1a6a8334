#include "config.h"

#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

static int open_with(struct fixture *f, const char *path, const char *host_path, const char *secret,
                     struct sandbox_root *out)
{
    return sandbox_root_open(out, path, host_path, secret, FIXTURE_URL, fixture_uid(),
                             fixture_gid(), 0, &f->e);
}

static void a_new_root_is_closed_to_others(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(fstatat(f->root.fd, ".staging", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(fstatat(f->root.fd, ".runs", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
    assert_int_equal(fstatat(f->root.fd, ".pool", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0711);
}

/* Open to every account, for the web server's group or none, and as an administrator left it. */
static void a_root_is_closed_when_it_opens_again(void **state)
{
    struct fixture *f = *state;
    const gid_t web = fixture_gid();
    static const struct {
        mode_t before, alone, with_group;
    } cases[] = {{0711, 0700, 0710}, {0755, 0700, 0710}, {0701, 0700, 0710},
                 {0710, 0710, 0710}, {0750, 0750, 0750}, {0700, 0700, 0710}};

    assert_int_equal(mkdirat(f->root.fd, "lost+found", 0700), 0);
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        const bool grouped = i % 2 != 0;
        struct sandbox_root again;
        struct stat st;
        assert_int_equal(chmod(f->path, cases[i / 2].before), 0);
        assert_int_equal(sandbox_root_open(&again, f->path, NULL, FIXTURE_SECRET, FIXTURE_URL,
                                           fixture_uid(), fixture_gid(), grouped ? web : 0, &f->e),
                         0);
        sandbox_root_close(&again);
        assert_int_equal(stat(f->path, &st), 0);
        assert_int_equal(st.st_mode & 07777,
                         grouped ? cases[i / 2].with_group : cases[i / 2].alone);
    }
}

/* Of another account's directory nothing can be changed. */
static void a_root_that_cannot_be_closed_is_refused(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root r;

    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_int_equal(chmod(f->path, 0755), 0);
    assert_int_equal(seteuid(65534), 0);
    int rc = open_with(f, f->path, NULL, FIXTURE_SECRET, &r);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(rc, -1);
    assert_int_equal(f->e.kind, ERR_INVALID);
    assert_non_null(strstr(f->e.text, "chmod 0700"));
}

static void a_root_opens_again_and_keeps_its_sandboxes(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root again;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;

    fixture_plant(f, "kept.txt", "kept");
    assert_int_equal(open_with(f, f->path, "", FIXTURE_SECRET, &again), 0);
    assert_int_equal(sandbox_open(&again, "default", "talk", &sb, &f->e), 0);
    assert_string_equal(sb.name, f->sb.name);
    assert_int_equal(faccessat(sb.fd, "kept.txt", R_OK, 0), 0);
    sandbox_root_close(&again);
}

static void a_wrong_root_is_refused_with_what_to_change(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root r;
    char file[320], open_dir[320], deep[320], comma[320];

    fixture_secret_file(f);
    snprintf(file, sizeof(file), "%s/secret", f->dir);
    snprintf(open_dir, sizeof(open_dir), "%s/open", f->dir);
    snprintf(deep, sizeof(deep), "%s/no/such", f->dir);
    snprintf(comma, sizeof(comma), "%s/a,b", f->dir);
    assert_int_equal(mkdir(open_dir, 0700), 0);
    assert_int_equal(chmod(open_dir, 01777), 0);
    assert_int_equal(chmod(f->dir, 0755), 0);
    const struct {
        const char *path, *host_path, *secret, *word;
    } cases[] = {
        {"relative", NULL, FIXTURE_SECRET, "SANDBOX_ROOT must be an absolute path"},
        {"", NULL, FIXTURE_SECRET, "SANDBOX_ROOT"},
        {f->path, "relative", FIXTURE_SECRET, "SANDBOX_HOST_PATH"},
        {f->path, comma, FIXTURE_SECRET, "comma"},
        {f->path, NULL, "short", "FILE_SECRET"},
        {f->path, NULL, "", "FILE_SECRET"},
        {file, NULL, FIXTURE_SECRET, "directory"},
        {open_dir, NULL, FIXTURE_SECRET, "written by everybody"},
        {deep, NULL, FIXTURE_SECRET, "cannot be made"},
        {f->dir, NULL, FIXTURE_SECRET, "use a directory of its own"},
    };
    int fds = fixture_open_fds();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(open_with(f, cases[i].path, cases[i].host_path, cases[i].secret, &r), -1);
        assert_int_equal(f->e.kind, ERR_INVALID);
        if (!strstr(f->e.text, cases[i].word))
            fail_msg("case %zu says: %s", i, f->e.text);
    }
    assert_int_equal(fixture_open_fds(), fds);
}

static void leftovers_of_killed_uploads_are_swept_when_old(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root again;

    /* ctime cannot be set, so only the young case can be tested: another upload that is on its way
     * stays. */
    AUTO_FD int fd = openat(f->root.fd, ".staging/young", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(open_with(f, f->path, NULL, FIXTURE_SECRET, &again), 0);
    assert_int_equal(faccessat(again.fd, ".staging/young", F_OK, 0), 0);
    sandbox_root_close(&again);
}

static void name_of(const struct sandbox_root *root, const char *tenant, const char *id, char *out)
{
    struct err e;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;

    assert_int_equal(sandbox_open(root, tenant, id, &sb, &e), 0);
    memcpy(out, sb.name, sizeof(sb.name));
}

/* H-07, H-08. The digest was computed with an independent HMAC (python3's hmac module). */
static void names_depend_on_tenant_id_and_secret_with_lengths(void **state)
{
    struct fixture *f = *state;
    static const char *const pairs[][2] = {
        {"default", "talk"},  {"other", "talk"},   {"default", "talk2"}, {"defaultt", "alk"},
        {"defaul", "ttalk"},  {"talk", "default"}, {"d", "efaulttalk"},  {"DEFAULT", "talk"},
        {"default", "talk "}, {"default", "Talk"},
    };
    char names[ARRAY_LEN(pairs)][SANDBOX_NAME_LEN + 1];
    struct sandbox_root other;

    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        name_of(&f->root, pairs[i][0], pairs[i][1], names[i]);
        assert_int_equal(strspn(names[i], "0123456789abcdef"), SANDBOX_NAME_LEN);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(names[i], names[j]);
    }
    assert_string_equal(names[0],
                        "3bb1f3c740540f840792d8435f3af3135838c8cf59e886340b2946ee34d754c1");
    assert_int_equal(open_with(f, f->path, NULL, FIXTURE_SECRET "x", &other), 0);
    name_of(&other, "default", "talk", names[1]);
    assert_string_not_equal(names[0], names[1]);
    sandbox_root_close(&other);
}

/* H-27: a newline behind an id is not the id. */
static void ids_are_bounded_text_without_control_characters(void **state)
{
    struct fixture *f = *state;
    char longest[SANDBOX_ID_MAX + 2];
    const char *const bad[] = {"",         "abc\n",    "\x1b[2J",  "a\tb",        "\x7f",
                               "\xc2\x85", "\xff\xfe", "\xc0\xaf", "\xed\xa0\x80"};
    const char *const good[] = {"a",   "..",      "../../etc", "Gespräch 1", "\xe2\x80\xae",
                                "a/b", "\xc2\xa0"};
    int before = fixture_count(f->root.fd, ".");

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(sandbox_open(&f->root, "default", bad[i], &f->sb, &f->e), -1);
        assert_int_equal(f->e.kind, ERR_INVALID);
        assert_non_null(strstr(f->e.text, "conversationId"));
        assert_int_equal(sandbox_open(&f->root, bad[i], "talk", &f->sb, &f->e), -1);
        assert_non_null(strstr(f->e.text, "tenant"));
    }
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(sandbox_open(&f->root, "default", longest, &f->sb, &f->e), -1);
    assert_int_equal(fixture_count(f->root.fd, "."), before);
    longest[SANDBOX_ID_MAX] = '\0';
    char name[SANDBOX_NAME_LEN + 1];
    name_of(&f->root, "default", longest, name);
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        name_of(&f->root, "default", good[i], name);
    /* Whatever an id looks like, what is on disk is 64 hex digits directly under the root. */
    assert_int_equal(fixture_count(f->root.fd, "."), before + 1 + (int)ARRAY_LEN(good));
}

/* H-32. */
static void a_sandbox_belongs_to_its_user(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    assert_int_equal(fstat(f->sb.fd, &st), 0);
    assert_int_equal(st.st_uid, fixture_uid());
    assert_int_equal(st.st_gid, fixture_gid());
    assert_int_equal(st.st_mode & 07777, 0755);
}

static void a_sandbox_that_a_program_locked_opens_again(void **state)
{
    struct fixture *f = *state;
    static const mode_t modes[] = {0000, 0111, 02777, 0700};
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
        assert_int_equal(fchmod(f->sb.fd, modes[i]), 0);
        assert_int_equal(sandbox_open(&f->root, "default", "talk", &sb, &f->e), 0);
        assert_int_equal(fstat(sb.fd, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0755);
    }
}

static void a_planted_link_is_no_sandbox(void **state)
{
    struct fixture *f = *state;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;

    assert_int_equal(unlinkat(f->root.fd, f->sb.name, AT_REMOVEDIR), 0);
    assert_int_equal(symlinkat("/", f->root.fd, f->sb.name), 0);
    assert_int_equal(sandbox_open(&f->root, "default", "talk", &sb, &f->e), -1);
    assert_int_equal(sb.fd, -1);
}

static void paths_and_urls_are_made_of_the_settings(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root r;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    char want[400], token[FILE_TOKEN_LEN + 1];

    assert_int_equal(sandbox_root_open(&r, f->path, "/srv/boxes//", FIXTURE_SECRET,
                                       "https://example.test/", fixture_uid(), fixture_gid(), 0,
                                       &f->e),
                     0);
    assert_int_equal(sandbox_open(&r, "default", "talk", &sb, &f->e), 0);
    AUTO_FREE char *host = sandbox_host_path(&sb);
    snprintf(want, sizeof(want), "/srv/boxes/%s", sb.name);
    assert_string_equal(host, want);
    AUTO_FREE char *url = sandbox_url(&sb);
    file_token(&r.file_keys.now, sb.name, token);
    snprintf(want, sizeof(want), "https://example.test/files/%s/%s", sb.name, token);
    assert_string_equal(url, want);
    AUTO_FREE char *own = sandbox_host_path(&f->sb);
    snprintf(want, sizeof(want), "%s/%s", f->path, f->sb.name);
    assert_string_equal(own, want);
    sandbox_root_close(&r);
}

/* H-24: every byte that is not unreserved is written as itself in hex, whatever it is. */
static void urls_encode_every_byte_exactly(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name, *tail;
    } cases[] = {
        {"plain-1.2_3~.csv", "plain-1.2_3~.csv"},
        {"a/b c.txt", "a/b%20c.txt"},
        {"new\nline\t\"tab", "new%0Aline%09%22tab"},
        {"\xff\xc3\xa4", "%FF%C3%A4"},
        {"-rf", "-rf"},
        {"\xe2\x80\xae"
         "cod.exe",
         "%E2%80%AEcod.exe"},
        {"%2e%2e", "%252e%252e"},
        {"?#&=+;:@,!$'()*[]\\^`{|}<>",
         "%3F%23%26%3D%2B%3B%3A%40%2C%21%24%27%28%29%2A%5B%5D%5C%5E%60"
         "%7B%7C%7D%3C%3E"},
        {"\x01\x7f", "%01%7F"},
    };
    AUTO_FREE char *base = sandbox_url(&f->sb);
    size_t base_len = strlen(base);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *url = sandbox_file_url(&f->sb, cases[i].name);
        assert_memory_equal(url, base, base_len);
        assert_int_equal(url[base_len], '/');
        assert_string_equal(url + base_len + 1, cases[i].tail);
    }
    for (int c = 1; c < 256; c++) {
        char name[2] = {(char)c, '\0'};
        char want[8];
        AUTO_FREE char *url = sandbox_file_url(&f->sb, name);
        const char *tail = url + base_len + 1;
        snprintf(want, sizeof(want), "%%%02X", c);
        assert_true(strcmp(tail, want) == 0 || strcmp(tail, name) == 0);
    }
}

/* The bytes are signed, however the URL writes them. */
static void urls_of_a_limited_time_are_signed(void **state)
{
    struct fixture *f = *state;
    static const char name[] = "a b/new\nline.csv";
    char token[FILE_TOKEN_LEN + 1];
    uint64_t expires;

    f->root.url_ttl_s = 60;
    AUTO_FREE char *url = sandbox_file_url(&f->sb, name);
    const char *query = strstr(url, "/a%20b/new%0Aline.csv?expires=");
    assert_non_null(query);
    assert_memory_equal(query - SANDBOX_NAME_LEN, f->sb.name, SANDBOX_NAME_LEN);
    const char *digits = strchr(query, '=') + 1;
    AUTO_FREE char *number = mem_strndup(digits, strspn(digits, "0123456789"));
    assert_int_equal(parse_u64(number, 0, UINT64_MAX, &expires), 0);
    assert_in_range(expires, clock_unix_s() + 50, clock_unix_s() + 60);
    AUTO_FREE char *text = mem_printf("%s %s/%s", number, f->sb.name, name);
    file_token(&f->root.file_keys.now, text, token);
    assert_string_equal(strstr(query, "&sig=") + 5, token);
}

/* H-06: its name alone, which every account finds in /proc, finds no sandbox. */
static void a_url_needs_the_token_of_the_name(void **state)
{
    struct fixture *f = *state;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    AUTO_FREE char *path = sandbox_url_path(&f->sb);
    char *last = path + strlen(path) - 1;
    AUTO_FREE char *with_more = mem_printf("%s/a/b", path);

    assert_int_equal(sandbox_find_url_path(&f->root, with_more, &sb, &f->e), 0);
    assert_string_equal(sb.name, f->sb.name);
    *last = *last == 'A' ? 'Q' : 'A';
    assert_int_equal(sandbox_find_url_path(&f->root, path, &sb, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_NOT_FOUND);
    *last = '\0';
    assert_int_equal(sandbox_find_url_path(&f->root, path, &sb, &f->e), -1);
    assert_int_equal(sandbox_find_url_path(&f->root, f->sb.name, &sb, &f->e), -1);
}

/* A root of the same folder with another FILE_SECRET, as after a restart; old NULL: none. */
static void reopen(struct fixture *f, const char *secret, const char *old, int64_t until,
                   struct sandbox_root *out)
{
    assert_int_equal(open_with(f, f->path, NULL, secret, out), 0);
    if (old)
        assert_int_equal(sandbox_root_keep_old(out, old, until, &f->e), 0);
}

static void a_secret_is_replaced_and_conversations_stay(void **state)
{
    static const char second[] = "a second secret of 32 characters",
                      third[] = "a third secret, 32 characters: x";
    struct fixture *f = *state;
    char first[SANDBOX_NAME_LEN + 1], name[SANDBOX_NAME_LEN + 1];
    AUTO_FREE char *old_url = sandbox_url_path(&f->sb);
    struct sandbox_root root;
    struct sandbox sb;

    assert_int_equal(sandbox_name(&f->root, "t", "c", first, &f->e), 0);
    reopen(f, second, FIXTURE_SECRET, clock_unix_s() + 60, &root);
    assert_int_equal(sandbox_name(&root, "t", "c", name, &f->e), 0);
    assert_string_equal(name, first);
    assert_int_equal(sandbox_find_url_path(&root, old_url, &sb, &f->e), 0);
    AUTO_FREE char *new_url = sandbox_url_path(&sb);
    assert_string_not_equal(new_url, old_url);
    sandbox_close(&sb);
    sandbox_root_close(&root);

    reopen(f, second, NULL, 0, &root); /* the old one is forgotten */
    assert_int_equal(sandbox_name(&root, "t", "c", name, &f->e), 0);
    assert_string_equal(name, first);
    assert_int_equal(sandbox_find_url_path(&root, old_url, &sb, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_NOT_FOUND);
    sandbox_root_close(&root);

    reopen(f, third, second, clock_unix_s() - 1, &root); /* once more, and its time is over */
    assert_int_equal(sandbox_name(&root, "t", "c", name, &f->e), 0);
    assert_string_equal(name, first);
    assert_int_equal(sandbox_find_url_path(&root, new_url, &sb, &f->e), -1);
    sandbox_root_close(&root);
}

static void a_damaged_name_secret_is_refused(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root root;

    reopen(f, "a second secret of 32 characters", FIXTURE_SECRET, 1, &root);
    AUTO_FD int fd = openat(root.fd, ".state/name-secret", O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    sandbox_root_close(&root);
    assert_int_equal(open_with(f, f->path, NULL, FIXTURE_SECRET, &root), -1);
    assert_non_null(strstr(f->e.text, "name-secret is damaged"));
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
static const struct CMUnitTest tests[] = {
    CASE(a_new_root_is_closed_to_others),
    CASE(a_root_is_closed_when_it_opens_again),
    CASE(a_root_that_cannot_be_closed_is_refused),
    CASE(a_root_opens_again_and_keeps_its_sandboxes),
    CASE(a_wrong_root_is_refused_with_what_to_change),
    CASE(leftovers_of_killed_uploads_are_swept_when_old),
    CASE(names_depend_on_tenant_id_and_secret_with_lengths),
    CASE(ids_are_bounded_text_without_control_characters),
    CASE(a_sandbox_belongs_to_its_user),
    CASE(a_sandbox_that_a_program_locked_opens_again),
    CASE(a_planted_link_is_no_sandbox),
    CASE(paths_and_urls_are_made_of_the_settings),
    CASE(urls_encode_every_byte_exactly),
    CASE(urls_of_a_limited_time_are_signed),
    CASE(a_url_needs_the_token_of_the_name),
    CASE(a_secret_is_replaced_and_conversations_stay),
    CASE(a_damaged_name_secret_is_refused),
};
UNIT_TESTS(tests)
