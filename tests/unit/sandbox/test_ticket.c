#include "config.h"

#include "common/base/clock.h"
#include "common/sandbox/links/upload.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

static struct ticket sample(int64_t lasts_s)
{
    return (struct ticket){.tenant = (char *)(uintptr_t) "default",
                           .conversation = (char *)(uintptr_t) "talk \xc3\xa4",
                           .name = (char *)(uintptr_t) "a b/new\nline",
                           .size = 5,
                           .expires = clock_unix_s() + lasts_s};
}

static void make(struct fixture *f, int64_t lasts_s, char id[TICKET_ID_LEN + 1])
{
    struct ticket t = sample(lasts_s);

    assert_int_equal(ticket_make(&f->root, &t, id, &f->e), 0);
}

static void assert_refused(struct fixture *f, const char *id, enum err_kind kind)
{
    struct ticket t = {0};

    assert_int_equal(ticket_read(&f->root, id, &t, &f->e), -1);
    assert_int_equal(f->e.kind, kind);
    assert_null(t.name);
}

static void a_ticket_says_what_was_allowed(void **state)
{
    struct fixture *f = *state;
    char id[TICKET_ID_LEN + 1];
    AUTO_TICKET struct ticket t = {0};
    struct ticket want = sample(60);

    make(f, 60, id);
    assert_int_equal(ticket_read(&f->root, id, &t, &f->e), 0);
    assert_string_equal(t.tenant, want.tenant);
    assert_string_equal(t.conversation, want.conversation);
    assert_string_equal(t.name, want.name);
    assert_int_equal(t.size, want.size);
    assert_in_range(t.expires, want.expires - 1, want.expires);
}

static void it_is_used_once(void **state)
{
    struct fixture *f = *state;
    char id[TICKET_ID_LEN + 1];

    make(f, 60, id);
    assert_int_equal(ticket_use(&f->root, id, &f->e), 0);
    assert_int_equal(ticket_use(&f->root, id, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_EXISTS);
    assert_refused(f, id, ERR_EXISTS);
}

static void what_is_no_id_opens_nothing(void **state)
{
    struct fixture *f = *state;
    static const char *const odd[] = {
        "",
        ".",
        "..",
        "../.staging",
        "x",
        "0123456789abcdef0123456789ABCDEF",
        "0123456789abcdef0123456789abcdef0",
    };

    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        assert_refused(f, odd[i], ERR_EXISTS);
        assert_int_equal(ticket_use(&f->root, odd[i], &f->e), -1);
    }
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

static void a_damaged_one_is_told(void **state)
{
    struct fixture *f = *state;
    char id[TICKET_ID_LEN + 1], path[64];

    make(f, 60, id);
    snprintf(path, sizeof(path), TICKET_DIR "/%s", id);
    AUTO_FD int fd = openat(f->root.fd, path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_int_equal(write(fd, "{}", 2), 2);
    assert_refused(f, id, ERR_IO);
}

static void the_sweep_takes_what_expired_long_ago(void **state)
{
    struct fixture *f = *state;
    char old[TICKET_ID_LEN + 1], young[TICKET_ID_LEN + 1];
    AUTO_TICKET struct ticket t = {0};

    make(f, -7 * 3600, old);
    make(f, -60, young);
    uploads_sweep(&f->root);
    assert_int_equal(fixture_count(f->root.fd, TICKET_DIR), 1);
    assert_int_equal(ticket_read(&f->root, young, &t, &f->e), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

static const struct CMUnitTest tests[] = {
    CASE(a_ticket_says_what_was_allowed),        CASE(it_is_used_once),

    CASE(what_is_no_id_opens_nothing),           CASE(a_damaged_one_is_told),
    CASE(the_sweep_takes_what_expired_long_ago),
};
UNIT_TESTS(tests)
