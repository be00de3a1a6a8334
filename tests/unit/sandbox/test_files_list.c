/* Listing a folder page by page. */
#include "config.h"

#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/sandbox/files/files.h"

#define ENTRIES_MANY 100000

static int page(struct fixture *f, const struct files_query *q, struct files_page *out)
{
    return files_list(&f->sb, q, out, &f->e);
}

/* All pages of the given size, "name " each; folders with a slash. */
static void read_all(struct fixture *f, struct files_query q, const char *pattern, struct buf *out)
{
    AUTO_FREE char *after = mem_strdup("");
    struct glob glob;

    if (pattern) {
        assert_int_equal(glob_compile("glob", pattern, &glob, &f->e), 0);
        q.glob = &glob;
    }
    buf_reset(out);
    for (int pages = 0; after; pages++) {
        AUTO_FILES_PAGE struct files_page p = {0};

        assert_true(pages < 1000);
        q.after = after;
        assert_int_equal(page(f, &q, &p), 0);
        assert_true(p.n <= q.max);
        for (size_t i = 0; i < p.n; i++)
            buf_addf(out, "%s%s ", p.rows[i].name, S_ISDIR(p.rows[i].st.st_mode) ? "/" : "");
        free(after);
        after = TAKE_PTR(p.next);
    }
}

static void plant_tree(struct fixture *f)
{
    assert_int_equal(mkdirat(f->sb.fd, "b", 0755), 0);
    assert_int_equal(mkdirat(f->sb.fd, "b/c", 0755), 0);
    assert_int_equal(mkdirat(f->sb.fd, "empty", 0755), 0);
    fixture_plant(f, "a.csv", "1");
    fixture_plant(f, "b-.csv", "12");
    fixture_plant(f, "b/1.csv", "123");
    fixture_plant(f, "b/c/2.csv", "1234");
    fixture_plant(f, "b/c/3.txt", "12345");
    fixture_plant(f, "z", "");
}

static void what_begins_with_a_dot_at_the_top_is_listed_when_it_is_asked_for(void **state)
{
    struct fixture *f = *state;
    AUTO_BUF struct buf got = BUF_INIT(10000);
    static const struct {
        const char *folder;
        bool hidden;
        const char *want;
    } cases[] = {
        {"", false, "a/ a/.own z "},
        {"", true, ".config/ .config/x .env a/ a/.own z "},
        {"a", false, "a/.own "},
        {".config", false, ".config/x "},
    };

    assert_int_equal(fixture_put(f, ".config/x", "1"), 0);
    assert_int_equal(fixture_put(f, ".env", "1"), 0);
    assert_int_equal(fixture_put(f, "a/.own", "1"), 0);
    assert_int_equal(fixture_put(f, "z", "1"), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t max = 1; max <= 7; max++) {
            const struct files_query q = {.folder = cases[i].folder,
                                          .recursive = true,
                                          .hidden = cases[i].hidden,
                                          .max = max};
            read_all(f, q, NULL, &got);
            assert_string_equal(buf_str(&got), cases[i].want);
        }
    }
}

static void every_page_size_tells_the_same(void **state)
{
    struct fixture *f = *state;
    AUTO_BUF struct buf got = BUF_INIT(10000);
    static const struct {
        const char *folder, *pattern;
        bool recursive;
        const char *want;
    } cases[] = {
        {"", NULL, false, "a.csv b/ b-.csv empty/ z "},
        {"", NULL, true, "a.csv b/ b/1.csv b/c/ b/c/2.csv b/c/3.txt b-.csv empty/ z "},
        {"b", NULL, true, "b/1.csv b/c/ b/c/2.csv b/c/3.txt "},
        {"b/c", NULL, false, "b/c/2.csv b/c/3.txt "},
        {"empty", NULL, true, ""},
        {"", "*.csv", true, "a.csv b/1.csv b/c/2.csv b-.csv "},
        {"", "*.csv", false, "a.csv b-.csv "},
        {"", "b/*", true, "b/1.csv b/c/ "},
        {"b", "c/*", true, "b/c/2.csv b/c/3.txt "},
        {"", "**/c/**", true, "b/c/2.csv b/c/3.txt "},
        {"", "nothing", true, ""},
    };

    plant_tree(f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t max = 1; max <= 10; max++) {
            const struct files_query q = {
                .folder = cases[i].folder, .recursive = cases[i].recursive, .max = max};
            read_all(f, q, cases[i].pattern, &got);
            assert_string_equal(buf_str(&got), cases[i].want);
        }
    }
}

static void links_and_others_are_named_and_never_followed(void **state)
{
    struct fixture *f = *state;
    AUTO_FILES_PAGE struct files_page p = {0};
    const struct files_query q = {.folder = "", .recursive = true, .after = "", .max = 10};

    assert_int_equal(symlinkat(f->dir, f->sb.fd, "way"), 0);
    assert_int_equal(symlinkat(".", f->sb.fd, "loop"), 0);
    assert_int_equal(mkfifoat(f->sb.fd, "fifo", 0666), 0);
    assert_int_equal(page(f, &q, &p), 0);
    assert_int_equal(p.n, 3);
    assert_true(S_ISFIFO(p.rows[0].st.st_mode));
    assert_true(S_ISLNK(p.rows[1].st.st_mode));
    assert_true(S_ISLNK(p.rows[2].st.st_mode));
    static const char *const bad[] = {"way", "loop", "fifo", "absent", "loop/x"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct files_query other = {.folder = bad[i], .after = "", .max = 10};
        assert_int_equal(page(f, &other, &p), -1);
        assert_int_equal(f->e.kind, ERR_NOT_FOUND);
    }
}

static void odd_names_are_listed_as_they_are(void **state)
{
    struct fixture *f = *state;
    AUTO_BUF struct buf got = BUF_INIT(1000);
    const struct files_query q = {.folder = "", .max = 1};

    fixture_plant(f, "a\nb", "");
    fixture_plant(f, "-rf", "");
    fixture_plant(f, "\"q'", "");
    fixture_plant(f, "bad\xff", "");
    read_all(f, q, NULL, &got);
    assert_string_equal(buf_str(&got), "\"q' -rf a\nb bad\xff ");
}

static void a_place_goes_on_behind_what_is_gone_meanwhile(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *after, *want;
    } cases[] = {
        {"b/c/2.csv", "b/c/3.txt "},
        {"b/c/2zzz", "b/c/3.txt "},
        {"b/gone/x/y", "b-.csv "},
        {"a.csv/x", "b "},
        {"way/x", "z "},
    };

    plant_tree(f);
    assert_int_equal(symlinkat(f->dir, f->sb.fd, "way"), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FILES_PAGE struct files_page p = {0};
        const struct files_query q = {
            .folder = "", .recursive = true, .after = cases[i].after, .max = 1};
        assert_int_equal(page(f, &q, &p), 0);
        assert_int_equal(p.n, 1);
        assert_memory_equal(p.rows[0].name, cases[i].want, strlen(cases[i].want) - 1);
    }
}

static void what_is_no_place_is_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"..", "/etc", "a/../../b", "a//b", "./x", "a/"};
    char longest[FILES_NAME_MAX + 2];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO_FILES_PAGE struct files_page p = {0};
        const struct files_query q = {.folder = "", .recursive = true, .after = bad[i], .max = 1};
        assert_int_equal(page(f, &q, &p), -1);
        assert_int_equal(f->e.kind, ERR_INVALID);
    }
    for (size_t i = 0; i < sizeof(longest) - 1; i++)
        longest[i] = i % 2 ? '/' : 'a';
    longest[sizeof(longest) - 1] = '\0';
    AUTO_FILES_PAGE struct files_page p = {0};
    const struct files_query q = {.folder = "", .recursive = true, .after = longest, .max = 1};
    assert_int_equal(page(f, &q, &p), -1);
}

/* Deeper than a name may be: passed over, and said. */
static void what_is_too_deep_is_said(void **state)
{
    struct fixture *f = *state;
    AUTO_FILES_PAGE struct files_page p = {0};
    AUTO_FILES_PAGE struct files_page low = {0};
    AUTO_FREE char *deep = mem_strdup("d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d");
    for (size_t end = 1; end <= strlen(deep); end += 2) {
        AUTO_FREE char *folder = mem_strndup(deep, end);
        assert_int_equal(mkdirat(f->sb.fd, folder, 0755), 0);
    }
    const struct files_query all = {.folder = "", .recursive = true, .after = "", .max = 100};
    assert_int_equal(page(f, &all, &p), 0);
    assert_int_equal(p.n, FILES_DEPTH_MAX);
    assert_true(p.incomplete);
    assert_string_equal(p.rows[FILES_DEPTH_MAX - 1].name, deep);
    fixture_plant(f, "d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/file", "");
    const struct files_query lowest = {.folder = deep, .after = "", .max = 100};
    assert_int_equal(page(f, &lowest, &low), 0);
    assert_int_equal(low.n, 0);
    assert_true(low.incomplete);
}

/* Below a folder whose own name is as long as a name may be, no file could be asked for. */
static void what_has_too_long_a_name_is_said(void **state)
{
    struct fixture *f = *state;
    AUTO_FILES_PAGE struct files_page p = {0};
    char name[FILES_NAME_MAX + 1];
    memset(name, 'd', FILES_NAME_MAX);
    name[FILES_NAME_MAX] = '\0';
    for (size_t end = 204; end < FILES_NAME_MAX; end += 205) { /* five parts */
        name[end] = '\0';
        assert_int_equal(mkdirat(f->sb.fd, name, 0755), 0);
        name[end] = '/';
    }
    assert_int_equal(mkdirat(f->sb.fd, name, 0755), 0);
    AUTO_FD int folder = openat(f->sb.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(folder, "below", 0755), 0);
    const struct files_query q = {.folder = name, .recursive = true, .after = "", .max = 100};
    assert_int_equal(page(f, &q, &p), 0);
    assert_int_equal(p.n, 0);
    assert_true(p.incomplete);
}

/* Bounded memory is what chunks promise; bounded time, that no page takes seconds. */
static void a_hundred_thousand_files_come_page_by_page(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *after = mem_strdup("");
    char last[16] = "";
    size_t n = 0;
    int64_t slowest = 0;

    for (int i = 0; i < ENTRIES_MANY; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%06d", i);
        assert_int_equal(mknodat(f->sb.fd, name, S_IFREG | 0644, 0), 0);
    }
    while (after) {
        AUTO_FILES_PAGE struct files_page p = {0};
        const struct files_query q = {
            .folder = "", .recursive = n % 2000 == 0, .after = after, .max = FILES_LIST_MAX};
        int64_t start = clock_mono_ms();
        assert_int_equal(page(f, &q, &p), 0);
        slowest = clock_mono_ms() - start > slowest ? clock_mono_ms() - start : slowest;
        for (size_t i = 0; i < p.n; i++) {
            assert_true(strcmp(p.rows[i].name, last) > 0);
            snprintf(last, sizeof(last), "%s", p.rows[i].name);
        }
        n += p.n;
        free(after);
        after = TAKE_PTR(p.next);
    }
    assert_int_equal(n, ENTRIES_MANY);
    assert_true(slowest < 10000);
}

/* More than a page may look at: in folders side by side it goes on, in one folder it is said. */
static void a_page_that_looked_at_enough_ends_early(void **state)
{
    struct fixture *f = *state;
    AUTO_BUF struct buf got = BUF_INIT(100);
    const struct files_query q = {.folder = "", .recursive = true, .max = 1};

    for (int folder = 0; folder < 3; folder++) {
        char name[32];
        snprintf(name, sizeof(name), "d%d", folder);
        assert_int_equal(mkdirat(f->sb.fd, name, 0755), 0);
        for (int i = 0; i < 20000; i++) {
            snprintf(name, sizeof(name), "d%d/%d", folder, i);
            assert_int_equal(mkdirat(f->sb.fd, name, 0755), 0);
        }
    }
    read_all(f, q, "d2/19999", &got);
    assert_string_equal(buf_str(&got), "d2/19999/ ");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
#define BIG(fn)  cmocka_unit_test_setup_teardown(fn, fixture_setup_big, fixture_teardown)
static const struct CMUnitTest tests[] = {
    CASE(every_page_size_tells_the_same),
    CASE(what_begins_with_a_dot_at_the_top_is_listed_when_it_is_asked_for),
    CASE(links_and_others_are_named_and_never_followed),
    CASE(odd_names_are_listed_as_they_are),
    CASE(a_place_goes_on_behind_what_is_gone_meanwhile),
    CASE(what_is_no_place_is_refused),
    CASE(what_is_too_deep_is_said),
    CASE(what_has_too_long_a_name_is_said),
    BIG(a_hundred_thousand_files_come_page_by_page),
    BIG(a_page_that_looked_at_enough_ends_early),
};
UNIT_TESTS(tests)
