/* The Docker engine's single calls against a fake one: versions, addresses, lists, events, bounds.
 */
#include "config.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/engine/docker_http.h"
#include "common/engine/engine.h"
#include "tests/fakes/engine_rows.h"
#include "tests/fakes/fake_engine.h"
#include "tests/unit/unit.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct engine_spec spec1 = SPEC;

static int count(const char *log, const char *what)
{
    int n = 0;

    for (const char *p = strstr(log, what); p; p = strstr(p + 1, what))
        n++;
    return n;
}

/* What listing the runners of an engine with this table says. */
static int list(const struct fake_reply *table, struct err *e, char *log, size_t cap)
{
    struct fake_engine *f = fake_engine_start(table);
    struct engine *engine = fake_engine_connect(f);
    struct engine_runners found = {0};
    int r = engine->ops->runners(engine, "*", &found, e);

    snprintf(log, cap, "%s", fake_engine_log(f));
    engine_runners_clear(&found);
    engine->ops->free(engine);
    fake_engine_stop(f);
    return r;
}

/* What an engine with this table, which has no image, is asked for a container on lan. */
static int want_network(const struct fake_reply *table, struct err *e, char *log, size_t cap)
{
    struct fake_engine *f = fake_engine_start(table);
    struct engine *engine = fake_engine_connect(f);
    struct engine_spec spec = spec1;
    spec.network = NETWORK_LAN;
    int r = engine->ops->start(engine, &spec, NULL, deadline_in_ms(5000), e);

    snprintf(log, cap, "%s", fake_engine_log(f));
    engine->ops->free(engine);
    fake_engine_stop(f);
    return r;
}

static void a_network_is_made_once(void **state)
{
    static const struct fake_reply there[] = {
        PING, {.match = "GET /v1.41/networks/sandcgi-lan", .status = 200, .body = "{}"}, END};
    static const struct fake_reply absent[] = {
        PING, {.match = "POST /v1.41/networks/create", .status = 201, .body = "{}"}, END};
    static const struct fake_reply refuses[] = {PING,
                                                {.match = "POST /v1.41/networks/create",
                                                 .status = 500,
                                                 .body = "{\"message\":\"no room\"}"},
                                                END};
    struct err e = ERR_INIT;
    char log[1024];

    (void)state;
    assert_int_equal(want_network(there, &e, log, sizeof log), -1);
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    assert_int_equal(count(log, "POST /v1.41/networks/create"), 0);
    assert_int_equal(want_network(absent, &e, log, sizeof log), -1);
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    assert_int_equal(count(log, "POST /v1.41/networks/create"), 1);
    /* Once more without the option that Podman does not know, and another server may have it. */
    assert_int_equal(want_network(refuses, &e, log, sizeof log), -1);
    assert_int_equal(count(log, "/containers/create"), 0);
    assert_int_equal(count(log, "POST /v1.41/networks/create"), 2);
    assert_int_equal(count(log, "GET /v1.41/networks/sandcgi-lan"), 2);
    assert_non_null(strstr(e.text, "sandcgi-lan: "));
    assert_non_null(strstr(e.text, "no room"));
}

static void the_version_is_the_best_that_both_know(void **state)
{
    static const struct {
        const char *theirs, *asked;
    } cases[] = {
        {"1.40", "/v1.40/"}, {"1.41", "/v1.41/"}, {"1.44", "/v1.44/"}, {"1.52", "/v1.44/"},
        {"1.39", NULL},      {"2.0", NULL},       {"x", NULL},         {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct fake_reply table[] = {
            {.match = "GET /_ping", .status = 200, .version = cases[i].theirs},
            {.match = "GET /v", .status = 200, .body = "[]"},
            END};
        struct err e = ERR_INIT;
        char log[1024];
        int r = list(table, &e, log, sizeof log);

        if (r != (cases[i].asked ? 0 : -1))
            fail_msg("%s: %s", cases[i].theirs, e.text);
        if (cases[i].asked)
            assert_non_null(strstr(log, cases[i].asked));
        else
            assert_int_equal(e.kind, ERR_UNAVAILABLE);
    }
}

static void a_version_that_another_agreed_on_is_not_asked_for_again(void **state)
{
    static const struct fake_reply table[] = {{.match = "GET /_ping", .status = 200},
                                              {.match = "GET /v1.41/", .status = 200, .body = "[]"},
                                              END};
    struct fake_engine *f = fake_engine_start(table);
    struct engine *first = fake_engine_connect(f);
    struct engine_runners found = {0};
    struct err e = ERR_INIT;

    (void)state;
    assert_string_equal(first->ops->facts(first)->version, "");
    assert_int_equal(first->ops->runners(first, "*", &found, &e), 0);
    engine_runners_clear(&found);
    struct engine_address address = {.host = fake_engine_host(f),
                                     .facts = *first->ops->facts(first)};
    struct engine *second = docker_engine_new(&address, &e);
    assert_non_null(second);
    assert_int_equal(second->ops->runners(second, "*", &found, &e), 0);
    assert_int_equal(count(fake_engine_log(f), "/_ping"), 1);
    engine_runners_clear(&found);
    second->ops->free(second);
    first->ops->free(first);
    fake_engine_stop(f);
}

#define PODMAN(libpod_status, libpod_info)                                                         \
    {                                                                                              \
        {.match = "GET /_ping", .status = 200, .server = "Libpod/4.3.1 (linux)"},                  \
            {.match = "GET /v1.41/libpod/info", .status = (libpod_status), .body = (libpod_info)}, \
            {.match = "GET /v1.41/", .status = 200, .body = "[]"}, END                             \
    }

/* Docker is not asked; a Podman whose own API is closed is taken for root's. */
static void a_podman_says_whether_it_is_rootless(void **state)
{
    static const struct {
        struct fake_reply table[4];
        int asked;
        bool rootless;
    } cases[] = {
        {{{.match = "GET /_ping", .status = 200},
          {.match = "GET /v1.41/", .status = 200, .body = "[]"},
          END},
         0,
         false},
        {PODMAN(200, "{\"host\":{\"security\":{\"rootless\":true}}}"), 1, true},
        {PODMAN(200, "{\"host\":{\"security\":{\"rootless\":false}}}"), 1, false},
        {PODMAN(200, "[]"), 1, false},
        {PODMAN(403, "no"), 1, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake_engine *f = fake_engine_start(cases[i].table);
        struct engine *engine = fake_engine_connect(f);
        struct engine_runners found = {0};
        struct err e = ERR_INIT;

        assert_int_equal(engine->ops->runners(engine, "*", &found, &e), 0);
        assert_int_equal(engine->ops->facts(engine)->podman, cases[i].asked);
        assert_int_equal(engine->ops->facts(engine)->rootless, cases[i].rootless);
        assert_string_equal(engine->ops->facts(engine)->version, "/v1.41");
        assert_int_equal(count(fake_engine_log(f), "/libpod/info"), cases[i].asked);
        engine_runners_clear(&found);
        engine->ops->free(engine);
        fake_engine_stop(f);
    }
}

static int asked; /* how often */

static bool passed(void *ctx, const char *run_id, int64_t deadline)
{
    (void)run_id;
    asked++;
    return deadline <= *(const int64_t *)ctx;
}

static void an_engine_that_is_down_is_said_at_once(void **state)
{
    struct engine_address address = {.host = "unix:///nowhere/at/all.sock"};
    struct err e = ERR_INIT;
    struct engine *engine = docker_engine_new(&address, &e);
    struct engine_runners found;

    (void)state;
    assert_non_null(engine);
    assert_int_equal(engine->ops->runners(engine, "*", &found, &e), -1);
    assert_int_equal(e.kind, ERR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "/nowhere/at/all.sock cannot be reached: No such file"));
    assert_int_equal(engine->ops->start(engine, &spec1, NULL, deadline_in_ms(1000), &e), -1);
    assert_int_equal(e.kind, ERR_UNAVAILABLE);
    assert_int_equal(engine->ops->reap(engine, "t", passed, NULL, &e), -1);
    assert_int_equal(engine->ops->watch(engine, &e), -1);
    assert_false(engine->ops->watch_drain(engine));
    engine->ops->free(engine);
}

static void wrong_addresses_are_refused(void **state)
{
    static const char *const hosts[] = {
        "unix://relative",   "http://x:1",      "tcp://host",  "tcp://host:0", "tcp://host:99999",
        "tcp://u@host:2375", "tcp://host:1/..", "tcp://:2375", "/run/x.sock",  "ssh://host:22"};
    struct engine_address no_certs = {.host = "tcp://host:2376", .cert_path = "/nowhere"};
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct engine_address address = {.host = hosts[i]};

        if (docker_engine_new(&address, &e))
            fail_msg("%s", hosts[i]);
        assert_int_equal(e.kind, ERR_INVALID);
    }
    assert_null(docker_engine_new(&no_certs, &e));
    assert_non_null(strstr(e.text, "ca.pem"));
}

static void only_own_containers_are_reaped(void **state)
{
    const struct fake_reply table[] = {
        PING,
        {.match = "GET /v1.41/containers/json?all=1&filters=%7B%22label%22%3A%5B%22sandbox.managed"
                  "%3Dtrue%22%2C%22sandbox.instance%3Da%20b%22%5D%7D",
         .status = 200,
         .body = "[{\"Id\":\"aaaaaaaaaaaa\",\"Labels\":{\"sandbox.managed\":\"true\","
                 "\"sandbox.instance\":\"a b\",\"sandbox.deadline\":\"5\"}},"
                 "{\"Id\":\"bbbbbbbbbbbb\",\"Labels\":{\"sandbox.managed\":\"true\","
                 "\"sandbox.instance\":\"a b\",\"sandbox.deadline\":\"50\"}},"
                 "{\"Id\":\"cccccccccccc\",\"Labels\":{\"sandbox.managed\":\"true\","
                 "\"sandbox.instance\":\"a bc\",\"sandbox.deadline\":\"5\"}},"
                 "{\"Id\":\"../../images\",\"Labels\":{\"sandbox.managed\":\"true\","
                 "\"sandbox.instance\":\"a b\",\"sandbox.deadline\":\"5\"}}]"},
        {.match = "DELETE /v1.41/containers/aaaaaaaaaaaa?force=1&v=1", .status = 204},
        END};
    struct fake_engine *f = fake_engine_start(table);
    struct engine *engine = fake_engine_connect(f);
    struct err e = ERR_INIT;
    int64_t now = 10;

    (void)state;
    asked = 0;
    assert_int_equal(engine->ops->reap(engine, "a b", passed, &now, &e), 1);
    assert_int_equal(asked, 2);
    assert_int_equal(count(fake_engine_log(f), "DELETE"), 1);
    engine->ops->free(engine);
    fake_engine_stop(f);
}

static void events_wake_the_watcher_until_they_end(void **state)
{
    const struct fake_reply table[] = {PING,
                                       {.match = "GET /v1.41/events",
                                        .status = 101,
                                        .stream = "{}",
                                        .stream_len = 2,
                                        .hold_ms = 100},
                                       END};
    struct fake_engine *f = fake_engine_start(table);
    struct engine *engine = fake_engine_connect(f);
    struct err e = ERR_INIT;
    struct pollfd p = {.events = POLLIN};
    bool alive = true;

    (void)state;
    p.fd = engine->ops->watch(engine, &e);
    assert_true(p.fd >= 0);
    for (int turns = 0; alive && turns < 5; turns++) {
        assert_int_equal(poll(&p, 1, 2000), 1);
        alive = engine->ops->watch_drain(engine);
    }
    assert_false(alive);
    engine->ops->free(engine);
    fake_engine_stop(f);
}

static void replies_are_bounded(void **state)
{
    const struct fake_reply table[] = {
        PING, {.match = "GET /v1.41/x", .status = 200, .body = "0123456789"}, END};
    struct fake_engine *f = fake_engine_start(table);
    struct engine_address address = {.host = fake_engine_host(f)};
    struct err e = ERR_INIT;
    struct docker_http *h = docker_http_new(&address, &e);
    AUTO_BUF struct buf small = BUF_INIT(9);
    AUTO_BUF struct buf enough = BUF_INIT(10);

    (void)state;
    assert_int_equal(docker_http_call(h, "GET", "/x", NULL, 1000, &small, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_int_equal(docker_http_call(h, "GET", "/x", NULL, 1000, &enough, &e), 200);
    docker_http_free(h);
    fake_engine_stop(f);
}

static void a_silent_engine_is_given_up(void **state)
{
    const struct fake_reply table[] = {
        PING, {.match = "GET /v1.41/x", .status = 200, .delay_ms = 4000}, END};
    struct fake_engine *f = fake_engine_start(table);
    struct engine_address address = {.host = fake_engine_host(f)};
    struct err e = ERR_INIT;
    struct docker_http *h = docker_http_new(&address, &e);
    AUTO_BUF struct buf out = BUF_INIT(100);
    int64_t began = clock_mono_ms();

    (void)state;
    assert_int_equal(docker_http_call(h, "GET", "/x", NULL, 200, &out, &e), -1);
    assert_int_equal(e.kind, ERR_UNAVAILABLE);
    assert_true(clock_mono_ms() - began < 3500);
    docker_http_free(h);
    fake_engine_stop(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_network_is_made_once),
    cmocka_unit_test(the_version_is_the_best_that_both_know),
    cmocka_unit_test(a_version_that_another_agreed_on_is_not_asked_for_again),
    cmocka_unit_test(a_podman_says_whether_it_is_rootless),
    cmocka_unit_test(an_engine_that_is_down_is_said_at_once),
    cmocka_unit_test(wrong_addresses_are_refused),
    cmocka_unit_test(only_own_containers_are_reaped),
    cmocka_unit_test(events_wake_the_watcher_until_they_end),
    cmocka_unit_test(replies_are_bounded),
    cmocka_unit_test(a_silent_engine_is_given_up),
};
UNIT_TESTS_IN(tests, unit_ignore_sigpipe, NULL)
