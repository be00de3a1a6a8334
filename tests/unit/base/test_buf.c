#include "config.h"

#include "common/base/buf.h"
#include "tests/unit/unit.h"

static void an_empty_buffer_reads_as_the_empty_string(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(10);
    assert_string_equal(buf_str(&b), "");
    assert_int_equal(b.len, 0);
    assert_true(buf_ok(&b));
    buf_clear(&b);
}

static void appends_follow_one_another_and_end_with_a_nul(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(1000);
    buf_add_str(&b, "one");
    buf_add_char(&b, ',');
    buf_add(&b, "t\0o", 3);
    buf_addf(&b, ",%d-%s", 3, "three");
    assert_true(buf_ok(&b));
    assert_int_equal(b.len, 15);
    assert_memory_equal(b.data, "one,t\0o,3-three", 16);
}

static void exactly_max_fits_and_one_more_poisons(void **state)
{
    (void)state;
    for (size_t max = 0; max < 300; max += 37) {
        AUTO_BUF struct buf b = BUF_INIT(max);
        for (size_t i = 0; i < max; i++)
            buf_add_char(&b, 'x');
        assert_true(buf_ok(&b));
        assert_int_equal(b.len, max);
        buf_add_char(&b, 'y');
        assert_false(buf_ok(&b));
        assert_int_equal(b.len, max);
        assert_true(b.cap <= max + 1);
    }
}

static void a_poisoned_buffer_ignores_appends_until_it_is_reset(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(4);
    buf_add_str(&b, "abc");
    buf_add_str(&b, "defg");
    buf_add_str(&b, "h");
    assert_false(buf_ok(&b));
    assert_string_equal(buf_str(&b), "abc");
    assert_null(buf_reserve(&b, 0));
    buf_reset(&b);
    assert_true(buf_ok(&b));
    assert_string_equal(buf_str(&b), "");
    buf_add_str(&b, "defg");
    assert_string_equal(buf_str(&b), "defg");
}

static void adding_nothing_is_allowed_at_max(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(0);
    buf_add(&b, NULL, 0);
    buf_add_str(&b, "");
    buf_addf(&b, "%s", "");
    assert_true(buf_ok(&b));
    assert_string_equal(buf_str(&b), "");
}

static void formatted_text_over_max_is_not_added_in_part(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(5);
    buf_addf(&b, "%d", 123);
    buf_addf(&b, "%s", "456");
    assert_false(buf_ok(&b));
    assert_string_equal(buf_str(&b), "123");
}

static void lengths_near_the_end_of_size_t_poison(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(100);
    buf_add_str(&b, "abc");
    assert_null(buf_reserve(&b, SIZE_MAX));
    assert_false(buf_ok(&b));
    AUTO_BUF struct buf endless = BUF_INIT(SIZE_MAX);
    assert_null(buf_reserve(&endless, 1));
}

static void reserved_room_becomes_content_with_grew(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(100);
    buf_add_str(&b, "ab");
    char *room = buf_reserve(&b, 98);
    assert_non_null(room);
    memset(room, 'z', 98);
    buf_grew(&b, 3);
    assert_string_equal(buf_str(&b), "abzzz");
    assert_non_null(buf_reserve(&b, 95));
    assert_null(buf_reserve(&b, 96));
}

static void dropping_the_front_moves_the_rest(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(100);
    buf_drop_front(&b, 0);
    buf_add_str(&b, "abcdef");
    buf_drop_front(&b, 2);
    assert_string_equal(buf_str(&b), "cdef");
    buf_drop_front(&b, 4);
    assert_string_equal(buf_str(&b), "");
    assert_int_equal(b.len, 0);
}

static void taking_hands_over_and_leaves_an_empty_buffer(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(10);
    AUTO_FREE char *nothing = buf_take(&b);
    assert_string_equal(nothing, "");
    buf_add_str(&b, "mine");
    AUTO_FREE char *mine = buf_take(&b);
    assert_string_equal(mine, "mine");
    assert_null(b.data);
    assert_int_equal(b.max, 10);
    buf_add_str(&b, "0123456789");
    assert_true(buf_ok(&b));
    buf_clear(&b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_empty_buffer_reads_as_the_empty_string),
    cmocka_unit_test(appends_follow_one_another_and_end_with_a_nul),
    cmocka_unit_test(exactly_max_fits_and_one_more_poisons),
    cmocka_unit_test(a_poisoned_buffer_ignores_appends_until_it_is_reset),
    cmocka_unit_test(adding_nothing_is_allowed_at_max),
    cmocka_unit_test(formatted_text_over_max_is_not_added_in_part),
    cmocka_unit_test(lengths_near_the_end_of_size_t_poison),
    cmocka_unit_test(reserved_room_becomes_content_with_grew),
    cmocka_unit_test(dropping_the_front_moves_the_rest),
    cmocka_unit_test(taking_hands_over_and_leaves_an_empty_buffer),
};
UNIT_TESTS(tests)
