/*
 * A program that swaps folders and links under our feet while we read, put and list. Another
 * process does the swapping; each case runs for a fixed, short time. The one promise: nothing
 * outside the sandbox is read, written, or given away.
 */
#include "config.h"

#include "tests/unit/sandbox/kernel.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/base/clock.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/snapshot.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define RACE_MS     700
#define PATIENCE_MS 20000

/*
 * A child for the swapping; 0 in it. It dies with this process, since a case that fails leaves by
 * longjmp and would leave it spinning for ever.
 */
static pid_t start_program(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
        _exit(1);
    return pid;
}

/* Swaps the two names for each other until it is killed: a folder (or file) of the sandbox, and a
 * link out of it. */
static pid_t start_swapping(const struct fixture *f, const char *one, const char *two)
{
    pid_t pid = start_program();

    while (pid == 0)
        renameat2(f->sb.fd, one, f->sb.fd, two, RENAME_EXCHANGE);
    return pid;
}

/* Removes the folder and makes it anew until it is killed. */
static pid_t start_removing(const struct fixture *f, const char *folder)
{
    pid_t pid = start_program();

    while (pid == 0) {
        unlinkat(f->sb.fd, folder, AT_REMOVEDIR);
        mkdirat(f->sb.fd, folder, 0755);
    }
    return pid;
}

/* Makes "it" a file, a link to out, a folder with a link to out in it, and a FIFO, in turn. */
static pid_t start_turning(const struct fixture *f, const char *out)
{
    pid_t pid = start_program();

    while (pid == 0) {
        AUTO_FD int fd = openat(f->sb.fd, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd >= 0 && write(fd, "inside", 6) == 6)
            renameat(f->sb.fd, "new", f->sb.fd, "it");
        if (symlinkat(out, f->sb.fd, "new") == 0)
            renameat(f->sb.fd, "new", f->sb.fd, "it");
        unlinkat(f->sb.fd, "it", 0);
        mkdirat(f->sb.fd, "it", 0755);
        if (symlinkat(out, f->sb.fd, "it/way") == 0)
            unlinkat(f->sb.fd, "it/way", 0);
        unlinkat(f->sb.fd, "it", AT_REMOVEDIR);
        mkfifoat(f->sb.fd, "it", 0666);
        unlinkat(f->sb.fd, "it", 0);
    }
    return pid;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Goes on until there was something to see, where others have the processors. */
static bool is_racing(int64_t end, bool seen_any)
{
    int64_t now = clock_mono_ms();

    return now < end || (!seen_any && now < end + PATIENCE_MS);
}

/* out/ is outside of every sandbox and holds file; in the sandbox, way is a folder with a file, and
 * link leads to out/. */
static void plant_ways(struct fixture *f, char *out)
{
    snprintf(out, 320, "%s/out", f->dir);
    assert_int_equal(mkdir(out, 0777), 0);
    AUTO_FD int dir = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD int fd = openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, "outside", 7), 7);
    assert_int_equal(mkdirat(f->sb.fd, "way", 0755), 0);
    fixture_plant(f, "way/file", "inside");
    assert_int_equal(symlinkat(out, f->sb.fd, "link"), 0);
}

static void reading_through_a_swapped_folder_never_leaves(void **state)
{
    struct fixture *f = *state;
    char out[320], got[16];
    struct stat st;
    int opened = 0;

    plant_ways(f, out);
    pid_t pid = start_swapping(f, "way", "link");
    for (int64_t end = clock_mono_ms() + RACE_MS; is_racing(end, opened > 0);) {
        AUTO_FD int fd = files_open(&f->sb, "way/file", &st, &f->e);
        if (fd < 0)
            continue;
        opened++;
        assert_int_equal(read(fd, got, sizeof(got)), 6);
        assert_memory_equal(got, "inside", 6);
    }
    stop(pid);
    assert_true(opened > 0);
}

static void putting_through_a_swapped_folder_never_leaves(void **state)
{
    struct fixture *f = *state;
    char out[320];
    struct stat before, after;
    int done = 0;

    plant_ways(f, out);
    assert_int_equal(stat(out, &before), 0);
    pid_t pid = start_swapping(f, "way", "link");
    for (int64_t end = clock_mono_ms() + RACE_MS; is_racing(end, done > 0);)
        done += fixture_put(f, "way/new/file", "put") == 0;
    stop(pid);
    assert_true(done > 0);
    assert_int_equal(fixture_count(AT_FDCWD, out), 1);
    assert_int_equal(stat(out, &after), 0);
    assert_int_equal(before.st_uid, after.st_uid);
    assert_int_equal(before.st_mode, after.st_mode);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

static void putting_where_a_file_and_a_link_swap_never_leaves(void **state)
{
    struct fixture *f = *state;
    char out[320], target[340];
    struct stat st;

    plant_ways(f, out);
    snprintf(target, sizeof(target), "%s/file", out);
    assert_int_equal(unlinkat(f->sb.fd, "link", 0), 0);
    assert_int_equal(symlinkat(target, f->sb.fd, "link"), 0);
    fixture_plant(f, "a.txt", "inside");
    pid_t pid = start_swapping(f, "a.txt", "link");
    for (int64_t end = clock_mono_ms() + RACE_MS; clock_mono_ms() < end;) {
        assert_int_equal(fixture_put(f, "a.txt", "put"), 0);
        AUTO_FD int fd = files_open(&f->sb, "a.txt", &st, &f->e);
        if (fd >= 0)
            assert_int_not_equal(st.st_size, 7);
        /* The link is soon replaced on both names: plant it again. */
        assert_int_equal(symlinkat(target, f->sb.fd, "link2"), 0);
        assert_int_equal(renameat(f->sb.fd, "link2", f->sb.fd, "link"), 0);
    }
    stop(pid);
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_size, 7);
}

static void putting_into_a_folder_that_comes_and_goes_is_whole_or_an_error(void **state)
{
    struct fixture *f = *state;
    int done = 0;

    pid_t pid = start_removing(f, "f");
    for (int64_t end = clock_mono_ms() + RACE_MS; is_racing(end, done > 0);) {
        if (fixture_put(f, "f/g/file", "put") == 0)
            done++;
        else
            assert_int_equal(f->e.kind, ERR_IO);
    }
    stop(pid);
    assert_true(done > 0);
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

/* Is out/ as plant_ways made it? */
static void assert_untouched(const char *out)
{
    char file[340];
    struct stat st;

    snprintf(file, sizeof(file), "%s/file", out);
    assert_int_equal(fixture_count(AT_FDCWD, out), 1);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_size, 7);
}

static void deleting_where_things_swap_never_leaves(void **state)
{
    struct fixture *f = *state;
    char out[320];
    uint64_t n;
    int done = 0, fds = fixture_open_fds();

    plant_ways(f, out);
    pid_t swapper = start_swapping(f, "way", "link");
    pid_t turner = start_turning(f, out);
    for (int64_t end = clock_mono_ms() + RACE_MS; is_racing(end, done > 0);) {
        (void)files_delete(&f->sb, "way/file", true, NULL, &n, &f->e);
        done += files_delete(&f->sb, "it", true, NULL, &n, &f->e) == 0;
        (void)fixture_put(f, "way/file", "inside");
    }
    stop(swapper);
    stop(turner);
    assert_true(done > 0);
    assert_untouched(out);
    assert_int_equal(fixture_open_fds(), fds);
}

/* The folder that is deleted has its own folders swapped for links meanwhile, and filled anew. */
static void deleting_a_folder_that_changes_never_leaves(void **state)
{
    struct fixture *f = *state;
    char out[320];
    uint64_t n;
    int done = 0;

    plant_ways(f, out);
    pid_t swapper = start_swapping(f, "top/way", "link");
    for (int64_t end = clock_mono_ms() + RACE_MS; is_racing(end, done > 0);) {
        (void)fixture_put(f, "top/way/a/b", "inside");
        (void)fixture_put(f, "top/way/c", "inside");
        done += files_delete(&f->sb, "top", true, NULL, &n, &f->e) == 0;
        if (fstatat(f->sb.fd, "link", &(struct stat){0}, AT_SYMLINK_NOFOLLOW) < 0)
            assert_int_equal(symlinkat(out, f->sb.fd, "link"), 0);
    }
    stop(swapper);
    assert_true(done > 0);
    assert_untouched(out);
}

static void moving_where_things_swap_never_leaves(void **state)
{
    struct fixture *f = *state;
    char out[320];
    int done = 0, fds = fixture_open_fds();

    plant_ways(f, out);
    fixture_plant(f, "mine", "inside");
    pid_t swapper = start_swapping(f, "way", "link");
    pid_t turner = start_turning(f, out);
    for (int64_t end = clock_mono_ms() + RACE_MS; is_racing(end, done > 0);) {
        done += files_move(&f->sb, "mine", "way/mine", true, &f->e) == 0;
        done += files_move(&f->sb, "way/mine", "it/way/mine", true, &f->e) == 0;
        (void)files_move(&f->sb, "it", "taken", true, &f->e);
        (void)files_move(&f->sb, "way/file", "elsewhere", true, &f->e);
        (void)files_move(&f->sb, "elsewhere", "way/file", true, &f->e);
        (void)fixture_put(f, "mine", "inside");
    }
    stop(swapper);
    stop(turner);
    assert_true(done > 0);
    assert_untouched(out);
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
    assert_int_equal(fixture_open_fds(), fds);
}

static void paging_through_a_changing_tree_never_leaves(void **state)
{
    struct fixture *f = *state;
    char out[320];
    size_t seen = 0;
    int fds = fixture_open_fds();

    plant_ways(f, out);
    pid_t swapper = start_swapping(f, "way", "link");
    pid_t turner = start_turning(f, out);
    for (int64_t end = clock_mono_ms() + RACE_MS; is_racing(end, seen > 0);) {
        static const char *const places[] = {"", "way", "way/e", "it/way/f", "link/file"};
        const struct files_query q = {
            .folder = "", .recursive = true, .after = places[seen % ARRAY_LEN(places)], .max = 3};
        AUTO_FILES_PAGE struct files_page p = {0};
        assert_int_equal(files_list(&f->sb, &q, &p, &f->e), 0);
        for (size_t i = 0; i < p.n; i++, seen++)
            if (S_ISREG(p.rows[i].st.st_mode) && p.rows[i].st.st_size == 7)
                fail_msg("listed a file outside: %s", p.rows[i].name);
    }
    stop(swapper);
    stop(turner);
    assert_true(seen > 0);
    assert_int_equal(fixture_open_fds(), fds);
}

/* A FIFO would hold a reader for ever. */
static void reading_what_turns_into_a_fifo_never_waits(void **state)
{
    struct fixture *f = *state;
    char out[320], got[16];
    struct stat st;
    int opened = 0;

    plant_ways(f, out);
    pid_t turner = start_turning(f, out);
    for (int64_t end = clock_mono_ms() + RACE_MS; is_racing(end, opened > 0);) {
        AUTO_FD int fd = files_open(&f->sb, "it", &st, &f->e);
        if (fd < 0)
            continue;
        opened++;
        assert_int_not_equal(read(fd, got, sizeof(got)), 7);
    }
    stop(turner);
    assert_true(opened > 0);
}

static void refuse_outside(void *ctx, const struct snapshot_entry *entry, enum snapshot_change c)
{
    (void)ctx;
    (void)c;
    if (entry->size == 7)
        fail_msg("listed a file outside: %s", entry->name);
}

static void listing_a_changing_tree_never_leaves(void **state)
{
    struct fixture *f = *state;
    char out[320];
    int fds = fixture_open_fds();
    size_t most = 0;

    plant_ways(f, out);
    pid_t swapper = start_swapping(f, "way", "link");
    pid_t remover = start_removing(f, "f");
    for (int64_t end = clock_mono_ms() + RACE_MS; is_racing(end, most > 0);) {
        AUTO_SNAPSHOT struct snapshot none = {0};
        AUTO_SNAPSHOT struct snapshot s = {0};
        assert_int_equal(snapshot_take(&f->sb, &s, &f->e), 0);
        snapshot_diff(&none, &s, refuse_outside, NULL);
        most = s.n > most ? s.n : most;
    }
    stop(swapper);
    stop(remover);
    assert_true(most > 0);
    assert_int_equal(fixture_open_fds(), fds);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
static const struct CMUnitTest tests[] = {
    CASE(reading_through_a_swapped_folder_never_leaves),
    CASE(putting_through_a_swapped_folder_never_leaves),
    CASE(putting_where_a_file_and_a_link_swap_never_leaves),
    CASE(putting_into_a_folder_that_comes_and_goes_is_whole_or_an_error),
    CASE(listing_a_changing_tree_never_leaves),
    CASE(deleting_where_things_swap_never_leaves),
    CASE(deleting_a_folder_that_changes_never_leaves),
    CASE(moving_where_things_swap_never_leaves),
    CASE(paging_through_a_changing_tree_never_leaves),
    CASE(reading_what_turns_into_a_fifo_never_waits),
};
UNIT_TESTS(tests)
/* The same once more, on a kernel that seems to lack openat2. */
UNIT_TESTS_NAMED("sandbox/test_files_race_walk", tests, take_openat2_away, NULL)
