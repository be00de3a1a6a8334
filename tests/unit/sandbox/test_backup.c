/* Backups: what comes back, in which root, and what a hostile one can do. */
#include "config.h"

#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/base/mem.h"
#include "common/sandbox/archive/backup.h"
#include "common/sandbox/state/state.h"

#include <archive.h>
#include <archive_entry.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEAD                                                                                       \
    {                                                                                              \
        BACKUP_HEAD, AE_IFREG, "{\"version\":1,\"createdAt\":1}", NULL                             \
    }
#define RECORD                                                                                     \
    {                                                                                              \
        "1/record.json", AE_IFREG, "{\"tenant\":\"t\",\"conversationId\":\"c\"}", NULL             \
    }
#define TOP                                                                                        \
    {                                                                                              \
        "1/files", AE_IFDIR, NULL, NULL                                                            \
    }

/* The file system cannot exchange names. */
static bool cannot_exchange;

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    if (cannot_exchange && (flags & RENAME_EXCHANGE)) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

struct row {
    const char *name;
    unsigned type; /* AE_IF… */
    const char *content, *link;
};

static int make_tar(const struct row *rows, size_t n)
{
    int fd = memfd_create("backup", MFD_CLOEXEC);
    struct archive *a = archive_write_new();

    assert_int_equal(archive_write_set_format_pax_restricted(a), ARCHIVE_OK);
    assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
    for (size_t i = 0; i < n && rows[i].name; i++) {
        struct archive_entry *entry = archive_entry_new();
        const size_t len = rows[i].content ? strlen(rows[i].content) : 0;
        archive_entry_set_pathname(entry, rows[i].name);
        archive_entry_set_filetype(entry, rows[i].type);
        archive_entry_set_perm(entry, 07777);
        archive_entry_set_size(entry, (la_int64_t)len);
        if (rows[i].link && rows[i].type == AE_IFLNK)
            archive_entry_set_symlink(entry, rows[i].link);
        else if (rows[i].link)
            archive_entry_set_hardlink(entry, rows[i].link);
        assert_true(archive_write_header(a, entry) >= ARCHIVE_WARN);
        archive_write_data(a, rows[i].content, len);
        archive_entry_free(entry);
    }
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

/* The broker's part of a restore. */
struct replacing {
    const struct sandbox_root *root;
    const char *busy; /* a conversation that is in use */
    int exchanged, forgotten;
};

static int exchange(void *ctx, const char *tenant, const char *conversation, const char *staged,
                    struct err *e)
{
    struct replacing *x = ctx;
    char name[SANDBOX_NAME_LEN + 1];

    if (strcmp(conversation, x->busy) == 0)
        return err_set(e, ERR_BUSY, "a program is still running");
    x->exchanged++;
    assert_works(sandbox_name(x->root, tenant, conversation, name, e), *e);
    return sandbox_exchange(x->root, name, staged, e);
}

static void forget_runs(void *ctx, const char *tenant, const char *conversation, int64_t before)
{
    struct replacing *x = ctx;

    (void)tenant;
    (void)conversation;
    assert_true(before > 0);
    x->forgotten++;
}

static const struct restore_want all = {.exchange = exchange, .forget_runs = forget_runs};

/* An empty root beside the fixture's, with another secret. */
static void open_other(const struct fixture *f, struct sandbox_root *out)
{
    AUTO_FREE char *path = mem_printf("%s/other", f->dir);
    struct err e = ERR_INIT;

    assert_works(sandbox_root_open(out, path, NULL, "another secret of 32 characters.", FIXTURE_URL,
                                   fixture_uid(), fixture_gid(), 0, &e),
                 e);
}

static void plant_conversation(struct fixture *f)
{
    const struct timespec then[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};

    assert_works(state_note_use(&f->sb, "default", "talk", &f->e), f->e);
    assert_int_equal(mkdirat(f->sb.fd, "sub", 0750), 0);
    fixture_plant(f, "sub/run.sh", "echo 1");
    fixture_plant(f, "bytes\xff\nx", "odd");
    fixture_plant(f, "empty", "");
    assert_int_equal(fchmodat(f->sb.fd, "sub/run.sh", 0755, 0), 0);
    assert_int_equal(utimensat(f->sb.fd, "sub/run.sh", then, 0), 0);
    assert_int_equal(symlinkat(fixture_secret_file(f), f->sb.fd, "link"), 0);
    assert_int_equal(symlinkat("sub", f->sb.fd, "folder-link"), 0);
    assert_int_equal(mkfifoat(f->sb.fd, "fifo", 0644), 0);
}

static int backup_of(struct fixture *f, const char *tenant, enum backup_format format,
                     struct backup_sum *out)
{
    int fd = memfd_create("backup", MFD_CLOEXEC);

    assert_works(backup_write(&f->root, tenant, format, fd, out, &f->e), f->e);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void a_conversation_comes_back_in_a_root_of_another_secret(void **state)
{
    struct fixture *f = *state;

    plant_conversation(f);
    for (int format = BACKUP_TAR; format <= BACKUP_TAR_ZST; format++) {
        AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
        struct sandbox_root other;
        struct backup_sum sum;
        struct stat st;
        char path[300], text[16] = "";
        AUTO_FD int fd = backup_of(f, NULL, (enum backup_format)format, &sum);

        assert_int_equal(sum.conversations, 1);
        assert_int_equal(sum.files, 3);
        assert_int_equal(sum.left_out, 3);
        open_other(f, &other);
        assert_works(backup_restore(&other, fd, &all, &sum, &f->e), f->e);
        assert_int_equal(sum.files, 3);
        assert_works(sandbox_find(&other, "default", "talk", &sb, &f->e), f->e);
        assert_string_not_equal(sb.name, f->sb.name);
        assert_int_equal(fstatat(sb.fd, "sub/run.sh", &st, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(st.st_mode & 07777, 0755);
        assert_int_equal(st.st_mtim.tv_sec, 1700000000);
        assert_int_equal(st.st_uid, fixture_uid());
        assert_int_equal(fstatat(sb.fd, "sub", &st, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(st.st_mode & 07777, 0750);
        AUTO_FD int odd = openat(sb.fd, "bytes\xff\nx", O_RDONLY | O_CLOEXEC);
        assert_int_equal(read(odd, text, sizeof text), 3);
        assert_int_equal(faccessat(sb.fd, "link", F_OK, AT_SYMLINK_NOFOLLOW), -1);
        assert_int_equal(fixture_count(other.fd, ".staging"), 0);
        sandbox_root_close(&other);
        snprintf(path, sizeof path, "%s/other", f->dir);
        unit_remove_tree(path);
    }
}

static void what_is_there_stays_unless_it_is_replaced(void **state)
{
    struct fixture *f = *state;
    struct backup_sum sum;

    plant_conversation(f);
    AUTO_FD int fd = backup_of(f, "default", BACKUP_TAR, &sum);
    assert_fails(backup_restore(&f->root, fd, &all, &sum, &f->e), ERR_EXISTS, f->e);
    const struct restore_want others = {.tenant = "nobody"};
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_works(backup_restore(&f->root, fd, &others, &sum, &f->e), f->e);
    assert_int_equal(sum.conversations, 0);
    const struct restore_want replace = {.replace = true, .exchange = exchange};
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_fails(backup_restore(&f->root, fd, &replace, &sum, &f->e), ERR_BUSY, f->e); /* open */
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
    assert_int_equal(fixture_count(f->root.fd, ".trash"), 0);
    AUTO_FD int none = backup_of(f, "nobody", BACKUP_TAR, &sum);
    assert_int_equal(sum.conversations, 0);
}

static void plant(const struct sandbox_root *root, const char *conversation)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct err e = ERR_INIT;

    assert_works(sandbox_open(root, "t", conversation, &sb, &e), e);
    assert_works(state_note_use(&sb, "t", conversation, &e), e);
    AUTO_FD int fd = openat(sb.fd, "old", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
}

/* Which of the two files does it hold? "": there is no such conversation. */
static const char *held(const struct sandbox_root *root, const char *conversation)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    AUTO_STATE_RECORD struct state_record record = {0};
    struct err e = ERR_INIT;

    if (sandbox_find(root, "t", conversation, &sb, &e) < 0)
        return "";
    assert_works(state_read(root, sb.name, &record, &e), e);
    const bool old = faccessat(sb.fd, "old", F_OK, 0) == 0;
    assert_int_equal(faccessat(sb.fd, "new", F_OK, 0), old ? -1 : 0);
    return old ? "old" : "new";
}

/* A backup of the conversations one and two of t, and one of u. */
static int three_conversations(void)
{
    static const struct row rows[] = {
        HEAD,
        {"1/record.json", AE_IFREG, "{\"tenant\":\"t\",\"conversationId\":\"one\"}", NULL},
        {"1/files", AE_IFDIR, NULL, NULL},
        {"1/files/new", AE_IFREG, "1", NULL},
        {"2/record.json", AE_IFREG, "{\"tenant\":\"t\",\"conversationId\":\"two\"}", NULL},
        {"2/files", AE_IFDIR, NULL, NULL},
        {"2/files/new", AE_IFREG, "2", NULL},
        {"3/record.json", AE_IFREG, "{\"tenant\":\"u\",\"conversationId\":\"one\"}", NULL},
        {"3/files", AE_IFDIR, NULL, NULL}};

    return make_tar(rows, ARRAY_LEN(rows));
}

static void one_conversation_of_a_backup_is_restored_and_those_that_are_there_are_left(void **state)
{
    static const struct {
        struct restore_want want;
        enum err_kind fails;
        uint64_t restored, skipped;
        const char *one, *two; /* held afterwards; before: old and none */
    } rows[] = {
        {{.tenant = "t", .conversation = "two"}, ERR_NONE, 1, 0, "old", "new"},
        {{.conversation = "two", .skip_existing = true}, ERR_NONE, 1, 0, "old", "new"},
        {{.conversation = "one"}, ERR_EXISTS, 0, 0, "old", ""},
        {{.tenant = "t", .conversation = "one", .skip_existing = true}, ERR_NONE, 0, 1, "old", ""},
        {{.skip_existing = true}, ERR_NONE, 2, 1, "old", "new"},
        {{.conversation = "three"}, ERR_NOT_FOUND, 0, 0, "old", ""},
        {{.tenant = "u", .conversation = "two"}, ERR_NOT_FOUND, 0, 0, "old", ""},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sandbox_root other;
        struct backup_sum sum;
        AUTO_FREE char *path = mem_printf("%s/other", f->dir);
        AUTO_FD int fd = three_conversations();

        open_other(f, &other);
        plant(&other, "one");
        if (rows[i].fails == ERR_NONE)
            assert_works(backup_restore(&other, fd, &rows[i].want, &sum, &f->e), f->e);
        else
            assert_fails(backup_restore(&other, fd, &rows[i].want, &sum, &f->e), rows[i].fails,
                         f->e);
        assert_int_equal(sum.conversations, rows[i].restored);
        assert_int_equal(sum.skipped, rows[i].skipped);
        assert_string_equal(held(&other, "one"), rows[i].one);
        assert_string_equal(held(&other, "two"), rows[i].two);
        assert_int_equal(fixture_count(other.fd, ".staging"), 0);
        sandbox_root_close(&other);
        unit_remove_tree(path);
    }
}

static void fail_to_replace_then_replace(struct fixture *f)
{
    static const struct row rows[] = {
        HEAD,
        {"1/record.json", AE_IFREG, "{\"tenant\":\"t\",\"conversationId\":\"one\"}", NULL},
        {"1/files", AE_IFDIR, NULL, NULL},
        {"1/files/new", AE_IFREG, "", NULL},
        {"2/record.json", AE_IFREG, "{\"tenant\":\"t\",\"conversationId\":\"fresh\"}", NULL},
        {"2/files", AE_IFDIR, NULL, NULL},
        {"2/files/new", AE_IFREG, "", NULL},
        {"3/record.json", AE_IFREG, "{\"tenant\":\"t\",\"conversationId\":\"two\"}", NULL},
        {"3/files", AE_IFDIR, NULL, NULL},
        {"3/files/new", AE_IFREG, "", NULL},
    };
    struct sandbox_root other;
    struct backup_sum sum;
    AUTO_FD int fd = make_tar(rows, ARRAY_LEN(rows));

    open_other(f, &other);
    plant(&other, "one");
    plant(&other, "two");
    struct replacing x = {&other, "two", 0, 0};
    const struct restore_want want = {
        .replace = true, .exchange = exchange, .forget_runs = forget_runs, .ctx = &x};
    assert_fails(backup_restore(&other, fd, &want, &sum, &f->e), ERR_BUSY, f->e);
    assert_non_null(strstr(f->e.text, "all conversations are as before"));
    assert_non_null(strstr(f->e.text, "conversation two of t: a program is still running"));
    assert_int_equal(x.exchanged, 2); /* to and fro */
    assert_int_equal(x.forgotten, 0);
    assert_string_equal(held(&other, "one"), "old");
    assert_string_equal(held(&other, "fresh"), "");
    assert_string_equal(held(&other, "two"), "old");

    x.busy = "";
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_works(backup_restore(&other, fd, &want, &sum, &f->e), f->e);
    assert_int_equal(sum.conversations, 3);
    assert_int_equal(x.forgotten, 2);
    assert_string_equal(held(&other, "one"), "new");
    assert_string_equal(held(&other, "fresh"), "new");
    assert_string_equal(held(&other, "two"), "new");
    assert_int_equal(fixture_count(other.fd, ".staging"), 0);
    assert_int_equal(fixture_count(other.fd, ".trash"), 0);
    sandbox_root_close(&other);
}

static void a_replacement_that_fails_brings_everything_back(void **state)
{
    struct fixture *f = *state;
    char path[300];

    snprintf(path, sizeof path, "%s/other", f->dir);
    for (int i = 0; i < 2; i++) {
        cannot_exchange = i == 1;
        fail_to_replace_then_replace(f);
        unit_remove_tree(path);
    }
    cannot_exchange = false;
}

static void a_hostile_backup_is_refused_and_leaves_nothing(void **state)
{
    static const struct row bad[][6] = {
        {RECORD, TOP},
        {{BACKUP_HEAD, AE_IFREG, "{\"version\":2}", NULL}, RECORD},
        {{BACKUP_HEAD, AE_IFREG, "[", NULL}, RECORD},
        {HEAD, HEAD},
        {HEAD, TOP},
        {HEAD, RECORD, RECORD},
        {HEAD, RECORD, TOP, {"1/files/../../x", AE_IFREG, "x", NULL}},
        {HEAD, RECORD, TOP, {"1/files//etc/x", AE_IFREG, "x", NULL}},
        {HEAD, RECORD, TOP, {"/etc/x", AE_IFREG, "x", NULL}},
        {HEAD, RECORD, TOP, {"2/files/x", AE_IFREG, "x", NULL}},
        {HEAD, RECORD, TOP, {"1/x", AE_IFREG, "x", NULL}},
        {HEAD, RECORD, TOP, {"1/files/a/b", AE_IFREG, "x", NULL}},
        {HEAD, RECORD, TOP, {"1/files/l", AE_IFLNK, NULL, "/etc"}},
        {HEAD, RECORD, TOP, {"1/files/l", AE_IFREG, NULL, "1/files/x"}},
        {HEAD, RECORD, TOP, {"1/files/d", AE_IFCHR, NULL, NULL}},
        {HEAD, RECORD, TOP, {"1/files/a", AE_IFREG, "1", NULL}, {"1/files/a", AE_IFREG, "2", NULL}},
        {HEAD, RECORD, TOP, {"1/files/a", AE_IFREG, "0123456789", NULL}},
        {HEAD, RECORD, TOP, {"1/files/a", AE_IFREG, "", NULL}, {"1/files/b", AE_IFREG, "", NULL}},
        {HEAD, {"1/record.json", AE_IFREG, "{\"tenant\":\"t\"}", NULL}, TOP},
        {HEAD,
         {"1/record.json", AE_IFREG, "{\"tenant\":\"\",\"conversationId\":\"c\"}", NULL},
         TOP},
        {HEAD,
         RECORD,
         TOP,
         {"2/record.json", AE_IFREG, "{\"tenant\":\"t\",\"conversationId\":\"c\"}", NULL},
         {"2/files", AE_IFDIR, NULL, NULL}},
    };
    struct fixture *f = *state;
    struct sandbox_root other;
    struct backup_sum sum;

    open_other(f, &other);
    other.bounds.bytes = 8;
    other.bounds.files = 1;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO_FD int fd = make_tar(bad[i], ARRAY_LEN(bad[i]));
        struct err e = ERR_INIT;
        char name[SANDBOX_NAME_LEN + 1];
        if (backup_restore(&other, fd, &all, &sum, &e) == 0)
            fail_msg("backup %zu is restored", i);
        assert_true(e.text[0] != '\0');
        assert_works(sandbox_name(&other, "t", "c", name, &e), e);
        assert_int_equal(faccessat(other.fd, name, F_OK, 0), -1);
        assert_int_equal(fixture_count(other.fd, ".staging"), 0);
        assert_int_equal(fixture_count(other.fd, ".trash"), 0);
    }
    AUTO_FD int cut = make_tar(bad[6], 3);
    assert_int_equal(ftruncate(cut, 1700), 0);
    assert_fails(backup_restore(&other, cut, &all, &sum, &f->e), ERR_INVALID, f->e);
    sandbox_root_close(&other);
}

static void modes_have_no_bits_that_give_rights(void **state)
{
    static const struct row rows[] = {HEAD,
                                      RECORD,
                                      TOP,
                                      {"1/files/d", AE_IFDIR, NULL, NULL},
                                      {"1/files/d/x", AE_IFREG, "x", NULL}};
    struct fixture *f = *state;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct sandbox_root other;
    struct backup_sum sum;
    struct stat st;
    AUTO_FD int fd = make_tar(rows, ARRAY_LEN(rows));

    open_other(f, &other);
    assert_works(backup_restore(&other, fd, &all, &sum, &f->e), f->e);
    assert_works(sandbox_find(&other, "t", "c", &sb, &f->e), f->e);
    assert_int_equal(fstatat(sb.fd, "d/x", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0777);
    assert_int_equal(fstatat(sb.fd, "d", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0777);
    sandbox_root_close(&other);
}

/* Of at most so many conversations that ten digits count them. */
static void a_conversation_of_a_backup_has_a_number(void **state)
{
    static const char *const bad[] = {
        "/files",  "0/files", "1000000001/files", "-1/files", "10000000000/files",
        "x/files", "1/other", "1/filesx",         "1/files/", "1/files/..",
        "1",       ""};
    struct fixture *f = *state;
    struct backup_entry entry;

    assert_works(backup_entry_parse("1000000000/files/d/x", &entry, &f->e), f->e);
    assert_int_equal(entry.part, BACKUP_PART_FILE);
    assert_int_equal(entry.number, 1000000000);
    assert_string_equal(entry.name, "d/x");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_fails(backup_entry_parse(bad[i], &entry, &f->e), ERR_INVALID, f->e);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
UNIT_COMMAND(BACKUP_READER_COMMAND, backup_reader_main)

static const struct CMUnitTest tests[] = {
    CASE(a_conversation_comes_back_in_a_root_of_another_secret),
    CASE(what_is_there_stays_unless_it_is_replaced),
    CASE(one_conversation_of_a_backup_is_restored_and_those_that_are_there_are_left),
    CASE(a_replacement_that_fails_brings_everything_back),
    CASE(a_hostile_backup_is_refused_and_leaves_nothing),
    CASE(modes_have_no_bits_that_give_rights),
    CASE(a_conversation_of_a_backup_has_a_number),
};
UNIT_TESTS_IN(tests, unit_ignore_sigpipe, NULL)
