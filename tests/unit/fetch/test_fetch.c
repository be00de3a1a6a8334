/* Fetching from a local https server with a certificate authority of its own; the guard is one of
 * ours, that lets the test's addresses pass. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/fetch/fetch.h"
#include "common/fetch/guard.h"
#include "common/fetch/site.h"
#include "tests/unit/fetch/fetch_server.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

static bool guards;    /* the guard of this file stands in for the real one */
static int asked, let; /* how often the guard was asked; after so many it lets none pass */

int __real_guard_check(const struct sockaddr *address, socklen_t len, struct err *e);
int __wrap_guard_check(const struct sockaddr *address, socklen_t len, struct err *e);

int __wrap_guard_check(const struct sockaddr *address, socklen_t len, struct err *e)
{
    struct in_addr other;

    if (!guards)
        return __real_guard_check(address, len, e);
    inet_pton(AF_INET, NOT_LET, &other);
    const struct sockaddr_in *in = (const void *)address;
    if (asked++ < let && address->sa_family == AF_INET && in->sin_addr.s_addr != other.s_addr)
        return 0;
    return err_set(e, ERR_DENIED, "the guard says no");
}

const uint16_t *__real_guard_ports(void);
const uint16_t *__wrap_guard_ports(void);

const uint16_t *__wrap_guard_ports(void)
{
    /* Any: the server's is not known to a process that begins anew. */
    return guards ? NULL : __real_guard_ports();
}

/* ---- the fetches ---- */

static int fetch_to(const char *url, int fd, uint64_t max, struct err *e)
{
    const struct fetch_limits limits = {
        .max_bytes = max, .timeout_ms = 20000, .ca_file = server.ca};

    asked = 0;
    return fetch_url(url, fd, &limits, e);
}

static void assert_fetched(const char *url, const char *want)
{
    AUTO_FD int fd = memfd_create("fetched", MFD_CLOEXEC);
    struct err e = ERR_INIT;
    char got[200] = "";

    if (fetch_to(url, fd, 1000, &e) < 0)
        fail_msg("%s: %s", url, e.text);
    assert_int_equal(pread(fd, got, sizeof got - 1, 0), (ssize_t)strlen(want));
    assert_string_equal(got, want);
}

static void assert_refused(const char *url, enum err_kind kind)
{
    AUTO_FD int fd = memfd_create("fetched", MFD_CLOEXEC);
    struct err e = ERR_INIT;

    assert_int_equal(fetch_to(url, fd, 1000, &e), -1);
    if (e.kind != kind)
        fail_msg("%s: %s: %s", url, err_kind_name(e.kind), e.text);
    assert_null(strstr(e.text, server.dir));
    assert_null(strstr(e.text, "127.0.0.1"));
}

static void a_file_comes_whole(void **state)
{
    (void)state;
    let = 100;
    serve("plain", "200 OK\r\nContent-Length: 5", "hello");
    serve("open", "200 OK", "to the end");
    AUTO_FREE char *plain = url_of("localhost", "plain");
    AUTO_FREE char *open_end = url_of("127.0.0.1", "open");
    assert_fetched(plain, "hello");
    assert_true(asked > 0);
    assert_fetched(open_end, "to the end");
}

static void redirects_are_followed_by_https_only_and_guarded(void **state)
{
    (void)state;
    let = 100;
    serve("plain", "200 OK\r\nContent-Length: 5", "hello");
    AUTO_FREE char *plain = url_of("localhost", "plain");
    AUTO_FREE char *inside = url_of(NOT_LET, "plain");
    serve_redirect("again", plain);
    serve_redirect("inside", inside);
    serve_redirect("http", "http://localhost/plain");
    serve_redirect("file", "file:///etc/passwd");
    serve_redirect("loop", "loop");
    AUTO_FREE char *again = url_of("localhost", "again");
    AUTO_FREE char *to_inside = url_of("localhost", "inside");
    AUTO_FREE char *to_http = url_of("localhost", "http");
    AUTO_FREE char *to_file = url_of("localhost", "file");
    AUTO_FREE char *loop = url_of("localhost", "loop");
    assert_fetched(again, "hello");
    assert_refused(to_inside, ERR_DENIED);
    assert_refused(to_http, ERR_DENIED);
    assert_refused(to_file, ERR_DENIED);
    assert_refused(loop, ERR_LIMIT);
}

/* What was allowed once is asked about again: a name may lead elsewhere a moment later. */
static void every_connection_is_guarded(void **state)
{
    (void)state;
    let = 1;
    serve("plain", "200 OK\r\nContent-Length: 5", "hello");
    AUTO_FREE char *plain = url_of("127.0.0.1", "plain");
    serve_redirect("again", plain);
    AUTO_FREE char *again = url_of("127.0.0.1", "again");
    assert_fetched(plain, "hello");
    assert_refused(again, ERR_DENIED);
    assert_int_equal(asked, 2);
    let = 0;
    assert_refused(plain, ERR_DENIED);
}

static void too_much_is_refused_whether_announced_or_not(void **state)
{
    char body[1101] = "";

    (void)state;
    let = 100;
    memset(body, 'x', sizeof body - 1);
    serve("announced", "200 OK\r\nContent-Length: 1100", body);
    serve("unannounced", "200 OK", body);
    AUTO_FREE char *announced = url_of("localhost", "announced");
    AUTO_FREE char *unannounced = url_of("localhost", "unannounced");
    assert_refused(announced, ERR_LIMIT);
    assert_refused(unannounced, ERR_LIMIT);
}

static void what_the_other_server_does_wrong_is_told(void **state)
{
    (void)state;
    let = 100;
    serve("missing", "404 Not Found", "nothing here");
    serve("empty", "204 No Content", "");
    serve("short", "200 OK\r\nContent-Length: 500", "hello");
    const char *const names[] = {"missing", "empty", "short"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *url = url_of("localhost", names[i]);
        assert_refused(url, ERR_NOT_FOUND);
    }
    AUTO_FREE char *closed = mem_printf("https://127.0.0.1:%d/x", free_port());
    assert_refused(closed, ERR_NOT_FOUND);
}

static void an_unknown_certificate_is_refused(void **state)
{
    const struct fetch_limits limits = {.max_bytes = 1000, .timeout_ms = 20000};
    AUTO_FREE char *url = url_of("localhost", "plain");
    AUTO_FD int fd = memfd_create("fetched", MFD_CLOEXEC);
    struct err e = ERR_INIT;

    (void)state;
    let = 100;
    assert_int_equal(fetch_url(url, fd, &limits, &e), -1);
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    assert_non_null(strstr(e.text, "certificate"));
}

static void no_proxy_is_used(void **state)
{
    static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};

    (void)state;
    let = 100;
    serve("plain", "200 OK\r\nContent-Length: 5", "hello");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        setenv(names[i], "http://127.0.0.1:1", 1);
    AUTO_FREE char *url = url_of("127.0.0.1", "plain");
    assert_fetched(url, "hello");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
}

static void a_full_disk_is_told(void **state)
{
    AUTO_FD int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    AUTO_FREE char *url = url_of("localhost", "plain");
    struct err e = ERR_INIT;

    (void)state;
    let = 100;
    serve("plain", "200 OK\r\nContent-Length: 5", "hello");
    assert_int_equal(fetch_to(url, full, 1000, &e), -1);
    assert_int_equal(e.kind, ERR_IO);
}

/* The process of its own is this program once more; it knows no authority of ours. */
static void a_process_of_its_own_answers_the_same(void **state)
{
    const struct fetch_limits limits = {.max_bytes = 1000, .timeout_ms = 20000};
    AUTO_FREE char *url = url_of("localhost", "plain");
    AUTO_FD int fd = memfd_create("fetched", MFD_CLOEXEC);
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(fetch_in_process(url, fd, -1, &limits, &e), -1);
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    assert_non_null(strstr(e.text, "certificate"));
    assert_int_equal(fetch_in_process("https://" NOT_LET "/", fd, -1, &limits, &e), -1);
    assert_int_equal(e.kind, ERR_DENIED);
    assert_int_equal(fetch_in_process("http://localhost/", fd, -1, &limits, &e), -1);
    assert_int_equal(e.kind, ERR_INVALID);
}

static int not_any_more(void *ctx, struct err *e)
{
    (void)ctx;
    return err_set(e, ERR_BUSY, "not any more");
}

static void it_ends_when_the_asker_has_gone_or_it_is_not_to_go_on(void **state)
{
    struct fetch_limits limits = {.max_bytes = 1000, .timeout_ms = 20000};
    AUTO_FD int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    AUTO_FD int fd = memfd_create("fetched", MFD_CLOEXEC);
    struct err e = ERR_INIT;
    int pair[2];

    (void)state;
    assert_int_equal(bind(silent, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(silent, 1), 0);
    assert_int_equal(getsockname(silent, (struct sockaddr *)&in, &len), 0);
    AUTO_FREE char *url = mem_printf("https://127.0.0.1:%d/", ntohs(in.sin_port));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    close(pair[1]);
    assert_int_equal(fetch_in_process(url, fd, pair[0], &limits, &e), -1);
    assert_int_equal(e.kind, ERR_CANCELLED);
    close(pair[0]);
    limits.go_on = not_any_more;
    assert_int_equal(fetch_in_process(url, fd, -1, &limits, &e), -1);
    assert_string_equal(e.text, "not any more");
}

static void a_look_at_a_stream_sends_no_token_to_another_machine(void **state)
{
    static const char *const headers[] = {"Authorization: Bearer token", NULL};
    static const char *const foreign[] = {"http://192.0.2.1/mcp", "https://[2001:db8::1]/mcp"};
    AUTO_FREE char *here = mem_printf("http://127.0.0.1:%d/mcp", free_port());
    struct fetch_stream seen;
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
        assert_works(fetch_stream(foreign[i], false, headers, "{}", &seen, &e), e);
        assert_true(seen.foreign);
    }
    assert_fails(fetch_stream(here, false, headers, "{}", &seen, &e), ERR_UNAVAILABLE, e);
    assert_false(seen.foreign); /* it was tried: nobody listens */
}

static int start_guarded_server(void **state)
{
    guards = true;
    let = 100;
    return start_server(state);
}

static int fetch_guarded(void)
{
    guards = true;
    let = 100;
    return fetch_process_main();
}

UNIT_COMMAND("fetch", fetch_guarded)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_file_comes_whole),
    cmocka_unit_test(redirects_are_followed_by_https_only_and_guarded),
    cmocka_unit_test(every_connection_is_guarded),
    cmocka_unit_test(too_much_is_refused_whether_announced_or_not),
    cmocka_unit_test(what_the_other_server_does_wrong_is_told),
    cmocka_unit_test(an_unknown_certificate_is_refused),
    cmocka_unit_test(no_proxy_is_used),
    cmocka_unit_test(a_full_disk_is_told),
    cmocka_unit_test(a_look_at_a_stream_sends_no_token_to_another_machine),
    cmocka_unit_test(a_process_of_its_own_answers_the_same),
    cmocka_unit_test(it_ends_when_the_asker_has_gone_or_it_is_not_to_go_on),
};
UNIT_TESTS_IN(tests, start_guarded_server, stop_server)
