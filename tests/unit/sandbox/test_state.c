/* The records of sandboxes, and the list of a tenant's sandboxes made of them. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/sandbox/state/state.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

static void note(struct fixture *f, const char *tenant, const char *conversation)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;

    assert_int_equal(sandbox_open(&f->root, tenant, conversation, &sb, &f->e), 0);
    assert_int_equal(state_note_use(&sb, tenant, conversation, &f->e), 0);
}

/* Moves both of the sandbox's files in .state into the past. */
static void age(struct fixture *f, const char *sandbox_dir, int64_t seconds)
{
    AUTO_FREE char *record = mem_printf(STATE_DIR "/%s.json", sandbox_dir);
    struct timespec times[2] = {{.tv_sec = clock_unix_s() - seconds},
                                {.tv_sec = clock_unix_s() - seconds}};

    assert_int_equal(utimensat(f->root.fd, record, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void a_record_says_whose_and_when(void **state)
{
    struct fixture *f = *state;
    AUTO_STATE_RECORD struct state_record r = {0};
    int64_t now = clock_unix_s();

    note(f, "default", "talk");
    assert_int_equal(state_read(&f->root, f->sb.name, &r, &f->e), 0);
    assert_string_equal(r.tenant, "default");
    assert_string_equal(r.conversation, "talk");
    assert_true(r.created >= now && r.created <= now + 5);
    assert_int_equal(r.created, r.last_used);
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

static void using_it_again_keeps_when_it_was_made(void **state)
{
    struct fixture *f = *state;
    AUTO_STATE_RECORD struct state_record r = {0};
    AUTO_FREE char *path = mem_printf(STATE_DIR "/%s.json", f->sb.name);
    static const char old[] = "{\"tenant\":\"default\",\"conversationId\":\"talk\",\"createdAt\":"
                              "1000,\"lastUsedAt\":2000}";

    AUTO_FD int fd = openat(f->root.fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, old, strlen(old)), (ssize_t)strlen(old));
    note(f, "default", "talk"); /* fresh: left alone */
    assert_int_equal(state_read(&f->root, f->sb.name, &r, &f->e), 0);
    assert_int_equal(r.last_used, 2000);
    state_record_clear(&r);

    age(f, f->sb.name, STATE_FRESH_S + 1);
    note(f, "default", "talk");
    assert_int_equal(state_read(&f->root, f->sb.name, &r, &f->e), 0);
    assert_int_equal(r.created, 1000);
    assert_true(r.last_used >= clock_unix_s() - 5);
}

static void a_damaged_record_is_none_and_is_replaced(void **state)
{
    struct fixture *f = *state;
    AUTO_STATE_RECORD struct state_record r = {0};
    AUTO_FREE char *path = mem_printf(STATE_DIR "/%s.json", f->sb.name);

    AUTO_FD int fd = openat(f->root.fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "{\"tenant\":1}", 12), 12);
    assert_int_equal(state_read(&f->root, f->sb.name, &r, &f->e), -1);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(state_read(&f->root, f->sb.name, &r, &f->e), -1);
    age(f, f->sb.name, STATE_FRESH_S + 1);
    note(f, "default", "talk");
    assert_int_equal(state_read(&f->root, f->sb.name, &r, &f->e), 0);
    assert_string_equal(r.conversation, "talk");
}

static void a_list_holds_the_tenants_own_newest_first(void **state)
{
    struct fixture *f = *state;
    AUTO_STATE_LIST struct state_list l = {0};
    static const char *const names[] = {"a", "b", "c"};

    note(f, "other", "a");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        note(f, "default", names[i]);
    assert_int_equal(state_list(&f->root, "default", &l, &f->e), 0);
    assert_int_equal(l.n, 3);
    for (size_t i = 1; i < l.n; i++)
        assert_true(state_sandbox_compare(&l.items[i - 1], &l.items[i]) < 0);
    state_list_clear(&l);
    assert_int_equal(state_list(&f->root, "nobody/..", &l, &f->e), 0);
    assert_int_equal(l.n, 0);
    assert_true(state_sandbox_compare(&(struct state_sandbox){.created = 2},
                                      &(struct state_sandbox){.created = 1}) < 0);
}

static void looking_for_a_sandbox_makes_none(void **state)
{
    struct fixture *f = *state;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    int before = fixture_count(AT_FDCWD, f->path);

    assert_int_equal(sandbox_find(&f->root, "default", "guess", &sb, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_NOT_FOUND);
    assert_int_equal(sandbox_find_named(&f->root, "../root", &sb, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_INVALID);
    assert_int_equal(fixture_count(AT_FDCWD, f->path), before);
    assert_int_equal(sandbox_find(&f->root, "default", "talk", &sb, &f->e), 0);
    assert_string_equal(sb.name, f->sb.name);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
static const struct CMUnitTest tests[] = {
    CASE(a_record_says_whose_and_when),
    CASE(using_it_again_keeps_when_it_was_made),
    CASE(a_damaged_record_is_none_and_is_replaced),
    CASE(a_list_holds_the_tenants_own_newest_first),
    CASE(looking_for_a_sandbox_makes_none),
};
UNIT_TESTS(tests)
