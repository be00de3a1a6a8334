#include "config.h"

#include "common/base/auto.h"
#include "common/base/charset.h"
#include "tests/unit/unit.h"

#include <string.h>

struct sample {
    const char *bytes;
    size_t len;
    const char *utf8, *charset;
};

#define SAMPLE(bytes, utf8, charset)                                                               \
    {                                                                                              \
        (bytes), sizeof(bytes) - 1, (utf8), (charset)                                              \
    }

/* clang-format off */
static const struct sample texts[] = {
    SAMPLE("Gr\xfc\xdf" "e aus K\xf6ln; Preis 5 \x80\x0a" "Au\xdf" "ent\xfcr, M\xfcller\x0a",
           "Gr\xc3\xbc\xc3\x9f" "e aus K\xc3\xb6ln; Preis 5 \xe2\x82\xac\x0a" "Au\xc3\x9f" "ent\xc3\xbcr, M\xc3\xbcller\x0a", "Windows-1252"),
    SAMPLE("Caf\xe9 \xe0 Montr\xe9" "al, d\xe9j\xe0 vu\x0a",
           "Caf\xc3\xa9 \xc3\xa0 Montr\xc3\xa9" "al, d\xc3\xa9j\xc3\xa0 vu\x0a", "Windows-1252"),
    SAMPLE("se\xf1or, a\xf1o, \xbfqu\xe9?\x0a",
           "se\xc3\xb1or, a\xc3\xb1o, \xc2\xbfqu\xc3\xa9?\x0a", "Windows-1252"),
    SAMPLE("\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0! \xca\xe0\xea \xe4\xe5\xeb\xe0?\x0a",
           "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82, \xd0\xbc\xd0\xb8\xd1\x80! \xd0\x9a\xd0\xb0\xd0\xba \xd0\xb4\xd0\xb5\xd0\xbb\xd0\xb0?\x0a", "Windows-1251"),
    SAMPLE("\x93\xfa\x96{\x8c\xea\x82\xcc\x83" "e\x83L\x83X\x83g\x82\xc5\x82\xb7\x81" "B\x94\x84\x8f\xe3\x82\xcd\x91\x9d\x82\xa6\x82\xdc\x82\xb5\x82\xbd\x81" "B\x0a",
           "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe3\x83\x86\xe3\x82\xad\xe3\x82\xb9\xe3\x83\x88\xe3\x81\xa7\xe3\x81\x99\xe3\x80\x82\xe5\xa3\xb2\xe4\xb8\x8a\xe3\x81\xaf\xe5\xa2\x97\xe3\x81\x88\xe3\x81\xbe\xe3\x81\x97\xe3\x81\x9f\xe3\x80\x82\x0a", "Shift_JIS"),
    SAMPLE("\x96\xbc\x91O,\x94N\x97\xee\x0a\x93" "c\x92\x86,30\x0a",
           "\xe5\x90\x8d\xe5\x89\x8d,\xe5\xb9\xb4\xe9\xbd\xa2\x0a\xe7\x94\xb0\xe4\xb8\xad,30\x0a", "Shift_JIS"),
    SAMPLE("\xd0\xd5\xc3\xfb,\xc4\xea\xc1\xe4\x0a\xd5\xc5\xc8\xfd,30\x0a\xc0\xee\xcb\xc4,25\x0a",
           "\xe5\xa7\x93\xe5\x90\x8d,\xe5\xb9\xb4\xe9\xbe\x84\x0a\xe5\xbc\xa0\xe4\xb8\x89,30\x0a\xe6\x9d\x8e\xe5\x9b\x9b,25\x0a", "GBK"),
    SAMPLE("\xc4\xe3\xba\xc3\xa3\xac\xca\xc0\xbd\xe7\xa1\xa3\xd5\xe2\xca\xc7\xd2\xbb\xb8\xf6\xb2\xe2\xca\xd4\xce\xc4\xbc\xfe\xa1\xa3\x0a",
           "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c\xe3\x80\x82\xe8\xbf\x99\xe6\x98\xaf\xe4\xb8\x80\xe4\xb8\xaa\xe6\xb5\x8b\xe8\xaf\x95\xe6\x96\x87\xe4\xbb\xb6\xe3\x80\x82\x0a", "GBK"),
    SAMPLE("n\x00" "a\x00m\x00" "e\x00;\x00G\x00r\x00\xf6\x00\xdf\x00" "e\x00\x0a\x00" "a\x00;\x00" "1\x00\x0a\x00",
           "name;Gr\xc3\xb6\xc3\x9f" "e\x0a" "a;1\x0a", "UTF-16LE"),
    SAMPLE("\x00n\x00" "a\x00m\x00" "e\x00;\x00G\x00r\x00\xf6\x00\xdf\x00" "e\x00\x0a\x00" "a\x00;\x00" "1\x00\x0a",
           "name;Gr\xc3\xb6\xc3\x9f" "e\x0a" "a;1\x0a", "UTF-16BE"),
    SAMPLE("\xff\xfe\xe5" "e,g\x9e\x8a",
           "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", "UTF-16LE"),
    SAMPLE("\xfe\xff\x00m\x00i\x00t\x00 \x00Z\x00" "e\x00i\x00" "c\x00h\x00" "e\x00n",
           "mit Zeichen", "UTF-16BE"),
};

static const struct sample names[] = {
    SAMPLE("Pr\x81" "fung.txt",
           "Pr\xc3\xbc" "fung.txt", "IBM437"),
    SAMPLE("Gr\x94\xe1" "e \x82.doc",
           "Gr\xc3\xb6\xc3\x9f" "e \xc3\xa9.doc", "IBM437"),
    SAMPLE("\xdc" "bung.txt",
           "\xc3\x9c" "bung.txt", "Windows-1252"),
    SAMPLE("na\xefve caf\xe9.pdf",
           "na\xc3\xafve caf\xc3\xa9.pdf", "Windows-1252"),
    SAMPLE("\x93\xfa\x96{\x8c\xea.txt",
           "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e.txt", "Shift_JIS"),
    SAMPLE("\x94\x84\x8f\xe3\x83" "f\x81[\x83^/\x8el\x8c\x8e.csv",
           "\xe5\xa3\xb2\xe4\xb8\x8a\xe3\x83\x87\xe3\x83\xbc\xe3\x82\xbf/\xe5\x9b\x9b\xe6\x9c\x88.csv", "Shift_JIS"),
    SAMPLE("\xb1\xa8\xb8\xe6.docx",
           "\xe6\x8a\xa5\xe5\x91\x8a.docx", "GBK"),
    SAMPLE("\xd6\xd0\xce\xc4\xc4\xbf\xc2\xbc/\xca\xfd\xbe\xdd.csv",
           "\xe4\xb8\xad\xe6\x96\x87\xe7\x9b\xae\xe5\xbd\x95/\xe6\x95\xb0\xe6\x8d\xae.csv", "GBK"),
};
/* clang-format on */

static void expect(const struct sample *s, const char *charset)
{
    AUTO_BUF struct buf text = BUF_INIT(1024);

    if (!charset || strcmp(charset, s->charset) != 0)
        fail_msg("%s was taken for %s", s->utf8, charset ? charset : "no text");
    assert_int_equal(charset_decode(charset, s->bytes, s->len, &text), s->len);
    assert_string_equal(buf_str(&text), s->utf8);
}

static void texts_of_other_encodings_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        expect(&texts[i], charset_of_text(texts[i].bytes, texts[i].len));
}

static void names_of_other_encodings_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        expect(&names[i], charset_of_name(names[i].bytes, names[i].len));
}

static void what_is_utf8_or_no_text_has_none(void **state)
{
    static const struct sample cases[] = {
        SAMPLE("", "", ""),
        SAMPLE("plain", "", ""),
        SAMPLE("gr\xc3\xbc\xc3\x9f", "", ""),
        SAMPLE("gr\xc3", "", ""), /* goes on in the next piece */
        SAMPLE("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "", ""),
        SAMPLE("PK\x03\x04\x14\0\0\0\x08\0", "", ""),
        SAMPLE("\x1f\x8b\x08\0abc\xff", "", ""),
        SAMPLE("\x05\0\x07\0\x09\0", "", ""),
        SAMPLE("a\0b\0\0c", "", ""),
        SAMPLE("\xd1\x9a\x03\x77\xfe\x01", "", ""),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_null(charset_of_text(cases[i].bytes, cases[i].len));
}

static void a_character_that_is_cut_off_is_left(void **state)
{
    static const struct sample cases[] = {
        SAMPLE("a\0b", "a", "UTF-16LE"),
        SAMPLE("\x93\xfa\x96", "\xe6\x97\xa5", "Shift_JIS"),
        SAMPLE("\xc4\xe3\xba", "\xe4\xbd\xa0", "GBK"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf text = BUF_INIT(64);

        assert_int_equal(charset_decode(cases[i].charset, cases[i].bytes, cases[i].len, &text),
                         cases[i].len - 1);
        assert_string_equal(buf_str(&text), cases[i].utf8);
    }
}

static void what_is_malformed_is_replaced(void **state)
{
    AUTO_BUF struct buf text = BUF_INIT(64);

    (void)state;
    assert_int_equal(charset_decode("Windows-1252", "a\x81z", 3, &text), 3);
    assert_string_equal(buf_str(&text), "a\xef\xbf\xbdz");
    assert_int_equal(charset_decode("nonsense", "a", 1, &text), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(texts_of_other_encodings_are_read),
    cmocka_unit_test(names_of_other_encodings_are_read),
    cmocka_unit_test(what_is_utf8_or_no_text_has_none),
    cmocka_unit_test(a_character_that_is_cut_off_is_left),
    cmocka_unit_test(what_is_malformed_is_replaced),
};

static int prepare(void **state)
{
    (void)state;
    charset_prepare();
    return 0;
}

UNIT_TESTS_IN(tests, prepare, NULL)
