#include "config.h"

#include "common/sandbox/files/tree.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/warm_dir.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

#include <sys/file.h>

#define DEEP 3000
#define MANY 100000

static void retire(struct fixture *f)
{
    char name[SANDBOX_NAME_LEN + 1], trash[TRASH_NAME_LEN + 1];

    memcpy(name, f->sb.name, sizeof name);
    sandbox_close(&f->sb);
    if (sandbox_retire(&f->root, name, TRASH_DIR, trash, &f->e) < 0)
        fail_msg("%s", f->e.text);
}

static int left(const struct fixture *f)
{
    return fixture_count(f->root.fd, TRASH_DIR);
}

static void a_retired_sandbox_is_gone_at_once_and_its_trash_can_be_emptied(void **state)
{
    struct fixture *f = *state;
    AUTO_SANDBOX struct sandbox again = SANDBOX_INIT;

    fixture_plant(f, "file", "text");
    retire(f);
    assert_int_equal(sandbox_find(&f->root, "default", "talk", &again, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_NOT_FOUND);
    assert_int_equal(left(f), 1);
    trash_empty(&f->root);
    assert_int_equal(left(f), 0);
    assert_int_equal(sandbox_open(&f->root, "default", "talk", &again, &f->e), 0);
    assert_true(again.made);
}

static void an_open_one_is_not_taken_away(void **state)
{
    struct fixture *f = *state;
    AUTO_SANDBOX struct sandbox second = SANDBOX_INIT;
    char trash[TRASH_NAME_LEN + 1];

    assert_int_equal(sandbox_find(&f->root, "default", "talk", &second, &f->e), 0);
    assert_false(second.made);
    sandbox_close(&f->sb);
    assert_int_equal(sandbox_retire(&f->root, second.name, TRASH_DIR, trash, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_BUSY);
    sandbox_close(&second);
    assert_int_equal(sandbox_retire(&f->root, second.name, TRASH_DIR, trash, &f->e), 0);
    assert_int_equal(sandbox_retire(&f->root, second.name, TRASH_DIR, trash, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_NOT_FOUND);
}

/* A program can lock its own directory; other work goes on. */
static void a_lock_of_the_programs_delays_its_removal_briefly(void **state)
{
    struct fixture *f = *state;
    AUTO_SANDBOX struct sandbox second = SANDBOX_INIT;
    AUTO_FD int theirs = openat(f->root.fd, f->sb.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    sandbox_close(&f->sb);
    assert_int_equal(flock(theirs, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(sandbox_open(&f->root, "default", "talk", &second, &f->e), 0);
}

static void links_are_removed_and_not_followed(void **state)
{
    struct fixture *f = *state;
    const char *secret = fixture_secret_file(f);

    assert_int_equal(symlinkat(secret, f->sb.fd, "to a file"), 0);
    assert_int_equal(symlinkat(f->dir, f->sb.fd, "to a folder"), 0);
    assert_int_equal(symlinkat(".", f->sb.fd, "to itself"), 0);
    retire(f);
    trash_empty(&f->root);
    assert_int_equal(left(f), 0);
    assert_int_equal(access(secret, F_OK), 0);
}

static void names_of_all_bytes_modes_of_all_kinds_and_odd_files_go(void **state)
{
    struct fixture *f = *state;

    for (int c = 1; c < 256; c++) {
        char name[8] = {'x', (char)c, 'y', '\0'};
        if (c != '/')
            fixture_plant(f, name, "");
    }
    assert_int_equal(mkdirat(f->sb.fd, "-rf", 0755), 0);
    assert_int_equal(mkdirat(f->sb.fd, "-rf/in", 0755), 0);
    assert_int_equal(mkfifoat(f->sb.fd, "-rf/in/fifo", 0000), 0);
    assert_int_equal(fchmodat(f->sb.fd, "-rf/in", 0000, 0), 0);
    assert_int_equal(fchmodat(f->sb.fd, "-rf", 0000, 0), 0);
    retire(f);
    trash_empty(&f->root);
    assert_int_equal(left(f), 0);
}

/* Each folder's mode forbids everything, which only root does not notice. */
static void a_tree_of_any_depth_goes(void **state)
{
    struct fixture *f = *state;
    int fds = fixture_open_fds();
    int at = fcntl(f->sb.fd, F_DUPFD_CLOEXEC, 3);

    for (int i = 0; i < DEEP; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        AUTO_FD int file = openat(at, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (i > 0)
            assert_int_equal(fchmod(at, 0), 0);
        close(at);
        at = next;
    }
    close(at);
    retire(f);
    trash_empty(&f->root);
    assert_int_equal(left(f), 0);
    assert_int_equal(fixture_open_fds(), fds - 1); /* the sandbox's */
}

static void a_hundred_thousand_files_go(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        AUTO_FD int fd = openat(f->sb.fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
    }
    retire(f);
    trash_empty(&f->root);
    assert_int_equal(left(f), 0);
}

static void its_records_go_with_it(void **state)
{
    struct fixture *f = *state;
    AUTO_STATE_LIST struct state_list list = {0};
    char name[SANDBOX_NAME_LEN + 1];
    struct usage u;

    memcpy(name, f->sb.name, sizeof name);
    assert_int_equal(state_note_use(&f->sb, "default", "talk", &f->e), 0);
    state_note_size(&f->root, name, &(struct usage){.bytes = 1, .files = 1});
    assert_true(state_last_used(&f->root, name) > 0);
    retire(f);
    state_forget(&f->root, name);
    assert_int_equal(state_list(&f->root, "default", &list, &f->e), 0);
    assert_int_equal(list.n, 0);
    assert_false(state_size(&f->root, name, &u));
    assert_int_equal(state_last_used(&f->root, name), -1);
}

static void who_comes_back_hears_that_it_expired_for_a_while(void **state)
{
    struct fixture *f = *state;
    AUTO_SANDBOX struct sandbox again = SANDBOX_INIT;
    char name[SANDBOX_NAME_LEN + 1];

    memcpy(name, f->sb.name, sizeof name);
    assert_int_equal(state_expired_at(&f->root, name), 0);
    retire(f);
    state_mark_expired(&f->root, name);
    assert_true(state_expired_at(&f->root, name) > 0);
    assert_int_equal(sandbox_find(&f->root, "default", "talk", &again, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_NOT_FOUND);
    assert_non_null(strstr(f->e.text, "expired"));
    assert_int_equal(sandbox_find(&f->root, "another", "talk", &again, &f->e), -1);
    assert_null(strstr(f->e.text, "expired"));
    state_tidy(&f->root, state_expired_at(&f->root, name) + STATE_GONE_S);
    assert_true(state_expired_at(&f->root, name) > 0);
    state_tidy(&f->root, state_expired_at(&f->root, name) + STATE_GONE_S + 1);
    assert_int_equal(state_expired_at(&f->root, name), 0);
    state_mark_expired(&f->root, name);
    assert_true(state_take_expired(&f->root, name) > 0);
    assert_int_equal(state_take_expired(&f->root, name), 0);
}

static void a_spare_with_something_in_it_goes_to_the_trash(void **state)
{
    struct fixture *f = *state;
    char name[WARM_DIR_NAME_LEN + 1], path[64];

    assert_int_equal(warm_dir_make(&f->root, name, &f->e), 0);
    snprintf(path, sizeof path, WARM_DIR "/%s/folder", name);
    assert_int_equal(mkdirat(f->root.fd, path, 0755), 0);
    warm_dir_remove(&f->root, name);
    assert_int_equal(fixture_count(f->root.fd, WARM_DIR), 0);
    assert_int_equal(left(f), 1);
    trash_empty(&f->root);
    assert_int_equal(left(f), 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
#define BIG(fn)  cmocka_unit_test_setup_teardown(fn, fixture_setup_big, fixture_teardown)

static const struct CMUnitTest tests[] = {
    CASE(a_retired_sandbox_is_gone_at_once_and_its_trash_can_be_emptied),
    CASE(an_open_one_is_not_taken_away),
    CASE(a_lock_of_the_programs_delays_its_removal_briefly),
    CASE(links_are_removed_and_not_followed),
    CASE(names_of_all_bytes_modes_of_all_kinds_and_odd_files_go),
    CASE(a_tree_of_any_depth_goes),
    BIG(a_hundred_thousand_files_go),
    CASE(its_records_go_with_it),
    CASE(who_comes_back_hears_that_it_expired_for_a_while),
    CASE(a_spare_with_something_in_it_goes_to_the_trash),
};
UNIT_TESTS(tests)
