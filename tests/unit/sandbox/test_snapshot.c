#include "config.h"

#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/sandbox/snapshot.h"

#include <sys/wait.h>

#define TOLD_MAX 4096

static void tell(void *ctx, const struct snapshot_entry *entry, enum snapshot_change change)
{
    char *told = ctx;
    size_t len = strlen(told);

    snprintf(told + len, TOLD_MAX - len, "%c%s ",
             change == SNAPSHOT_CREATED   ? '+'
             : change == SNAPSHOT_DELETED ? '-'
                                          : '~',
             entry->name);
}

/* "+created -deleted ~modified " in the order in which they are told. */
static void expect_diff(const struct snapshot *before, const struct snapshot *after,
                        const char *wanted)
{
    char told[TOLD_MAX] = "";

    snapshot_diff(before, after, tell, told);
    assert_string_equal(told, wanted);
}

static void take(struct fixture *f, struct snapshot *out)
{
    if (snapshot_take(&f->sb, out, &f->e) < 0)
        fail_msg("%s", f->e.text);
}

/* The kernel's clock for ctime has the grain of a timer tick. */
static void next_tick(void)
{
    usleep(12000);
}

static void plant_tree(struct fixture *f)
{
    fixture_plant(f, "keep", "1");
    fixture_plant(f, "change", "1");
    fixture_plant(f, "delete", "1");
    assert_int_equal(mkdirat(f->sb.fd, "d", 0755), 0);
    assert_int_equal(mkdirat(f->sb.fd, "d/e", 0755), 0);
    fixture_plant(f, "d/e/f", "1");
}

/* The tree, as it is listed before anything can change in the same tick. */
static void take_tree(struct fixture *f, struct snapshot *out)
{
    plant_tree(f);
    next_tick();
    take(f, out);
}

/* The difference to what there is now. */
static void expect_since(struct fixture *f, const struct snapshot *before, const char *wanted)
{
    AUTO_SNAPSHOT struct snapshot after = {0};

    take(f, &after);
    expect_diff(before, &after, wanted);
}

static void a_diff_tells_created_modified_and_deleted_in_order(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot before = {0};

    take_tree(f, &before);
    assert_int_equal(before.n, 4);
    assert_false(before.cut);
    fixture_plant(f, "change", "2");
    fixture_plant(f, "d/e/new", "1");
    fixture_plant(f, "another", "1");
    assert_int_equal(unlinkat(f->sb.fd, "delete", 0), 0);
    expect_since(f, &before, "+another ~change +d/e/new -delete ");
}

static void equal_listings_have_no_difference(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot empty = {0};
    AUTO_SNAPSHOT struct snapshot one = {0};
    AUTO_SNAPSHOT struct snapshot two = {0};

    take(f, &empty);
    assert_int_equal(empty.n, 0);
    plant_tree(f);
    take(f, &one);
    take(f, &two);
    expect_diff(&one, &two, "");
    expect_diff(&empty, &one, "+change +d/e/f +delete +keep ");
    expect_diff(&one, &empty, "-change -d/e/f -delete -keep ");
}

static void a_change_that_hides_its_time_is_seen(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot before = {0};
    struct stat st;

    take_tree(f, &before);
    next_tick();
    assert_int_equal(fstatat(f->sb.fd, "change", &st, 0), 0);
    fixture_plant(f, "change", "9"); /* as long as before */
    assert_int_equal(utimensat(f->sb.fd, "change", (struct timespec[]){st.st_atim, st.st_mtim}, 0),
                     0);
    expect_since(f, &before, "~change ");
}

static void a_file_renamed_over_another_is_a_change(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot before = {0};

    take_tree(f, &before);
    assert_int_equal(renameat(f->sb.fd, "delete", f->sb.fd, "change"), 0);
    assert_int_equal(renameat(f->sb.fd, "d/e", f->sb.fd, "g"), 0);
    expect_since(f, &before, "~change -d/e/f -delete +g/f ");
}

/* H-28. */
static void only_regular_files_are_listed(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot s = {0};

    fixture_plant(f, "file", "1");
    assert_int_equal(mkfifoat(f->sb.fd, "fifo", 0666), 0);
    assert_int_equal(symlinkat("file", f->sb.fd, "link"), 0);
    assert_int_equal(symlinkat("/etc", f->sb.fd, "etc"), 0);
    assert_int_equal(symlinkat(".", f->sb.fd, "loop"), 0);
    assert_int_equal(mkdirat(f->sb.fd, "empty", 0755), 0);
    if (geteuid() == 0)
        assert_int_equal(mknodat(f->sb.fd, "null", S_IFCHR | 0666, 0x103), 0);
    take(f, &s);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.items[0].name, "file");
    assert_int_equal(s.items[0].size, 1);
}

/* H-24. */
static void names_are_the_bytes_on_disk_sorted_as_bytes(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot s = {0};
    static const char *const sorted[] = {"\x01", "\n",       "\"",           "-rf",     "..x",
                                         "a\tb", "\xc3\xa4", "\xe2\x80\xae", "\xff\xfe"};

    for (size_t i = ARRAY_LEN(sorted); i-- > 0;)
        fixture_plant(f, sorted[i], "1");
    assert_works(snapshot_take_all(&f->sb, &s, &f->e), f->e);
    assert_int_equal(s.n, ARRAY_LEN(sorted));
    for (size_t i = 0; i < s.n; i++)
        assert_string_equal(s.items[i].name, sorted[i]);
}

/* H-23. */
static void a_sparse_terabyte_is_listed_by_its_size(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot s = {0};

    fixture_plant(f, "huge", "");
    AUTO_FD int fd = openat(f->sb.fd, "huge", O_WRONLY | O_CLOEXEC);
    if (ftruncate(fd, 1LL << 40) < 0)
        skip();
    take(f, &s);
    assert_int_equal(s.items[0].size, 1LL << 40);
}

static void a_listing_is_cut_at_its_bounds_and_says_so(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot exact = {0};
    AUTO_SNAPSHOT struct snapshot over = {0};
    char name[32];

    for (int i = 0; i < SNAPSHOT_ENTRIES_MAX; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        assert_int_equal(mknodat(f->sb.fd, name, S_IFREG | 0644, 0), 0);
    }
    take(f, &exact);
    assert_int_equal(exact.n, SNAPSHOT_ENTRIES_MAX);
    assert_false(exact.cut);
    fixture_plant(f, "one more", "");
    take(f, &over);
    assert_int_equal(over.n, SNAPSHOT_ENTRIES_MAX);
    assert_true(over.cut);
}

static void a_cut_listing_claims_only_what_is_certain(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot before = {0};
    AUTO_SNAPSHOT struct snapshot after = {0};

    fixture_plant(f, "listed", "");
    fixture_plant(f, "old", "");
    next_tick();
    take(f, &before);
    next_tick();
    /* As if "old" had been beyond the bound. */
    assert_string_equal(before.items[1].name, "old");
    free(before.items[--before.n].name);
    before.cut = true;
    fixture_plant(f, "new", "");
    take(f, &after);
    expect_diff(&before, &after, "+new ");

    /* The other way round: what a cut after does not show may still be there. */
    before.cut = false;
    assert_string_equal(after.items[0].name, "listed");
    free(after.items[0].name);
    after.items++;
    after.n--;
    after.cut = true;
    expect_diff(&before, &after, "+new +old ");
    after.items--;
    after.items[0].name = NULL;
    after.n++;
}

static void folders_deeper_than_the_bound_are_cut(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot s = {0};
    char path[128] = "";
    size_t deepest = 0;

    /* A program can go deeper than any path has room for; a thousand levels show it. */
    AUTO_FD int at = fcntl(f->sb.fd, F_DUPFD_CLOEXEC, 3);
    for (int i = 1; i <= 1000; i++) {
        AUTO_FD int file = openat(at, "x", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto_close_fd(&at);
        at = next;
    }
    take(f, &s);
    assert_true(s.cut);
    assert_int_equal(s.n, FILES_DEPTH_MAX);
    for (size_t i = 0; i < s.n; i++)
        if (strlen(s.items[i].name) > deepest) {
            deepest = strlen(s.items[i].name);
            snprintf(path, sizeof(path), "%s", s.items[i].name);
        }
    struct stat st;
    AUTO_FD int fd = files_open(&f->sb, path, &st, &f->e);
    assert_true(fd >= 0); /* what is listed can be opened */
    assert_int_equal(files_check_name("filename", path, deepest, &f->e), 0);
}

static void names_longer_than_the_bound_are_cut(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot s = {0};
    char part[FILES_COMPONENT_MAX + 1];
    AUTO_FD int at = fcntl(f->sb.fd, F_DUPFD_CLOEXEC, 3);

    memset(part, 'y', FILES_COMPONENT_MAX);
    part[FILES_COMPONENT_MAX] = '\0';
    for (int i = 0; i < 6; i++) {
        AUTO_FD int file = openat(at, "x", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_int_equal(mkdirat(at, part, 0755), 0);
        int next = openat(at, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto_close_fd(&at);
        at = next;
    }
    take(f, &s);
    assert_true(s.cut);
    assert_int_equal(s.n, 4);
    for (size_t i = 0; i < s.n; i++)
        assert_true(strlen(s.items[i].name) <= FILES_NAME_MAX);
}

static void very_many_links_do_not_keep_us_for_ever(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot s = {0};
    char name[32];

    for (int i = 0; i <= SNAPSHOT_STEPS_MAX; i++) {
        snprintf(name, sizeof(name), "l%d", i);
        assert_int_equal(symlinkat("x", f->sb.fd, name), 0);
    }
    take(f, &s);
    assert_true(s.cut);
    assert_int_equal(s.n, 0);
}

/* As another user than root: a folder that the program locked is passed over, the rest is listed.
 */
static int list_locked(struct fixture *f)
{
    struct snapshot s = {0};

    if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
        return 77;
    if (snapshot_take(&f->sb, &s, &f->e) < 0)
        return 1;
    if (s.n != 1 || strcmp(s.items[0].name, "seen") != 0)
        return 2;
    snapshot_clear(&s);
    return 0;
}

static void a_locked_folder_is_passed_over(void **state)
{
    struct fixture *f = *state;
    int status;

    fixture_plant(f, "seen", "1");
    assert_int_equal(mkdirat(f->sb.fd, "locked", 0755), 0);
    fixture_plant(f, "locked/hidden", "1");
    assert_int_equal(fchmodat(f->sb.fd, "locked", 0, 0), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(list_locked(f));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(fchmodat(f->sb.fd, "locked", 0755, 0), 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void what_is_installed_is_counted_and_not_listed(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot without = {0};
    AUTO_SNAPSHOT struct snapshot with = {0};

    plant_tree(f);
    assert_int_equal(mkdirat(f->sb.fd, "d/" SNAPSHOT_PACKAGES, 0755), 0);
    fixture_plant(f, "d/" SNAPSHOT_PACKAGES "/own", "1");
    take(f, &without);
    assert_int_equal(without.n, 5);
    assert_int_equal(mkdirat(f->sb.fd, SNAPSHOT_PACKAGES, 0755), 0);
    assert_int_equal(mkdirat(f->sb.fd, SNAPSHOT_PACKAGES "/python", 0755), 0);
    fixture_plant(f, SNAPSHOT_PACKAGES "/python/module.py", "1");
    take(f, &with);
    assert_int_equal(with.n, 5);
    assert_int_equal(with.usage.files, without.usage.files + 3);
    assert_true(with.usage.bytes > without.usage.bytes);
    assert_false(with.usage.partial);
}

static void what_begins_with_a_dot_at_the_top_is_counted_and_not_listed(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot without = {0};
    AUTO_SNAPSHOT struct snapshot with = {0};
    AUTO_SNAPSHOT struct snapshot all = {0};

    plant_tree(f);
    fixture_plant(f, "d/.own", "1");
    take(f, &without);
    assert_int_equal(without.n, 5);
    assert_int_equal(mkdirat(f->sb.fd, ".config", 0755), 0);
    fixture_plant(f, ".config/settings", "1");
    fixture_plant(f, ".bashrc", "1");
    assert_int_equal(symlinkat("d", f->sb.fd, ".link"), 0);
    take(f, &with);
    expect_diff(&without, &with, "");
    assert_int_equal(with.usage.files, without.usage.files + 4);
    assert_true(with.usage.bytes > without.usage.bytes);
    assert_works(snapshot_take_all(&f->sb, &all, &f->e), f->e);
    expect_diff(&with, &all, "+.bashrc +.config/settings ");
    snapshot_clear(&all);
    fixture_plant(f, ".script.py", "1");
    fixture_plant(f, ".script-2.py", "1");
    assert_int_equal(fchmodat(f->sb.fd, ".script.py", S_ISVTX | 0600, 0), 0); /* it runs */
    assert_works(snapshot_take_all(&f->sb, &all, &f->e), f->e);
    expect_diff(&with, &all, "+.bashrc +.config/settings +.script-2.py ");
}

/* A user's own may have the mode, too, or the name. */
static void a_program_is_known_by_its_name_and_its_mode(void **state)
{
    static const struct {
        const char *name;
        mode_t mode;
        bool program;
    } cases[] = {
        {".script.py", S_ISVTX | 0600, true},  {".script-2.sh", S_ISVTX | 0600, true},
        {".cell-3.ts", S_ISVTX | 0600, true},  {".env", S_ISVTX | 0600, false},
        {".scripts", S_ISVTX | 0600, false},   {"script.py", S_ISVTX | 0600, false},
        {".script.ts", S_ISVTX | 0777, false}, {".script-3.ts", 0600, false},
        {".gitignore", S_ISVTX | 0644, false},
    };
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot all = {0};
    AUTO_SNAPSHOT struct snapshot below = {0};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stat st = {.st_mode = S_IFREG | cases[i].mode};

        assert_int_equal(snapshot_is_program(cases[i].name, &st), cases[i].program);
        fixture_plant(f, cases[i].name, "1");
        assert_int_equal(fchmodat(f->sb.fd, cases[i].name, cases[i].mode, 0), 0);
    }
    assert_works(snapshot_take_all(&f->sb, &all, &f->e), f->e);
    assert_int_equal(all.n, ARRAY_LEN(cases) - 3);
    assert_works(snapshot_take_folder(&f->sb, &below, &f->e), f->e);
    assert_int_equal(below.n, ARRAY_LEN(cases)); /* a program lies at the top alone */
}

static void a_small_listing_ends_where_what_is_hidden_is_large(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot s = {0};

    assert_int_equal(mkdirat(f->sb.fd, ".a", 0755), 0);
    assert_int_equal(mkdirat(f->sb.fd, ".b", 0755), 0);
    fixture_plant(f, ".a/1", "1");
    fixture_plant(f, ".a/2", "1");
    fixture_plant(f, ".b/1", "1");
    assert_int_equal(snapshot_take_small(&f->sb, 3, &s, &f->e), 0);
    assert_int_equal(s.usage.files, 5);
    assert_int_equal(s.n, 0);
    snapshot_clear(&s);
    assert_int_equal(snapshot_take_small(&f->sb, 2, &s, &f->e), 1);
}

static void changes_have_names(void **state)
{
    (void)state;
    assert_string_equal(snapshot_change_name(SNAPSHOT_CREATED), "created");
    assert_string_equal(snapshot_change_name(SNAPSHOT_MODIFIED), "modified");
    assert_string_equal(snapshot_change_name(SNAPSHOT_DELETED), "deleted");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
#define BIG(fn)  cmocka_unit_test_setup_teardown(fn, fixture_setup_big, fixture_teardown)
static const struct CMUnitTest tests[] = {
    CASE(a_diff_tells_created_modified_and_deleted_in_order),
    CASE(equal_listings_have_no_difference),
    CASE(a_change_that_hides_its_time_is_seen),
    CASE(a_file_renamed_over_another_is_a_change),
    CASE(only_regular_files_are_listed),
    CASE(names_are_the_bytes_on_disk_sorted_as_bytes),
    CASE(a_sparse_terabyte_is_listed_by_its_size),
    BIG(a_listing_is_cut_at_its_bounds_and_says_so),
    CASE(a_cut_listing_claims_only_what_is_certain),
    CASE(folders_deeper_than_the_bound_are_cut),
    CASE(names_longer_than_the_bound_are_cut),
    CASE(what_begins_with_a_dot_at_the_top_is_counted_and_not_listed),
    CASE(a_program_is_known_by_its_name_and_its_mode),
    CASE(a_small_listing_ends_where_what_is_hidden_is_large),
    BIG(very_many_links_do_not_keep_us_for_ever),
    CASE(a_locked_folder_is_passed_over),
    CASE(what_is_installed_is_counted_and_not_listed),
    cmocka_unit_test(changes_have_names),
};
UNIT_TESTS(tests)
