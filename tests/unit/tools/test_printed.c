/* What a program printed, whole and in brief. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/tools/runs/printed.h"
#include "tests/unit/unit.h"

static void assert_printed(bool brief, const char *text, size_t len, size_t room, size_t head,
                           const char *wanted)
{
    AUTO_BUF struct buf out = BUF_INIT(100000);

    assert_int_equal(printed_add(&out, text, len, room, brief), head);
    assert_string_equal(buf_str(&out), wanted);
}

static void assert_brief(const char *text, const char *wanted)
{
    assert_printed(true, text, strlen(text), 10000, 0, wanted);
}

static void long_text_keeps_its_head_and_its_tail(void **state)
{
    (void)state;
    for (int brief = 0; brief <= 1; brief++) {
        assert_printed(brief, "", 0, 10, 0, "");
        assert_printed(brief, "0123456789", 10, 10, 0, "0123456789");
        assert_printed(brief, "0123456789abc", 13, 10, 5,
                       "01234\n[... 3 bytes left out ...]\n89abc");
        /* At whole lines where one ends nearby, at whole characters else. */
        assert_printed(brief, "01234567\n9abcdefghijklmno\n01234567", 34, 20, 9,
                       "01234567\n[... 17 bytes left out ...]\n01234567");
        assert_printed(brief, "\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC", 8, 6, 2,
                       "\xC3\xBC\n[... 4 bytes left out ...]\n\xC3\xBC");
    }
}

/* 60,000 bytes of a bar that is drawn over, then a table. */
static void what_is_short_in_brief_leaves_room_for_the_rest(void **state)
{
    AUTO_BUF struct buf text = BUF_INIT(100000), out = BUF_INIT(100000);
    size_t head;

    (void)state;
    for (int i = 0; i < 1000; i++)
        buf_addf(&text, "\r%3d%%|%-54d", i / 10, i);
    buf_add_char(&text, '\n');
    for (int i = 0; i < 1000; i++)
        buf_addf(&text, "row %04d of a table\n", i);
    head = printed_add(&out, text.data, text.len, 16384, true);
    assert_true(out.len <= 16384 + 100);
    assert_true(head > 60000 / 2);
    assert_contains(buf_str(&out), " bytes left out ...]\n");
    assert_contains(buf_str(&out), "row 0999");
    buf_reset(&out);
    assert_true(printed_add(&out, text.data, text.len, 1, true) == 0);
    for (size_t room = 1; room < text.len; room *= 3) /* whatever the room is, it ends */
        printed_add(&out, text.data, text.len, room, true);
}

static void what_steers_a_terminal_is_left_out(void **state)
{
    static const char steering[] = "a\033[1;31mred\033[0m\033]0;t\a\tb\r\n\x7F";
    static const char wanted[] = "ared\xEF\xBF\xBD]0;t\xEF\xBF\xBD\tb\r\n\xEF\xBF\xBD";

    (void)state;
    assert_printed(false, steering, sizeof steering - 1, 100, 0, wanted);
    assert_printed(false, "\033[12", 4, 100, 0, "\xEF\xBF\xBD[12");
    assert_printed(false, "a\0b", 3, 100, 0,
                   "a\xEF\xBF\xBD"
                   "b");
    assert_brief("\033[31mred\033[0m\a", "red\xEF\xBF\xBD");
}

static void a_line_is_shown_as_it_was_drawn_last(void **state)
{
    (void)state;
    assert_brief(" 10%\r 50%\r100%\ndone\n", "100%\ndone\n");
    assert_brief("long line\rshort\n", "shortline\n");
    assert_brief("long line\r\033[Kshort\n", "short\n");
    assert_brief("long line\033[2Kshort\b\b\n", "short\n");
    assert_brief("a\r\nb\r\n", "a\nb\n");
    assert_brief("x 1%\b\b2%   \n", "x 2%\n");
    assert_brief("\xC3\xBC\xC3\xBC\rx", "x\xC3\xBC");
    assert_printed(true, "1%\r2%\r3%\r4%\r5%\r6%\r7%", 20, 10, 0, "7%");
}

static void equal_lines_are_counted_where_that_saves(void **state)
{
    (void)state;
    assert_brief("findfont: no Arial here\nfindfont: no Arial here\nfindfont: no Arial here\nb\n",
                 "findfont: no Arial here (3 times)\nb\n");
    assert_brief("1\n1\n1\n", "1\n1\n1\n");
    assert_brief("\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\nx",
                 "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\nx");
    assert_brief("yes no maybe yes no maybe\nyes no maybe yes no maybe",
                 "yes no maybe yes no maybe (2 times)");
}

#define HEADER "Traceback (most recent call last):\n"
#define LIBRARY                                                                                    \
    "  File \"/usr/lib/python3/dist-packages/requests/api.py\", line 73, in get\n"                 \
    "    return request(\"get\", url)\n           ~~~^^^\n"
#define DURING "\nDuring handling of the above exception, another exception occurred:\n\n"

static void a_traceback_is_the_programs_own_frames_and_the_exception(void **state)
{
    (void)state;
    assert_brief(
        "begun\n" HEADER "  File \"/data/.script.py\", line 3, in <module>\n    f(\n"
        "    ~^\n        1,\n    )\n  File \"/data/own/a.py\", line 7, in f\n    get(x)\n" LIBRARY
        "ValueError: no\nmore of it\n",
        "begun\nline 3: f(\nown/a.py line 7, in f: get(x)\nValueError: no\nmore of it\n");
    assert_brief(HEADER LIBRARY "socket.gaierror: [Errno -3] no name" DURING HEADER LIBRARY
                                "KeyError: 'a'" DURING HEADER
                                "  File \"<cell 2>\", line 1, in g\n    requests.get()\n" LIBRARY
                                "ConnectionError: failed ([Errno -3] no name)",
                 "first: KeyError: 'a'\n<cell 2> line 1, in g: requests.get()\n"
                 "ConnectionError: failed ([Errno -3] no name)");
    /* Behind a prompt. */
    assert_brief("Name? " HEADER "  File \"/data/.script.py\", line 1, in <module>\n"
                 "    input('Name? ')\nEOFError: EOF\n",
                 "Name? \nline 1: input('Name? ')\nEOFError: EOF\n");
    /* Of a program that has none of its own, where it ended. */
    assert_brief(HEADER LIBRARY "ValueError\n",
                 "/usr/lib/python3/dist-packages/requests/api.py line 73, in get: "
                 "return request(\"get\", url)\nValueError\n");
    assert_brief(HEADER "  File \"/data/.script.py\", line 1, in <module>\n    import own\n"
                        "  File \"/data/own.py\", line 1\n    x = (\n        ^\nSyntaxError: no\n",
                 "line 1: import own\n  File \"/data/own.py\", line 1\n    x = (\n        ^\n"
                 "SyntaxError: no\n");
}

static void what_is_no_traceback_stays(void **state)
{
    static const char *const texts[] = {HEADER,
                                        HEADER "ValueError\n",
                                        HEADER "  File \"a",
                                        HEADER "  File \"a\", line 1, in f\n",
                                        HEADER "  no frame\nValueError: x\n",
                                        "see: " HEADER "no more"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_brief(texts[i], texts[i]);
}

static void own_frames_are_the_innermost(void **state)
{
    AUTO_BUF struct buf text = BUF_INIT(10000);
    AUTO_BUF struct buf out = BUF_INIT(10000);

    (void)state;
    buf_add_str(&text, HEADER);
    for (int i = 0; i < 30; i++)
        buf_addf(&text, "  File \"/data/.script.py\", line %d, in f\n", i);
    buf_add_str(&text, "ValueError\n");
    printed_add(&out, text.data, text.len, 10000, true);
    assert_non_null(strstr(buf_str(&out), "[... 22 frames ...]\nline 22, in f\n"));
    assert_non_null(strstr(buf_str(&out), "line 29, in f\nValueError\n"));
}

static void an_exception_that_others_led_to_is_not_longer_than_needed(void **state)
{
    AUTO_BUF struct buf text = BUF_INIT(10000);
    AUTO_BUF struct buf out = BUF_INIT(10000);

    (void)state;
    buf_add_str(&text, HEADER LIBRARY "KeyError: 'a'" DURING HEADER LIBRARY "ValueError: ");
    for (int i = 0; i < 300; i++)
        buf_add_str(&text, "\xC3\xBC");
    printed_add(&out, text.data, text.len, 10000, true);
    assert_true(out.len < 400);
    assert_non_null(strstr(buf_str(&out), " … "));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(long_text_keeps_its_head_and_its_tail),
    cmocka_unit_test(what_is_short_in_brief_leaves_room_for_the_rest),
    cmocka_unit_test(what_steers_a_terminal_is_left_out),
    cmocka_unit_test(a_line_is_shown_as_it_was_drawn_last),
    cmocka_unit_test(equal_lines_are_counted_where_that_saves),
    cmocka_unit_test(a_traceback_is_the_programs_own_frames_and_the_exception),
    cmocka_unit_test(what_is_no_traceback_stays),
    cmocka_unit_test(own_frames_are_the_innermost),
    cmocka_unit_test(an_exception_that_others_led_to_is_not_longer_than_needed),
};
UNIT_TESTS(tests)
