/* A conversation's record in the store: written and read as the same, and nothing damaged taken. */
#include "config.h"

#include "tests/unit/unit.h"

#include "common/base/mem.h"
#include "common/store/manifest.h"

#include <string.h>

#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD                                                                                       \
    "{\"version\":1,\"generation\":7,\"node\":\"n2\",\"tenant\":\"default\","                      \
    "\"conversationId\":\"talk\",\"lastUsedAt\":1700000000}\n"
#define FILE_LINE(name, more)                                                                      \
    "{\"file\":\"" name "\",\"mode\":420,\"time\":1,\"size\":10,\"sum\":\"" SUM "\"" more "}\n"

static int parse(const char *text, struct manifest *out, struct err *e)
{
    return manifest_parse(text, strlen(text), out, e);
}

static void add(struct manifest *m, enum manifest_type type, const char *name)
{
    struct manifest_entry *entry = manifest_add(m);

    entry->type = type;
    entry->name = mem_strdup(name);
    entry->mode = type == MANIFEST_LINK ? 0 : 0640;
    if (type == MANIFEST_LINK)
        entry->target = mem_strdup("../../etc/passwd");
    else
        entry->mtime = (struct timespec){.tv_sec = -2, .tv_nsec = 999999999};
    if (type != MANIFEST_FILE)
        return;
    memcpy(entry->sum, SUM, sizeof entry->sum);
    entry->size = 1000;
    entry->bytes = 30;
    entry->n_extents = 2;
    entry->extents = mem_array(2, sizeof *entry->extents);
    entry->extents[0] = (struct extent){10, 10};
    entry->extents[1] = (struct extent){980, 20};
    entry->ino = 77;
    entry->ctime_ns = 123456789012;
}

static void test_is_the_same_again(void **state)
{
    static const char *const names[] = {"new\nline", "\x01\xff\xfe", "%2e%2e", "a b/c\"d\\"};
    AUTO_MANIFEST struct manifest m = {0}, again = {0};
    AUTO_BUF struct buf text = BUF_INIT(65536), text2 = BUF_INIT(65536);
    struct err e = ERR_INIT;

    (void)state;
    m.generation = 5;
    m.node = mem_strdup("n1");
    m.tenant = mem_strdup("t\xc3\xa4");
    m.conversation = mem_strdup("c");
    m.last_used = 1700000000;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        add(&m, (enum manifest_type)(i % MANIFEST_TYPES), names[i]);
    assert_int_equal(manifest_write(&m, true, &text), 0);
    assert_works(manifest_parse(text.data, text.len, &again, &e), e);
    assert_int_equal(again.n, m.n);
    for (size_t i = 0; i < m.n; i++)
        assert_string_equal(again.entries[i].name, names[i]);
    assert_int_equal(again.entries[1].ino, 77);
    assert_int_equal(again.entries[1].extents[1].at, 980);
    assert_int_equal(again.entries[0].mtime.tv_sec, -2);
    assert_string_equal(again.entries[2].target, "../../etc/passwd");
    assert_int_equal(manifest_write(&again, true, &text2), 0);
    assert_string_equal(text.data, text2.data);
    /* What the store gets says nothing of inodes here. */
    buf_reset(&text);
    assert_int_equal(manifest_write(&m, false, &text), 0);
    assert_null(strstr(text.data, "ino"));
}

static void test_damaged(void **state)
{
    static const char *const texts[] = {
        "",
        "{}\n{\"end\":0}\n",
        HEAD,
        HEAD "{\"end\":1}\n",
        HEAD "{\"end\":0}",
        HEAD "{\"end\":0}\nmore\n",
        HEAD FILE_LINE("a", ""),
        HEAD FILE_LINE("..", "") "{\"end\":1}\n",
        HEAD FILE_LINE("a/../b", "") "{\"end\":1}\n",
        HEAD FILE_LINE("/a", "") "{\"end\":1}\n",
        HEAD FILE_LINE("a%00b", "") "{\"end\":1}\n",
        HEAD FILE_LINE("a//b", "") "{\"end\":1}\n",
        HEAD FILE_LINE("", "") "{\"end\":1}\n",
        HEAD FILE_LINE("a", ",\"data\":[0,11]") "{\"end\":1}\n",
        HEAD FILE_LINE("a", ",\"data\":[5,2,4,1]") "{\"end\":1}\n",
        HEAD FILE_LINE("a", ",\"data\":[0,0]") "{\"end\":1}\n",
        HEAD FILE_LINE("a", ",\"data\":[0]") "{\"end\":1}\n",
        HEAD FILE_LINE("a", ",\"data\":[-1,2]") "{\"end\":1}\n",
        HEAD "{\"file\":\"a\",\"mode\":420,\"time\":1,\"size\":-1,\"sum\":\"" SUM "\"}\n"
             "{\"end\":1}\n",
        HEAD "{\"file\":\"a\",\"mode\":2541,\"time\":1,\"size\":1,\"sum\":\"" SUM "\"}\n"
             "{\"end\":1}\n",
        HEAD "{\"file\":\"a\",\"mode\":420,\"time\":1,\"size\":1,\"sum\":\"../" SUM "\"}\n"
             "{\"end\":1}\n",
        HEAD "{\"link\":\"a\"}\n{\"end\":1}\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO_MANIFEST struct manifest m = {0};
        struct err e = ERR_INIT;
        if (parse(texts[i], &m, &e) == 0)
            fail_msg("taken: %s", texts[i]);
        assert_string_equal(err_kind_name(e.kind), "invalid");
    }
}

static void test_finds(void **state)
{
    AUTO_MANIFEST struct manifest m = {0};
    struct err e = ERR_INIT;
    size_t n;

    (void)state;
    assert_works(parse(HEAD FILE_LINE("b", "") FILE_LINE("a", "")
                           FILE_LINE("c%2Fd", "") "{\"end\":3}\n",
                       &m, &e),
                 e);
    AUTO_FREE const struct manifest_entry **index = manifest_index(&m);
    AUTO_FREE const char **sums = manifest_sums(&m, &n);
    assert_string_equal(manifest_find(index, m.n, "a")->name, "a");
    assert_string_equal(manifest_find(index, m.n, "c/d")->name, "c/d");
    assert_null(manifest_find(index, m.n, "d"));
    assert_int_equal(n, 1);
    assert_true(manifest_has_sum(sums, n, SUM));
    assert_int_equal(manifest_usage(&m).bytes, 30);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_is_the_same_again),
    cmocka_unit_test(test_damaged),
    cmocka_unit_test(test_finds),
};
UNIT_TESTS(tests)
