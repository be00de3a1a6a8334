/* The rules of the HTTP front: who may come in, and what an answer looks like. */
#include "config.h"

#include "common/base/mem.h"
#include "common/base/metrics.h"
#include "common/base/sock.h"
#include "common/mcp/session/stream.h"
#include "fcgi/http/http_answer.h"
#include "fcgi/http/http_request.h"
#include "fcgi/oauth/judge_serve.h"
#include "tests/unit/unit.h"

#define PAGE "https://page.test"

/* Parameters as a web server would set them, and what was written. */
struct world {
    const char *params[2 * 16 + 1]; /* name, value, … */
    const char *body;
    struct buf out;
    int hang_ups;
    bool client_gone;
    struct settings settings;
    struct app app;
    struct http_source source;
};

static const char *param(void *ctx, const char *name)
{
    const struct world *w = ctx;

    for (size_t i = 0; w->params[i]; i += 2)
        if (strcmp(w->params[i], name) == 0)
            return w->params[i + 1];
    return NULL;
}

static long read_body(void *ctx, char *data, size_t len)
{
    struct world *w = ctx;
    size_t n = strlen(w->body) < len ? strlen(w->body) : len;

    memcpy(data, w->body, n);
    w->body += n;
    return (long)n;
}

static int write_out(void *ctx, const char *data, size_t len)
{
    struct world *w = ctx;

    if (w->client_gone)
        return -1;
    buf_add(&w->out, data, len);
    return 0;
}

static void hang_up(void *ctx)
{
    ((struct world *)ctx)->hang_ups++;
}

static int setup(void **state)
{
    static char base_url[] = "https://own.test:8443", origins[] = PAGE ", http://two.test:81";
    static char hosts[] = "other.test,port.test:99", secret[] = "0123456789abcdef0123456789abcdef";
    struct world *w = mem_alloc(sizeof *w);

    w->settings = (struct settings){
        .public_base_url = base_url, .allowed_origins = origins, .allowed_hosts = hosts};
    w->app = (struct app){.settings = &w->settings, .front_secret = secret};
    w->out = BUF_INIT(1 << 20);
    w->source = (struct http_source){.param = param,
                                     .read = read_body,
                                     .write = write_out,
                                     .hang_up = hang_up,
                                     .ctx = w,
                                     .cancel_fd = -1};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    buf_clear(&w->out);
    free(w);
    return 0;
}

/* The status of the origin check; 0: let in. */
static int judge(struct world *w, const char *host, const char *origin)
{
    struct http_request r = {.source = &w->source, .host = host, .origin = origin};
    struct http_answer a = HTTP_ANSWER_INIT;
    int rc = http_guard_origin(&w->app, &r, &a);

    assert_true((a.allowed != NULL) == (rc == 0 && origin != NULL));
    json_decref(a.body);
    return rc == 0 ? 0 : a.status;
}

static void hosts_are_ours_by_name(void **state)
{
    static const char *const good[] = {"localhost",  "LocalHost:1",      "127.0.0.1:80",
                                       "[::1]",      "[::1]:80",         "own.test",
                                       "OWN.test:1", "other.test:12345", "port.test:99"};
    static const char *const bad[] = {"evil.test",  "own.test.evil.test",  "127.0.0.2",
                                      "port.test",  "port.test:98",        "[::2]:80",
                                      "localhost.", "evil.test:localhost", "[::1"};

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (judge(*state, good[i], NULL) != 0)
            fail_msg("%s was refused", good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (judge(*state, bad[i], NULL) != 403)
            fail_msg("%s was let in", bad[i]);
    assert_int_equal(judge(*state, NULL, NULL), 0);
}

/* H-76 */
static void what_needs_no_token_is_not_read_by_pages_of_other_names(void **state)
{
    static const char *const good[] = {"localhost:1", "127.0.0.2", "192.0.2.7:80",
                                       "[::2]:80",    "own.test",  "port.test:99"};
    static const char *const bad[] = {"evil.test", "127.0.0.1.evil.test", "own.test.evil",
                                      "port.test:98", "1.x"};
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!http_host_is_known(&w->settings, good[i]))
            fail_msg("%s was refused", good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (http_host_is_known(&w->settings, bad[i]))
            fail_msg("%s was let in", bad[i]);
    assert_true(http_host_is_known(&w->settings, NULL));
}

static void any_host_may_be_allowed(void **state)
{
    static char any[] = "*";
    struct world *w = *state;

    w->settings.allowed_hosts = any;
    assert_int_equal(judge(w, "evil.test", NULL), 0);
    assert_int_equal(judge(w, "evil.test", "http://worse.test"), 403);
    assert_int_equal(judge(w, "evil.test", "http://evil.test"), 0);
}

static void pages_are_ours_or_allowed(void **state)
{
    static const struct {
        const char *host, *origin;
        int status;
    } cases[] = {
        {"localhost", PAGE, 0},
        {"localhost", "HTTPS://PAGE.test", 0},
        {"localhost", "http://two.test:81", 0},
        {"localhost", "https://own.test:8443", 0},
        {"localhost:7", "http://localhost:7", 0},
        {"localhost:7", "https://localhost:7", 0},
        {"localhost", "http://localhost:7", 403},
        {"localhost", "null", 403},
        {"localhost", "https:", 403},
        {"localhost", "https:/", 403},
        {"localhost", "https://", 403},
        {"localhost", "http://page.test", 403},
        {"localhost", PAGE ".evil.test", 403},
        {"localhost", PAGE "/", 403},
        {"localhost", "https://own.test:844", 403},
        {"localhost", "ftp://localhost", 403},
        {"localhost", "https://page.test\r\nX: y", 403},
        {NULL, "http://localhost", 403},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (judge(*state, cases[i].host, cases[i].origin) != cases[i].status)
            fail_msg("%s at %s", cases[i].origin, cases[i].host);
}

static void a_preflight_lists_headers_that_mirror_arguments(void **state)
{
    struct world *w = *state;
    const struct http_answer a = {.status = 204,
                                  .headers = "",
                                  .allowed = PAGE,
                                  .asked_headers = "x-evil, mcp-param-Region,mcp-param-,Mcp-Param-"
                                                   "b_c ,, mcp-param-z9"};

    http_answer_write(&a, &w->out);
    assert_contains(buf_str(&w->out), "Status: 204 No Content\r\n");
    assert_contains(buf_str(&w->out), "Access-Control-Allow-Origin: " PAGE "\r\n");
    assert_contains(buf_str(&w->out), "Mcp-Name, mcp-param-Region, mcp-param-z9\r\n");
    assert_null(strstr(buf_str(&w->out), "evil"));
    assert_null(strstr(buf_str(&w->out), "Content-Length"));
}

static void answers_say_nothing_to_pages_that_were_not_judged(void **state)
{
    struct world *w = *state;
    struct http_answer a = {.status = 200, .headers = "", .body = json_object()};

    memcpy(a.session, "abc", 4);
    http_answer_write(&a, &w->out);
    assert_string_equal(buf_str(&w->out), "Status: 200 OK\r\nMcp-Session-Id: abc\r\n"
                                          "Cache-Control: no-store\r\nContent-Type: "
                                          "application/json\r\nContent-Length: 2\r\n\r\n{}");
    json_decref(a.body);
}

static void only_with_its_secret_is_the_edge_believed(void **state)
{
    static char secret[] = "0123456789abcdef0123456789abcdef";
    struct world *w = *state;
    struct http_answer a = HTTP_ANSWER_INIT;
    struct http_request r;

    w->params[0] = "HTTP_SANDCGI_EDGE";
    w->params[1] = secret;
    w->params[2] = "HTTP_SANDCGI_ROUTE";
    w->params[3] = "me:a";
    w->params[4] = "HTTP_SANDCGI_STANDIN";
    w->params[5] = "10.0.0.2:8080";
    w->params[6] = "SANDCGI_SECRET";
    w->params[7] = w->app.front_secret;
    w->params[8] = "SANDCGI_TENANT";
    w->params[9] = "me";
    http_request_read(&w->source, &r);
    assert_int_equal(http_guard_who(&w->app, &r, &a), 0);
    assert_null(http_request_origin(&r).edge); /* one machine */
    w->settings.edge_secret = secret;
    http_request_read(&w->source, &r);
    assert_int_equal(http_guard_who(&w->app, &r, &a), 0);
    assert_string_equal(http_request_origin(&r).edge->route, "me:a");
    assert_string_equal(http_request_origin(&r).edge->home, "10.0.0.2:8080");
    assert_false(http_request_origin(&r).edge->again);
    w->params[1] = "0123456789abcdef0123456789abcdee";
    http_request_read(&w->source, &r);
    assert_int_equal(http_guard_who(&w->app, &r, &a), 0);
    assert_null(http_request_origin(&r).edge);
}

static void a_call_for_another_node_has_no_body(void **state)
{
    const struct mcp_elsewhere to = {.by = MCP_BY_KEY, .name = "a b"};
    struct world *w = *state;
    struct http_answer a = HTTP_ANSWER_INIT;
    struct http_request r;

    http_request_read(&w->source, &r);
    r.tenant = "me";
    http_send_on(&r, &to, &a);
    http_answer_write(&a, &w->out);
    assert_string_equal(buf_str(&w->out),
                        "Status: 421 Misdirected Request\r\nX-Accel-Redirect: @by_key\r\n"
                        "Sandcgi-Key: me:a b\r\nCache-Control: no-store\r\n"
                        "Content-Length: 0\r\n\r\n");
}

static void headers_of_arguments_are_found_by_their_names(void **state)
{
    struct world *w = *state;
    struct http_request r = {.source = &w->source};
    char long_name[400];

    w->params[0] = "HTTP_MCP_PARAM_MY_REGION1";
    w->params[1] = "eu";
    assert_string_equal(http_request_param_header(&r, "My-Region1"), "eu");
    assert_null(http_request_param_header(&r, "My"));
    assert_null(http_request_param_header(&r, "My_Region1"));
    assert_null(http_request_param_header(&r, "My\nRegion1"));
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    assert_null(http_request_param_header(&r, long_name));
}

static int read_with(struct world *w, const char *length, const char *body)
{
    AUTO_BUF struct buf got = BUF_INIT(101);
    const struct http_request r = {.source = &w->source, .content_length = length};
    struct http_answer a = HTTP_ANSWER_INIT;

    w->body = body;
    int rc = http_read_body(&r, 100, &got, &a);
    if (rc == 0)
        assert_string_equal(buf_str(&got), body);
    json_decref(a.body);
    return rc == 0 ? 200 : a.status;
}

static void a_body_is_as_long_as_it_says(void **state)
{
    assert_int_equal(read_with(*state, "5", "hello"), 200);
    assert_int_equal(read_with(*state, "0", ""), 200);
    assert_int_equal(read_with(*state, "6", "hello"), 400);
    assert_int_equal(read_with(*state, "4", "hello"), 400);
    assert_int_equal(read_with(*state, "101", "hello"), 413);
    assert_int_equal(read_with(*state, "18446744073709551615", "hello"), 413);
    assert_int_equal(read_with(*state, "+5", "hello"), 400);
    assert_int_equal(read_with(*state, NULL, "hello"), 400);
}

static void a_stream_begins_with_its_first_message(void **state)
{
    struct world *w = *state;
    const struct http_answer head = {.status = 200, .headers = "", .allowed = PAGE};
    json_auto_t *message = json_pack("{s:i}", "a", 1);
    struct http_stream s;

    http_stream_init(&s, &w->source, &head);
    s.out.keep_alive(&s);
    s.out.hang_up(&s, 5);
    assert_int_equal(w->out.len, 0); /* no stream yet, and nothing is stored */
    assert_int_equal(w->hang_ups, 0);
    assert_int_equal(s.out.send(&s, message), 0);
    assert_true(s.started);
    assert_contains(buf_str(&w->out), "Content-Type: text/event-stream\r\n");
    assert_contains(buf_str(&w->out),
                    "X-Accel-Buffering: no\r\n\r\nevent: message\ndata: {\"a\":1}\n\n");
    size_t len = w->out.len;
    s.out.keep_alive(&s);
    assert_int_equal(w->out.len - len, 0); /* not silent for long enough */
    s.written_ms -= SSE_KEEP_ALIVE_MS;
    s.out.keep_alive(&s);
    assert_int_equal(w->out.len - len, strlen(": \n\n"));
    w->client_gone = true;
    assert_int_equal(s.out.send(&s, message), -1);
    assert_int_equal(s.out.send(&s, message), -1);
    http_stream_finish(&s);
}

static void a_long_silence_begins_a_stream(void **state)
{
    struct world *w = *state;
    const struct http_answer head = {.status = 200, .headers = "", .allowed = PAGE};
    json_auto_t *message = json_pack("{s:i}", "a", 1);
    struct http_stream s;

    http_stream_init(&s, &w->source, &head);
    s.written_ms -= SSE_KEEP_ALIVE_MS - 1000;
    http_stream_keep_alive(&s);
    assert_false(s.started);
    s.written_ms -= 1000;
    http_stream_keep_alive(&s);
    assert_true(s.started); /* the answer follows on the stream */
    assert_contains(buf_str(&w->out), "Content-Type: text/event-stream\r\n");
    assert_contains(buf_str(&w->out), "X-Accel-Buffering: no\r\n\r\n: \n\n");
    size_t len = w->out.len;
    http_stream_keep_alive(&s);
    assert_int_equal(w->out.len, len); /* it has just been heard */
    s.out.send(&s, message);
    assert_contains(buf_str(&w->out), ": \n\nevent: message\ndata: {\"a\":1}\n\n");
    http_stream_finish(&s);
}

static void requests_are_counted_by_how_they_ended(void **state)
{
    static const struct {
        int status;
        const char *error;
    } rows[] = {{200, NULL}, {400, NULL}, {421, NULL}, {499, NULL},
                {500, NULL}, {503, NULL}, {200, "io"}, {200, "busy"}};
    static const char *const counts[] = {"outcome=\"ok\"} 1\n", "outcome=\"sent_on\"} 1\n",
                                         "outcome=\"refused\"} 3\n", "outcome=\"failed\"} 3\n"};
    struct world *w = *state;
    const struct http_request r = {.source = &w->source};
    AUTO_BUF struct buf text = BUF_INIT(1 << 20);

    metrics_open(-1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct http_answer a = {
            .status = rows[i].status, .error = rows[i].error, .what = "ping", .detail = ""};
        http_request_log(&r, &a, false, 1);
    }
    metrics_write(&text);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        assert_contains(buf_str(&text), counts[i]);
}

static void without_an_answer_about_a_token_there_is_no_verdict(void **state)
{
    char folder[PATH_MAX];
    struct judge_verdict verdict;
    struct err e = ERR_INIT;

    (void)state;
    unit_make_folder(folder);
    AUTO_FREE char *path = mem_printf("%s/judge.sock", folder);
    AUTO_FD int silent = sock_listen(path, NULL, &e);
    assert_true(silent >= 0);
    judge_ask(-1, path, 1, "Bearer x", &verdict);
    assert_int_equal(verdict.why.kind, ERR_TIMEOUT);
    unit_remove_tree(folder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_long_silence_begins_a_stream, setup, teardown),
    cmocka_unit_test_setup_teardown(requests_are_counted_by_how_they_ended, setup, teardown),
    cmocka_unit_test(without_an_answer_about_a_token_there_is_no_verdict),
    cmocka_unit_test_setup_teardown(hosts_are_ours_by_name, setup, teardown),
    cmocka_unit_test_setup_teardown(any_host_may_be_allowed, setup, teardown),
    cmocka_unit_test_setup_teardown(what_needs_no_token_is_not_read_by_pages_of_other_names, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(pages_are_ours_or_allowed, setup, teardown),
    cmocka_unit_test_setup_teardown(a_preflight_lists_headers_that_mirror_arguments, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(answers_say_nothing_to_pages_that_were_not_judged, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(only_with_its_secret_is_the_edge_believed, setup, teardown),
    cmocka_unit_test_setup_teardown(a_call_for_another_node_has_no_body, setup, teardown),
    cmocka_unit_test_setup_teardown(headers_of_arguments_are_found_by_their_names, setup, teardown),
    cmocka_unit_test_setup_teardown(a_body_is_as_long_as_it_says, setup, teardown),
    cmocka_unit_test_setup_teardown(a_stream_begins_with_its_first_message, setup, teardown),
};
UNIT_TESTS(tests)
