#include "config.h"

#include "common/index/proxy.h"
#include "tests/unit/unit.h"

static void a_connect_is_understood_once_it_is_whole(void **state)
{
    static const char text[] = "CONNECT Index.test:443 HTTP/1.1\r\nHost: x\r\n\r\nmore";
    const size_t whole = strlen(text) - 4;
    struct index_host host;
    size_t head_len = 0;

    (void)state;
    for (size_t len = 0; len < whole; len++)
        assert_int_equal(index_request_parse(text, len, &host, &head_len), INDEX_REQUEST_MORE);
    assert_int_equal(index_request_parse(text, strlen(text), &host, &head_len),
                     INDEX_REQUEST_CONNECT);
    assert_int_equal(head_len, whole);
    assert_string_equal(host.name, "index.test");
    assert_int_equal(host.port, 443);
    assert_int_equal(
        index_request_parse("CONNECT [::1]:8443 HTTP/1.0\r\n\r\n", 31, &host, &head_len),
        INDEX_REQUEST_CONNECT);
    assert_string_equal(host.name, "::1");
}

static void other_requests_are_told_apart(void **state)
{
    static const struct {
        const char *text;
        enum index_request_state state;
    } cases[] = {
        {"GET https://index.test/ HTTP/1.1\r\n\r\n", INDEX_REQUEST_METHOD},
        {"connect index.test:443 HTTP/1.1\r\n\r\n", INDEX_REQUEST_METHOD},
        {"DELETE / HTTP/1.1\r\n\r\n", INDEX_REQUEST_CLOSE},
        {"DELETE /x HTTP/1.1\r\n\r\n", INDEX_REQUEST_METHOD},
        {"DELETE / HTTP/1.1\r\n", INDEX_REQUEST_MORE},
        {"\r\n\r\n", INDEX_REQUEST_METHOD},
        {"CONNECT  index.test:443 HTTP/1.1\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT index.test:443\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT index.test HTTP/1.1\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT index.test: HTTP/1.1\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT index.test:443 HTTP/2.0\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT index.test:443 HTTP/1.12\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT index.test:443 x HTTP/1.1\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT index.test:443@evil.test:1 HTTP/1.1\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT index.test/x:443 HTTP/1.1\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT index.test:443 HTTP/1.1\nA: b\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT index.test:443 HTTP/1.1\r\nA: b\rC\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT index.test:443 HTTP/1.1\r\nA: b\nC: d\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT [index.test]:443 HTTP/1.1\r\n\r\n", INDEX_REQUEST_BAD},
        {"CONNECT HTTP/1.1\r\n\r\n", INDEX_REQUEST_BAD},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct index_host host;
        size_t head_len = 0;
        if (index_request_parse(cases[i].text, strlen(cases[i].text), &host, &head_len) !=
            cases[i].state)
            fail_msg("%s", cases[i].text);
    }
}

static void a_head_has_a_bound(void **state)
{
    static char text[INDEX_HEAD_MAX];
    struct index_host host;
    size_t head_len = 0;

    (void)state;
    memset(text, 'x', sizeof text);
    assert_int_equal(index_request_parse(text, sizeof text - 1, &host, &head_len),
                     INDEX_REQUEST_MORE);
    assert_int_equal(index_request_parse(text, sizeof text, &host, &head_len), INDEX_REQUEST_BAD);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_connect_is_understood_once_it_is_whole),
    cmocka_unit_test(other_requests_are_told_apart),
    cmocka_unit_test(a_head_has_a_bound),
};
UNIT_TESTS(tests)
