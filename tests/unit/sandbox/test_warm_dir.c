#include "config.h"

#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/sandbox/warm_dir.h"

#include <sys/wait.h>

#define RACERS 8
#define ROUNDS 40

static void make(struct fixture *f, char name[WARM_DIR_NAME_LEN + 1])
{
    if (warm_dir_make(&f->root, name, &f->e) < 0)
        fail_msg("%s", f->e.text);
}

/* Path of a spare as this process sees it. */
static const char *path_of(const char *name)
{
    static char path[sizeof(WARM_DIR) + 1 + WARM_DIR_NAME_LEN];

    snprintf(path, sizeof(path), WARM_DIR "/%.*s", WARM_DIR_NAME_LEN, name);
    return path;
}

static bool is_there(const struct fixture *f, const char *path)
{
    return faccessat(f->root.fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int adopt(struct fixture *f, const char *name, const char *conversation)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;

    return fixture_adopt(&f->root, name, conversation, &sb, &f->e);
}

static void a_spare_is_what_a_sandbox_is(void **state)
{
    struct fixture *f = *state;
    char one[WARM_DIR_NAME_LEN + 1], two[WARM_DIR_NAME_LEN + 1];
    struct stat st;

    make(f, one);
    make(f, two);
    assert_string_not_equal(one, two);
    assert_int_equal(fstatat(f->root.fd, path_of(one), &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_uid, fixture_uid());
    assert_int_equal(st.st_gid, fixture_gid());
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
    assert_int_equal(fixture_count(f->root.fd, WARM_DIR), 2);
}

static void its_host_path_is_the_engines(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root elsewhere = f->root;
    char name[WARM_DIR_NAME_LEN + 1], want[400];

    make(f, name);
    elsewhere.host_path = (char[]){"/srv/boxes"};
    AUTO_FREE char *path = warm_dir_host_path(&elsewhere, name);
    snprintf(want, sizeof(want), "/srv/boxes/" WARM_DIR "/%s", name);
    assert_string_equal(path, want);
}

/* A descriptor stands for the bind mount: it follows the directory to its new name. */
static void an_adopted_spare_is_the_conversations_sandbox(void **state)
{
    struct fixture *f = *state;
    char name[WARM_DIR_NAME_LEN + 1], want[SANDBOX_NAME_LEN + 1];
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct stat before, after;

    make(f, name);
    AUTO_FD int mounted = openat(f->root.fd, path_of(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(fstat(mounted, &before), 0);
    assert_int_equal(fixture_adopt(&f->root, name, "new talk", &sb, &f->e), 0);
    assert_int_equal(sandbox_name(&f->root, "default", "new talk", want, &f->e), 0);
    assert_string_equal(sb.name, want);
    assert_int_equal(fstat(sb.fd, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    AUTO_FD int file = openat(mounted, "made.txt", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    assert_int_equal(faccessat(sb.fd, "made.txt", F_OK, 0), 0);
    assert_false(is_there(f, path_of(name)));

    AUTO_SANDBOX struct sandbox again = SANDBOX_INIT;
    assert_int_equal(sandbox_open(&f->root, "default", "new talk", &again, &f->e), 0);
    assert_string_equal(again.name, want);
}

static void a_sandbox_that_exists_is_never_replaced(void **state)
{
    struct fixture *f = *state;
    char name[WARM_DIR_NAME_LEN + 1];
    AUTO_SANDBOX struct sandbox empty = SANDBOX_INIT;

    make(f, name);
    fixture_plant(f, "kept.txt", "kept");
    assert_int_equal(adopt(f, name, "talk"), -1);
    assert_int_equal(f->e.kind, ERR_EXISTS);
    fixture_assert_content(f, "kept.txt", "kept");
    /* rename(2) would replace an empty one. */
    assert_int_equal(sandbox_open(&f->root, "default", "empty", &empty, &f->e), 0);
    assert_int_equal(adopt(f, name, "empty"), -1);
    assert_int_equal(f->e.kind, ERR_EXISTS);
    assert_true(is_there(f, path_of(name)));
    assert_int_equal(adopt(f, name, "another"), 0);
}

static void what_is_no_spare_is_not_adopted(void **state)
{
    struct fixture *f = *state;
    char name[WARM_DIR_NAME_LEN + 1];
    int before = fixture_count(f->root.fd, ".");
    static const char *const wrong[] = {
        "",
        ".",
        "..",
        "../.state",
        "0123456789abcdef01234567",
        "0123456789abcdef0123456",
        "0123456789abcdef012345678",
        "0123456789ABCDEF01234567",
        "0123456789abcdef0123456/",
    };

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(adopt(f, wrong[i], "new"), -1);
        assert_int_equal(f->e.kind, ERR_NOT_FOUND);
    }
    make(f, name);
    assert_int_equal(adopt(f, name, ""), -1);
    assert_int_equal(f->e.kind, ERR_INVALID);
    assert_int_equal(fixture_count(f->root.fd, "."), before);
    assert_true(is_there(f, path_of(name)));
}

/* Each racer has a spare of its own and wants the same conversation. */
static int count_winners(struct fixture *f, const char *conversation,
                         char names[RACERS][WARM_DIR_NAME_LEN + 1])
{
    pid_t racers[RACERS];
    int winners = 0, gate[2];

    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = fork();
        assert_true(racers[i] >= 0);
        if (racers[i] == 0) {
            char c;
            close(gate[1]);
            (void)!read(gate[0], &c, 1); /* all start when the gate closes */
            bool won = adopt(f, names[i], conversation) == 0;
            _exit(won ? 0 : f->e.kind == ERR_EXISTS ? 1 : 2);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < RACERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(racers[i], &status, 0), racers[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        winners += WEXITSTATUS(status) == 0;
    }
    return winners;
}

static void of_processes_that_race_one_wins(void **state)
{
    struct fixture *f = *state;

    for (int round = 0; round < ROUNDS; round++) {
        char names[RACERS][WARM_DIR_NAME_LEN + 1];
        char conversation[32];
        int left = 0;

        snprintf(conversation, sizeof(conversation), "round %d", round);
        for (int i = 0; i < RACERS; i++)
            make(f, names[i]);
        assert_int_equal(count_winners(f, conversation, names), 1);
        for (int i = 0; i < RACERS; i++) {
            left += is_there(f, path_of(names[i]));
            warm_dir_remove(&f->root, names[i]);
        }
        assert_int_equal(left, RACERS - 1);
    }
    assert_int_equal(fixture_count(f->root.fd, WARM_DIR), 0);
}

static void removal_takes_what_a_program_left_and_follows_no_link(void **state)
{
    struct fixture *f = *state;
    char name[WARM_DIR_NAME_LEN + 1];

    make(f, name);
    const char *secret = fixture_secret_file(f);
    AUTO_FD int dir = openat(f->root.fd, path_of(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(dir, "a", 0755), 0);
    assert_int_equal(mkdirat(dir, "a/b", 0755), 0);
    assert_int_equal(symlinkat(f->dir, dir, "a/out"), 0);
    assert_int_equal(symlinkat(secret, dir, "a/b/secret"), 0);
    assert_int_equal(mkfifoat(dir, "a/b/pipe", 0600), 0);
    AUTO_FD int file = openat(dir, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0000);
    assert_true(file >= 0);
    warm_dir_remove(&f->root, name);
    assert_false(is_there(f, path_of(name)));
    assert_int_equal(access(secret, F_OK), 0);
    warm_dir_remove(&f->root, name); /* gone already */
    warm_dir_remove(&f->root, "../.state");
    assert_true(is_there(f, ".state"));
}

static void the_sweep_takes_old_spares_only(void **state)
{
    struct fixture *f = *state;
    char name[WARM_DIR_NAME_LEN + 1];
    int fds = fixture_open_fds();

    make(f, name);
    assert_int_equal(mkdirat(f->root.fd, WARM_DIR "/not ours", 0700), 0);
    warm_dir_sweep(&f->root, WARM_DIR_LEFT_OVER_S);
    assert_true(is_there(f, path_of(name)));
    warm_dir_sweep(&f->root, 0);
    assert_false(is_there(f, path_of(name)));
    assert_true(is_there(f, WARM_DIR "/not ours"));
    assert_int_equal(fixture_open_fds(), fds);
}

static void without_room_for_it_nothing_is_left_behind(void **state)
{
    struct fixture *f = *state;
    char name[WARM_DIR_NAME_LEN + 1];

    assert_int_equal(renameat(f->root.fd, WARM_DIR, f->root.fd, "elsewhere"), 0);
    assert_int_equal(warm_dir_make(&f->root, name, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_IO);
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
static const struct CMUnitTest tests[] = {
    CASE(a_spare_is_what_a_sandbox_is),
    CASE(its_host_path_is_the_engines),
    CASE(an_adopted_spare_is_the_conversations_sandbox),
    CASE(a_sandbox_that_exists_is_never_replaced),
    CASE(what_is_no_spare_is_not_adopted),
    CASE(of_processes_that_race_one_wins),
    CASE(removal_takes_what_a_program_left_and_follows_no_link),
    CASE(the_sweep_takes_old_spares_only),
    CASE(without_room_for_it_nothing_is_left_behind),
};
UNIT_TESTS(tests)
