/* Helpers are written out whole, repaired when they are not whole, and left alone when they are. */
#include "config.h"

#include "common/base/buf.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/sandbox/helpers.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

static char *install(struct fixture *f)
{
    char *path = helpers_install(&f->root, &f->e);

    if (!path)
        fail_msg("%s", f->e.text);
    return path;
}

static struct stat stat_of(const char *folder, const char *name)
{
    AUTO_FREE char *path = mem_printf("%s/%s", folder, name);
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return st;
}

static void check_whole(const char *folder)
{
    for (const struct helper_file *f = helper_files; f->name; f++) {
        AUTO_FREE char *path = mem_printf("%s/%s", folder, f->name);
        AUTO_BUF struct buf have = BUF_INIT(8 << 20);
        struct err e = ERR_INIT;

        assert_int_equal(fdio_read_file(path, &have, &e), 0);
        assert_int_equal(have.len, f->end - f->begin);
        assert_memory_equal(have.data, f->begin, have.len);
        assert_int_equal(stat_of(folder, f->name).st_mode, S_IFREG | 0555);
    }
}

static void it_is_written_whole_and_then_left_alone(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *folder = install(f);
    struct stat before = stat_of(folder, "entry");
    AUTO_FREE char *again = NULL;

    assert_memory_equal(folder, f->path, strlen(f->path));
    check_whole(folder);
    assert_int_equal(stat_of(folder, "").st_mode, S_IFDIR | 0755);
    again = install(f);
    assert_string_equal(folder, again);
    assert_int_equal(stat_of(folder, "entry").st_ino, before.st_ino);
}

static void the_entry_program_is_one(void **state)
{
    (void)state;
    assert_string_equal(helper_files[0].name, "entry");
    assert_true(helper_files[0].end - helper_files[0].begin > 100000);
    assert_memory_equal(helper_files[0].begin, "\177ELF", 4);
}

static void what_is_wrong_is_mended(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *folder = install(f);
    AUTO_FREE char *entry = mem_printf("%s/entry", folder);
    AUTO_FREE char *python = mem_printf("%s/session.py", folder);
    AUTO_FREE char *typescript = mem_printf("%s/session.mjs", folder);

    assert_int_equal(chmod(entry, 0755), 0);
    assert_int_equal(truncate(entry, 5), 0);
    assert_int_equal(unlink(python), 0);
    assert_int_equal(unlink(typescript), 0);
    assert_int_equal(symlink("/etc/passwd", typescript), 0);
    free(install(f));
    check_whole(folder);
}

static void a_folder_that_is_no_folder_is_an_error(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(symlinkat("/tmp", f->root.fd, HELPERS_DIR), 0);
    assert_null(helpers_install(&f->root, &f->e));
    assert_int_equal(f->e.kind, ERR_IO);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(it_is_written_whole_and_then_left_alone, fixture_setup,
                                    fixture_teardown),
    cmocka_unit_test(the_entry_program_is_one),
    cmocka_unit_test_setup_teardown(what_is_wrong_is_mended, fixture_setup, fixture_teardown),
    cmocka_unit_test_setup_teardown(a_folder_that_is_no_folder_is_an_error, fixture_setup,
                                    fixture_teardown),
};
UNIT_TESTS(tests)
