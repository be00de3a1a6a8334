/* The engine's multiplexed output (frame.h), H-67. */
#include "config.h"

#include "common/base/buf.h"
#include "common/engine/frame.h"
#include "tests/unit/unit.h"

#include <string.h>

struct taken {
    struct buf text[2];
};

static void take(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    struct taken *t = ctx;

    assert_true(len > 0);
    buf_add(&t->text[stream], data, len);
}

static int setup(void **state)
{
    static struct taken taken;

    taken = (struct taken){.text = {BUF_INIT(1 << 20), BUF_INIT(1 << 20)}};
    *state = &taken;
    return 0;
}

static int teardown(void **state)
{
    struct taken *t = *state;

    buf_clear(&t->text[0]);
    buf_clear(&t->text[1]);
    return 0;
}

#define FRAME(stream, len) stream "\0\0\0\0\0\0" len

static const char two_streams[] = FRAME("\1", "\5") "hello" FRAME("\2", "\3") "bad" FRAME(
    "\1", "\0") FRAME("\1", "\1") "!";

static void frames_cut_anywhere_give_the_same_output(void **state)
{
    struct taken *t = *state;
    size_t len = sizeof two_streams - 1;

    for (size_t cut = 0; cut <= len; cut++) {
        struct docker_frame f = {0};
        struct frame_sink out = {take, t};
        struct err e = ERR_INIT;

        buf_reset(&t->text[0]);
        buf_reset(&t->text[1]);
        assert_int_equal(docker_frame_push(&f, two_streams, cut, &out, &e), 0);
        assert_int_equal(docker_frame_push(&f, two_streams + cut, len - cut, &out, &e), 0);
        assert_string_equal(buf_str(&t->text[ENGINE_STDOUT]), "hello!");
        assert_string_equal(buf_str(&t->text[ENGINE_STDERR]), "bad");
    }
}

static void single_bytes_are_enough(void **state)
{
    struct taken *t = *state;
    struct docker_frame f = {0};
    struct frame_sink out = {take, t};
    struct err e = ERR_INIT;

    for (size_t i = 0; i < sizeof two_streams - 1; i++)
        assert_int_equal(docker_frame_push(&f, two_streams + i, 1, &out, &e), 0);
    assert_string_equal(buf_str(&t->text[ENGINE_STDOUT]), "hello!");
}

static void output_that_looks_like_a_header_is_output(void **state)
{
    static const char text[] = FRAME("\1", "\x8") "\2\0\0\0\0\0\0\4" FRAME("\2", "\1") "x";
    struct taken *t = *state;
    struct docker_frame f = {0};
    struct frame_sink out = {take, t};
    struct err e = ERR_INIT;

    assert_int_equal(docker_frame_push(&f, text, sizeof text - 1, &out, &e), 0);
    assert_int_equal(t->text[ENGINE_STDOUT].len, 8);
    assert_memory_equal(t->text[ENGINE_STDOUT].data, "\2\0\0\0\0\0\0\4", 8);
    assert_string_equal(buf_str(&t->text[ENGINE_STDERR]), "x");
}

static void a_claim_of_four_gigabytes_passes_through_as_it_comes(void **state)
{
    static const char head[] = "\1\0\0\0\xff\xff\xff\xff";
    struct taken *t = *state;
    struct docker_frame f = {0};
    struct frame_sink out = {take, t};
    struct err e = ERR_INIT;

    assert_int_equal(docker_frame_push(&f, head, 8, &out, &e), 0);
    assert_int_equal(docker_frame_push(&f, "abc", 3, &out, &e), 0);
    assert_int_equal(f.left, UINT32_MAX - 3);
    assert_string_equal(buf_str(&t->text[ENGINE_STDOUT]), "abc");
}

static void unknown_streams_and_padding_are_refused(void **state)
{
    static const char *const heads[] = {"\0\0\0\0\0\0\0\1", "\3\0\0\0\0\0\0\1", "\1\1\0\0\0\0\0\1",
                                        "\1\0\0\1\0\0\0\1", "HTTP/1.1"};
    struct frame_sink out = {take, *state};

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct docker_frame f = {0};
        struct err e = ERR_INIT;

        assert_int_equal(docker_frame_push(&f, heads[i], 8, &out, &e), -1);
        assert_int_equal(e.kind, ERR_PROTOCOL);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(frames_cut_anywhere_give_the_same_output, setup, teardown),
    cmocka_unit_test_setup_teardown(single_bytes_are_enough, setup, teardown),
    cmocka_unit_test_setup_teardown(output_that_looks_like_a_header_is_output, setup, teardown),
    cmocka_unit_test_setup_teardown(a_claim_of_four_gigabytes_passes_through_as_it_comes, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(unknown_streams_and_padding_are_refused, setup, teardown),
};
UNIT_TESTS(tests)
