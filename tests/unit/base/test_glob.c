/* Patterns for names: each construct, bounds, and the same answers as a slow and simple matcher. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/glob.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static bool match(const char *pattern, const char *name)
{
    struct glob g;
    struct err e = ERR_INIT;

    assert_works(glob_compile("glob", pattern, &g, &e), e);
    return glob_matches(&g, name);
}

static void each_construct_matches_what_it_says(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool want;
    } cases[] = {
        {"*.csv", "a.csv", true},
        {"*.csv", "deep/er/a.csv", true},
        {"*.csv", "a.csv.gz", false},
        {"*.csv", ".csv", true},
        {"*", "x", true},
        {"*", ".hidden", true},
        {"a*", "b/a1", true},
        {"a*", "a/b", false},
        {"data/*.csv", "data/a.csv", true},
        {"data/*.csv", "data/x/a.csv", false},
        {"data/*.csv", "more/data/a.csv", false},
        {"**/*.csv", "a.csv", true},
        {"**/*.csv", "x/y/a.csv", true},
        {"**/a.csv", "xa.csv", false},
        {"**/a.csv", "x/ya.csv", false},
        {"**/**/a.csv", "a.csv", true},
        {"a/**/b", "a/b", true},
        {"a/**/b", "a/x/y/b", true},
        {"a/**/b", "a/xb", false},
        {"a/**/b", "ab", false},
        {"a/**", "a/x/y", true},
        {"a/**", "a", false},
        {"a/**", "ab/x", false},
        {"a/x**z", "a/x/y/z", true},
        {"?", "x", true},
        {"?", "", false},
        {"??", "x", false},
        {"?", "\xc3\xa4", true},
        {"??", "\xc3\xa4", false},
        {"?x", "\xf0\x9f\x98\x80x", true},
        {"a/?", "a/b", true},
        {"a?b/", "a/b/", false},
        {"[abc]", "b", true},
        {"[abc]", "d", false},
        {"[a-c]x", "cx", true},
        {"[!a-c]x", "cx", false},
        {"[!a-c]x", "dx", true},
        {"[^a]", "\xc3\xa4", true},
        {"[]]", "]", true},
        {"[!]]", "]", false},
        {"[a-]", "-", true},
        {"a[!b]c/", "a/c/", false},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"\\[a]", "[a]", true},
        {"a\nb", "a\nb", true},
        {"*b", "a\nb", true},
        {"*x", "\xff\xfex", true},
        {"*", "", true},
        {"-*", "-rf", true},
        {"*a*b*c*", "xxaxxbxxcxx", true},
        {"*a*b*c*", "xxaxxcxxbxx", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (match(cases[i].pattern, cases[i].name) != cases[i].want)
            fail_msg("'%s' on '%s'", cases[i].pattern, cases[i].name);
}

static void what_is_no_pattern_is_refused_naming_the_field(void **state)
{
    static const char *const bad[] = {"", "[", "[a", "[!", "[]", "[b-a]", "[\xc3\xa4]", "a\\"};
    char longest[GLOB_MAX + 2];
    struct glob g;
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (glob_compile("glob", bad[i], &g, &e) != -1)
            fail_msg("accepted: '%s'", bad[i]);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_memory_equal(e.text, "glob", 4);
    }
    memset(longest, 'a', sizeof(longest));
    longest[GLOB_MAX + 1] = '\0';
    assert_int_equal(glob_compile("glob", longest, &g, &e), -1);
    longest[GLOB_MAX] = '\0';
    assert_works(glob_compile("glob", longest, &g, &e), e);
    assert_true(glob_matches(&g, longest));
}

/* The same language over '*', '**', '?' and letters, by going back: fine for short texts. */
static bool slow(const char *start, const char *p, const char *s, bool part_begins)
{
    if (!*p)
        return !*s;
    if (p[0] == '*' && p[1] == '*') {
        const char *rest = p + strspn(p, "*");
        if ((p == start || p[-1] == '/') && *rest == '/') {
            if (slow(start, rest + 1, s, true))
                return true;
            for (const char *q = s; *q; q++)
                if (*q == '/' && slow(start, rest + 1, q + 1, true))
                    return true;
            return false;
        }
        for (;; s++) {
            if (slow(start, rest, s, false))
                return true;
            if (!*s)
                return false;
        }
    }
    if (*p == '*') {
        for (;; s++) {
            if (slow(start, p + 1, s, false))
                return true;
            if (!*s || *s == '/')
                return false;
        }
    }
    if (!*s || (*p == '?' ? *s == '/' : *p != *s))
        return false;
    return slow(start, p + 1, s + 1, part_begins);
}

static void fast_and_slow_agree(void **state)
{
    static const char letters[] = "aab/**?";
    unsigned seed = 1;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        char pattern[10] = "", name[10] = "";
        size_t m = 1 + (size_t)rand_r(&seed) % 8, n = (size_t)rand_r(&seed) % 9;

        for (size_t k = 0; k < m; k++)
            pattern[k] = letters[(size_t)rand_r(&seed) % 7];
        for (size_t k = 0; k < n; k++)
            name[k] = letters[(size_t)rand_r(&seed) % 4];
        const char *last = strchr(pattern, '/') ? NULL : strrchr(name, '/');
        bool want = slow(pattern, pattern, last ? last + 1 : name, true);
        if (match(pattern, name) != want)
            fail_msg("'%s' on '%s': want %d", pattern, name, want);
    }
}

/* With going back this would take longer than a client waits. */
static void no_pattern_takes_long(void **state)
{
    char pattern[GLOB_MAX + 1] = "", name[1025];

    (void)state;
    for (size_t i = 0; i + 2 < sizeof(pattern); i += 2)
        memcpy(pattern + i, "*a", 3);
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    name[sizeof(name) - 2] = 'b';
    assert_false(match(pattern, name));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_construct_matches_what_it_says),
    cmocka_unit_test(what_is_no_pattern_is_refused_naming_the_field),
    cmocka_unit_test(fast_and_slow_agree),
    cmocka_unit_test(no_pattern_takes_long),
};
UNIT_TESTS(tests)
