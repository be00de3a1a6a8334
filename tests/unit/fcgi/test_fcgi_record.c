/* FastCGI requests as they arrive: in any pieces, whole or wrong. */
#include "config.h"

#include "common/base/mem.h"
#include "fcgi/hub/fcgi_record.h"
#include "tests/fakes/fcgi_client.h"
#include "tests/unit/unit.h"

#define BODY_MAX 1000
#define BEGIN    "\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0"

static const char *const params[] = {"REQUEST_METHOD", "POST", "EMPTY", "", "LONG", NULL, NULL};

static void a_request_is_the_same_in_any_pieces(void **state)
{
    (void)state;
    AUTO_BUF struct buf sent = BUF_INIT(10000);
    const char *with_long[ARRAY_LEN(params)];
    char text[301];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(with_long, params, sizeof params);
    with_long[5] = text;
    fcgi_client_add_request(&sent, with_long, "{\"a\":1}");
    for (size_t piece = 1; piece <= sent.len; piece++) {
        struct fcgi_reader r;
        struct err e = ERR_INIT;
        int rc = 0;
        fcgi_reader_init(&r, BODY_MAX);
        for (size_t at = 0; at < sent.len; at += piece) {
            assert_int_equal(rc, 0);
            assert_works(rc = fcgi_reader_feed(&r, sent.data + at,
                                               sent.len - at < piece ? sent.len - at : piece, &e),
                         e);
        }
        assert_int_equal(rc, 1);
        assert_int_equal(r.request_id, FCGI_CLIENT_ID);
        assert_string_equal(fcgi_reader_param(&r, "REQUEST_METHOD"), "POST");
        assert_string_equal(fcgi_reader_param(&r, "EMPTY"), "");
        assert_string_equal(fcgi_reader_param(&r, "LONG"), text);
        assert_null(fcgi_reader_param(&r, "POST"));
        assert_string_equal(buf_str(&r.body), "{\"a\":1}");
        fcgi_reader_clear(&r);
    }
}

static int feed(const char *bytes, size_t len)
{
    struct fcgi_reader r;
    struct err e = ERR_INIT;

    fcgi_reader_init(&r, BODY_MAX);
    int rc = fcgi_reader_feed(&r, bytes, len, &e);
    assert_int_equal(rc < 0, e.kind != ERR_NONE);
    fcgi_reader_clear(&r);
    return rc;
}

#define FEED(text) feed(text, sizeof(text) - 1)

static void what_is_no_request_is_refused(void **state)
{
    (void)state;
    assert_int_equal(FEED(BEGIN "\1\4\0\1\0\0\0\0\1\5\0\1\0\0\0\0"),
                     1); /* no parameters, no body */
    assert_int_equal(FEED(BEGIN "\1\4\0\1\0\4\2\0\1\1ab??\1\4\0\1\0\0\0\0"), 0);
    assert_int_equal(FEED("\2\1\0\1\0\10\0\0"), -1);                 /* version */
    assert_int_equal(FEED("GET / HTTP/1.1\r\n\r\n"), -1);            /* another protocol */
    assert_int_equal(FEED("\1\4\0\1\0\0\0\0"), -1);                  /* parameters first */
    assert_int_equal(FEED("\1\1\0\0\0\10\0\0"), -1);                 /* a management record */
    assert_int_equal(FEED("\1\1\0\1\0\7\0\0"), -1);                  /* short */
    assert_int_equal(FEED("\1\1\0\1\0\10\0\0\0\2"), 0);              /* half */
    assert_int_equal(FEED("\1\1\0\1\0\10\0\0\0\2\0\0\0\0\0\0"), -1); /* role */
    assert_int_equal(FEED(BEGIN BEGIN), -1);                         /* a second request */
    assert_int_equal(FEED(BEGIN "\1\4\0\2\0\0\0\0"), -1);            /* of another request */
    assert_int_equal(FEED(BEGIN "\1\5\0\1\0\0\0\0"), -1); /* a body before the parameters */
    assert_int_equal(FEED(BEGIN "\1\2\0\1\0\0\0\0"), -1); /* aborted */
    assert_int_equal(FEED(BEGIN "\1\4\0\1\0\3\0\0\1\2a\1\4\0\1\0\0\0\0"), -1); /* cut off */
    assert_int_equal(FEED(BEGIN "\1\4\0\1\0\3\0\0\200\0\0\1\4\0\1\0\0\0\0"),
                     -1); /* in the length */
    assert_int_equal(FEED(BEGIN "\1\4\0\1\0\5\0\0\377\377\377\377\1\1\4\0\1\0\0\0\0"), -1);
    assert_int_equal(FEED(BEGIN "\1\4\0\1\0\4\0\0\1\1a\0\1\4\0\1\0\0\0\0"), -1); /* a NUL */
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    AUTO_BUF struct buf sent = BUF_INIT(1 << 20);
    AUTO_FREE char *text = mem_alloc(FCGI_PARAMS_MAX + 1);
    struct fcgi_reader r;
    struct err e = ERR_INIT;

    memset(text, 'x', FCGI_PARAMS_MAX);
    fcgi_client_add_request(&sent, (const char *const[]){"A", text, NULL}, "");
    assert_int_equal(feed(sent.data, sent.len), -1);
    buf_reset(&sent);
    fcgi_client_add_request(&sent, (const char *const[]){"A", "b", NULL}, text);
    fcgi_reader_init(&r, BODY_MAX);
    assert_int_equal(fcgi_reader_feed(&r, sent.data, sent.len, &e), 1);
    assert_in_range(r.body.len, BODY_MAX + 1, BODY_MAX + 65536);
    fcgi_reader_clear(&r);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_request_is_the_same_in_any_pieces),
    cmocka_unit_test(what_is_no_request_is_refused),
    cmocka_unit_test(sizes_are_bounded),
};
UNIT_TESTS(tests)
