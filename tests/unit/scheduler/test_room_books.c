/* What is on its way beside a content, and what of it fits. */
#include "config.h"

#include "common/scheduler/room_books.h"
#include "tests/unit/unit.h"

#include <sys/statvfs.h>

#define MIB UINT64_C(1048576)
#define A   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const struct sandbox_root without_disk = {
    .fd = -1, .bounds = {.bytes = 1000 * MIB}}; /* what it has left is not known */

static struct room_row *add(struct room_books *books, struct room_row *row, const char *tenant,
                            const char *sandbox_dir)
{
    room_books_add(books, row);
    room_row_name(row, tenant, sandbox_dir);
    return row;
}

static int take(struct room_books *books, struct room_row *row, uint64_t mib, struct err *e)
{
    *e = ERR_INIT;
    return room_books_take(books, row, &without_disk, mib * MIB, 0, e);
}

static void what_fits_alone_does_not_fit_beside_another(void **state)
{
    struct room_books books = {0};
    struct room_row first, second, third;
    struct err e;

    (void)state;
    add(&books, &first, "alice", A);
    add(&books, &second, "alice", A);
    add(&books, &third, "alice", B);
    assert_int_equal(take(&books, &first, 600, &e), 0);
    assert_int_equal(take(&books, &second, 600, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_contains(e.text, "take 0.0 MiB, 600.0 MiB are on their way; 600.0 MiB more would pass "
                            "the limit of 1000.0 MiB (SANDBOX_QUOTA)");
    assert_int_equal(second.bytes, 0);
    assert_int_equal(take(&books, &second, 400, &e), 0);
    assert_int_equal(take(&books, &third, 1000, &e), 0); /* another conversation */
    room_books_remove(&books, &first);
    assert_int_equal(take(&books, &second, 1000, &e), 0);
    room_books_remove(&books, &second);
    room_books_remove(&books, &third);
    assert_null(books.first);
}

static void conversations_of_a_tenant_share_its_bytes(void **state)
{
    struct room_books books = {0};
    struct room_row first, second, foreign;
    struct err e;

    (void)state;
    add(&books, &first, "alice", A)->tenant_bytes = 500 * MIB;
    add(&books, &second, "alice", B)->tenant_bytes = 500 * MIB;
    add(&books, &foreign, "bob", "c")->tenant_bytes = 500 * MIB;
    assert_int_equal(take(&books, &first, 300, &e), 0);
    assert_int_equal(take(&books, &foreign, 300, &e), 0);
    assert_int_equal(take(&books, &second, 300, &e), -1);
    assert_contains(e.text, "all your conversations take 0.0 MiB, 300.0 MiB are on their way");
    assert_int_equal(take(&books, &second, 200, &e), 0);
    room_books_remove(&books, &first);
    room_books_remove(&books, &second);
    room_books_remove(&books, &foreign);
}

/* What has landed is no longer on its way, but takes as much for those that set out before. */
static void what_has_landed_counts_for_the_others(void **state)
{
    struct room_books books = {0};
    struct room_row landed, beside, other, unnamed;
    struct err e;

    (void)state;
    add(&books, &landed, "alice", A);
    add(&books, &beside, "alice", A);
    add(&books, &other, "alice", B)->tenant_bytes = 900 * MIB;
    room_books_add(&books, &unnamed);
    assert_int_equal(take(&books, &landed, 600, &e), 0);
    room_books_land(&books, &landed, 600 * MIB);
    assert_int_equal(room_books_beside(&books, &beside).conversation, 0);
    assert_int_equal(take(&books, &beside, 600, &e), -1);
    assert_contains(e.text, "take 600.0 MiB; 600.0 MiB more");
    assert_int_equal(take(&books, &other, 600, &e), -1);
    assert_int_equal(take(&books, &other, 300, &e), 0);
    room_books_remove(&books, &unnamed);
    room_books_remove(&books, &other);
    room_books_remove(&books, &beside);
    room_books_remove(&books, &landed);
}

/* Of the disk only what is not there yet: the rest is missing in what is free. */
static void the_disk_owes_what_is_not_there_yet(void **state)
{
    struct room_books books = {0};
    struct room_row first, second;
    struct sandbox_root root = {.fd = open("/", O_PATH | O_CLOEXEC)};
    struct statvfs fs;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(fstatvfs(root.fd, &fs), 0);
    const uint64_t free = (uint64_t)fs.f_bavail * fs.f_frsize;
    root.bounds.reserve = free / 2;
    add(&books, &first, "alice", A);
    add(&books, &second, "bob", B);
    assert_int_equal(room_books_take(&books, &first, &root, free / 3, 0, &e), 0);
    assert_int_equal(room_books_take(&books, &second, &root, free / 3, 0, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_contains(e.text, "SANDBOX_DISK_RESERVE");
    assert_int_equal(room_books_take(&books, &first, &root, free / 3, free / 3, &e), 0);
    e = ERR_INIT;
    assert_int_equal(room_books_take(&books, &second, &root, free / 3, 0, &e), 0);
    room_books_remove(&books, &first);
    room_books_remove(&books, &second);
    close(root.fd);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_fits_alone_does_not_fit_beside_another),
    cmocka_unit_test(conversations_of_a_tenant_share_its_bytes),
    cmocka_unit_test(what_has_landed_counts_for_the_others),
    cmocka_unit_test(the_disk_owes_what_is_not_there_yet),
};
UNIT_TESTS(tests)
