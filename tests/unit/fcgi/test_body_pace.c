/* How slowly a body may come. */
#include "config.h"

#include "fcgi/http/body_pace.h"
#include "tests/unit/unit.h"

#define LOOK_MS (BODY_LOOK_S * 1000)
#define LEAST   ((uint64_t)BODY_BYTES_S * BODY_LOOK_S)

/* So many bytes in each of n pieces, after so much waiting. */
static int come(struct body_pace *p, int n, uint64_t bytes, int64_t waited_ms, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = body_pace_note(p, bytes, waited_ms, e);
    return rc;
}

/* The attack: most of the body at once, then a byte every 6 seconds. */
static void a_byte_now_and_then_is_too_slow_however_much_has_come(void **state)
{
    struct body_pace p = {0};
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(come(&p, 900, 1 << 20, 10, &e), 0);
    assert_int_equal(come(&p, 20, 1, 6000, &e), -1);
    assert_int_equal(e.kind, ERR_CANCELLED);
    assert_contains(e.text, "too slowly");
    assert_true(p.all_ms <= 9000 + 2 * LOOK_MS);
}

static void a_slow_line_is_fast_enough(void **state)
{
    struct body_pace p = {0};
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(come(&p, 100, LEAST / 10, LOOK_MS / 10, &e), 0);
    assert_int_equal(come(&p, 1, LEAST, LOOK_MS, &e), 0); /* in one piece, after a pause */
    assert_int_equal(come(&p, 1, LEAST - 1, LOOK_MS, &e), -1);
}

static void a_small_body_may_take_its_time(void **state)
{
    struct body_pace p = {0};
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(come(&p, 5, 1, LOOK_MS / 6, &e), 0);
    assert_int_equal(body_pace_note(&p, 0, LOOK_MS, &e), 0); /* its end */
}

static void no_body_takes_longer_than_the_longest(void **state)
{
    struct body_pace p = {0};
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(come(&p, BODY_LONGEST_S / BODY_LOOK_S, LEAST, LOOK_MS, &e), 0);
    assert_int_equal(come(&p, 1, LEAST, LOOK_MS, &e), -1);
    assert_contains(e.text, "longer than 3600 s");
}

static long read_nothing(void *ctx, char *data, size_t len)
{
    (void)ctx;
    (void)data;
    (void)len;
    return -1;
}

static void what_breaks_off_is_not_slow(void **state)
{
    const struct http_source source = {.read = read_nothing};
    struct body_pace p = {0};
    struct err e = ERR_INIT;
    char byte;

    (void)state;
    assert_int_equal(body_read(&p, &source, &byte, 1, &e), -1);
    assert_int_equal(e.kind, ERR_INVALID);
    p.look_ms = LOOK_MS; /* the source has waited in vain */
    assert_int_equal(body_read(&p, &source, &byte, 1, &e), -1);
    assert_int_equal(e.kind, ERR_CANCELLED);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_byte_now_and_then_is_too_slow_however_much_has_come),
    cmocka_unit_test(a_slow_line_is_fast_enough),
    cmocka_unit_test(a_small_body_may_take_its_time),
    cmocka_unit_test(no_body_takes_longer_than_the_longest),
    cmocka_unit_test(what_breaks_off_is_not_slow),
};
UNIT_TESTS(tests)
