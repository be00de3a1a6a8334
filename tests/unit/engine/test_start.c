/* Starting a container on a fake engine: the attendant is heard, cancellations and deadlines
 * leave nothing behind. */
#include "config.h"

#include "common/base/auto.h"
#include "common/engine/engine.h"
#include "tests/fakes/engine_rows.h"
#include "tests/fakes/fake_engine.h"
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct engine_spec spec1 = SPEC;

/* An attendant: what is written to its pipe is said to it. */
struct caller {
    int pipe[2];
    int heard;     /* bytes taken */
    int cancel_at; /* turn says false at that byte, and at the end */
};

static bool hear(void *ctx)
{
    struct caller *a = ctx;
    char c;

    if (read(a->pipe[0], &c, 1) != 1)
        return false;
    a->heard++;
    return a->heard != a->cancel_at;
}

static struct caller caller(const char *words, int cancel_at)
{
    struct caller a = {.cancel_at = cancel_at};

    assert_int_equal(pipe(a.pipe), 0);
    assert_int_equal(write(a.pipe[1], words, strlen(words)), strlen(words));
    return a;
}

static void asker_close(const struct caller *a)
{
    close(a->pipe[0]);
    close(a->pipe[1]);
}

struct result {
    int returned;
    struct err e;
    char log[2048];
};

/* Starts spec1 on a fake engine, and finishes. */
static struct result start_on(struct fake_engine *f, struct caller *a, int deadline_ms)
{
    struct engine_attend attend = {.fd = a ? a->pipe[0] : -1, .tick = hear, .ctx = a};
    struct result r = {0};
    struct engine *engine = fake_engine_connect(f);

    r.returned = engine->ops->start(engine, &spec1, &attend, deadline_in_ms(deadline_ms), &r.e);
    assert_int_equal(engine->ops->fd(engine) >= 0, r.returned == 0);
    engine->ops->finish(engine);
    engine->ops->finish(engine);
    assert_int_equal(engine->ops->fd(engine), -1);
    engine->ops->free(engine);
    snprintf(r.log, sizeof r.log, "%s", fake_engine_log(f));
    fake_engine_stop(f);
    return r;
}

static struct result start(const struct fake_reply *table, struct caller *a, int deadline_ms)
{
    return start_on(fake_engine_start(table), a, deadline_ms);
}

#define ATTACHED                                                                                   \
    {                                                                                              \
        .match = ATTACH, .status = 101, .hold_ms = 3000                                            \
    }

static void the_caller_is_heard_meanwhile(void **state)
{
    const struct fake_reply table[] = {
        PING,
        {.match = "POST /v1.41/containers/create",
         .status = 201,
         .body = "{\"Id\":\"" ID "\"}",
         .delay_ms = 300},
        ATTACHED,
        STARTED,
        REMOVED,
        END,
    };
    struct caller a = caller("12345", 0);
    struct result r = start(table, &a, 5000);

    (void)state;
    assert_int_equal(r.returned, 0);
    assert_int_equal(a.heard, 5);
    asker_close(&a);
}

static void cancelled_before_the_create_nothing_is_asked(void **state)
{
    const struct fake_reply table[] = {
        {.match = "GET /_ping", .status = 200, .delay_ms = 100},
        CREATED,
        ATTACHED,
        STARTED,
        REMOVED,
        END,
    };
    struct caller a = caller("12", 1);
    struct result r = start(table, &a, 5000);

    (void)state;
    assert_int_equal(r.returned, -1);
    assert_int_equal(r.e.kind, ERR_CANCELLED);
    assert_int_equal(a.heard, 1);
    assert_string_equal(r.log, "GET /_ping\n");
    asker_close(&a);
}

/* Podman and others start a container with another runtime than was asked for. */
static void a_runtime_that_the_engine_ignores_is_refused(void **state)
{
    static const struct {
        const char *answer;
        bool starts;
    } cases[] = {
        {"{\"HostConfig\":{\"Runtime\":\"runsc\"}}", true},
        {"{\"HostConfig\":{\"Runtime\":\"runc\"}}", false},
        {"{\"HostConfig\":{}}", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct fake_reply table[] = {
            PING,
            CREATED,
            {.match = "GET /v1.41/containers/" ID "/json", .status = 200, .body = cases[i].answer},
            ATTACHED,
            STARTED,
            REMOVED,
            END,
        };
        spec1.runtime = "runsc";
        struct result r = start(table, NULL, 5000);
        spec1.runtime = NULL;
        assert_int_equal(r.returned, cases[i].starts ? 0 : -1);
        assert_int_equal(strstr(r.log, START) != NULL, cases[i].starts);
        assert_non_null(strstr(r.log, REMOVE));
        if (!cases[i].starts) {
            assert_int_equal(r.e.kind, ERR_REFUSED);
            assert_non_null(strstr(r.e.text, "SANDBOX_RUNTIME"));
        }
    }
}

static void a_hang_up_is_heard_too(void **state)
{
    const struct fake_reply table[] = {
        {.match = "GET /_ping", .status = 200, .delay_ms = 100}, CREATED, END};
    struct caller a = caller("12", 0);
    struct result r;

    (void)state;
    close(a.pipe[1]);
    r = start(table, &a, 5000);
    assert_int_equal(r.e.kind, ERR_CANCELLED);
    assert_int_equal(a.heard, 2);
    assert_string_equal(r.log, "GET /_ping\n");
    close(a.pipe[0]);
}

/* Says its word when the engine has been asked for that, from a process of its own. */
static struct caller asker_at(const struct fake_engine *f, const char *call)
{
    struct caller a = caller("", 1);

    if (fork() == 0) {
        while (!strstr(fake_engine_log(f), call))
            usleep(1000);
        _exit(write(a.pipe[1], "x", 1) != 1);
    }
    return a;
}

static void cancelled_at_any_call_nothing_is_left(void **state)
{
    static const struct {
        const char *slow, *log;
    } cases[] = {
        {"POST /v1.41/containers/create",
         "GET /_ping\nPOST /v1.41/containers/create?name=sandcgi-r1\n" REMOVE "\n"},
        {ATTACH,
         "GET /_ping\nPOST /v1.41/containers/create?name=sandcgi-r1\n" ATTACH "\n" REMOVE "\n"},
        {START, "GET /_ping\nPOST /v1.41/containers/create?name=sandcgi-r1\n" ATTACH "\n" START
                "\n" REMOVE "\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fake_reply table[] = {PING, CREATED, ATTACHED, STARTED, REMOVED, END};
        struct result r;

        for (size_t row = 0; table[row].match; row++)
            table[row].delay_ms = strcmp(table[row].match, cases[i].slow) == 0 ? 5000 : 0;
        struct fake_engine *f = fake_engine_start(table);
        struct caller a = asker_at(f, cases[i].slow);
        r = start_on(f, &a, 20000);
        assert_int_equal(r.returned, -1);
        assert_int_equal(r.e.kind, ERR_CANCELLED);
        assert_string_equal(r.log, cases[i].log);
        wait(NULL);
        asker_close(&a);
    }
}

static void a_start_over_its_deadline_is_given_up(void **state)
{
    const struct fake_reply table[] = {
        PING,
        {.match = "POST /v1.41/containers/create",
         .status = 201,
         .body = "{\"Id\":\"" ID "\"}",
         .delay_ms = 2000},
        ATTACHED,
        STARTED,
        REMOVED,
        END,
    };
    struct result r = start(table, NULL, 1000); /* a busy machine needs a part of it to get there */

    (void)state;
    assert_int_equal(r.returned, -1);
    assert_int_equal(r.e.kind, ERR_TIMEOUT);
    assert_non_null(strstr(r.log, REMOVE));
    assert_null(strstr(r.log, "attach"));
}

static void another_start_removes_the_one_before(void **state)
{
    const struct fake_reply table[] = {PING, CREATED, ATTACHED, STARTED, REMOVED, END};
    struct fake_engine *f = fake_engine_start(table);
    struct err e = ERR_INIT;
    struct engine *engine = fake_engine_connect(f);
    const char *removed;

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(engine->ops->start(engine, &spec1, NULL, deadline_in_ms(5000), &e), 0);
    removed = strstr(fake_engine_log(f), REMOVE);
    assert_non_null(removed);
    assert_non_null(strstr(removed, "create"));
    /* The version is asked for once. */
    assert_null(strstr(removed, "_ping"));
    engine->ops->finish(engine);
    engine->ops->free(engine);
    fake_engine_stop(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_caller_is_heard_meanwhile),
    cmocka_unit_test(cancelled_before_the_create_nothing_is_asked),
    cmocka_unit_test(a_runtime_that_the_engine_ignores_is_refused),
    cmocka_unit_test(a_hang_up_is_heard_too),
    cmocka_unit_test(cancelled_at_any_call_nothing_is_left),
    cmocka_unit_test(a_start_over_its_deadline_is_given_up),
    cmocka_unit_test(another_start_removes_the_one_before),
};
UNIT_TESTS_IN(tests, unit_ignore_sigpipe, NULL)
