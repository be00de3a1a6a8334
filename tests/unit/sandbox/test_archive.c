/* Archives: what is packed, what a hostile one can do to the sandbox it is unpacked into. */
#include "config.h"

#include "tests/unit/escapes.h"
#include "tests/unit/sandbox/kernel.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/privsep.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/archive/archive_privsep.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1u << 20)

/* The disk fails when a file is to get this name; NULL: it does not. */
static const char *no_room_for;

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    if (no_room_for && strcmp(to, no_room_for) == 0) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

/* How often the disk has room; then others have filled it. */
static int looks_with_room = INT_MAX;

static uint64_t room(void)
{
    return looks_with_room-- > 0 ? 1ull << 40 : 0;
}

/* ---- making archives as others do ---- */

struct row {
    const char *name;
    unsigned type; /* AE_IF… */
    const char *content;
    const char *symlink, *hardlink;
    size_t zeros; /* instead of content */
};

static void write_row(struct archive *a, const struct row *row)
{
    static const char zeros[MIB];
    struct archive_entry *entry = archive_entry_new();
    size_t len = row->content ? strlen(row->content) : row->zeros;

    archive_entry_set_pathname(entry, row->name);
    archive_entry_set_filetype(entry, row->type);
    archive_entry_set_perm(entry, 0777);
    archive_entry_set_size(entry, row->type == AE_IFREG ? (la_int64_t)len : 0);
    if (row->symlink)
        archive_entry_set_symlink(entry, row->symlink);
    if (row->hardlink)
        archive_entry_set_hardlink(entry, row->hardlink);
    assert_true(archive_write_header(a, entry) >= ARCHIVE_WARN);
    if (row->content)
        archive_write_data(a, row->content, len);
    for (size_t at = 0; at < row->zeros; at += MIB)
        archive_write_data(a, zeros, MIB);
    archive_entry_free(entry);
}

/* In memory; format and filter as libarchive numbers them. */
static int make_archive(int format, int filter, const struct row *rows, size_t n)
{
    int fd = memfd_create("archive", MFD_CLOEXEC);
    struct archive *a = archive_write_new();

    assert_true(fd >= 0);
    assert_int_equal(archive_write_set_format(a, format), ARCHIVE_OK);
    assert_int_equal(archive_write_add_filter(a, filter), ARCHIVE_OK);
    assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
    for (size_t i = 0; i < n; i++)
        write_row(a, &rows[i]);
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
    return fd;
}

static int make_tar(const struct row *rows, size_t n)
{
    return make_archive(ARCHIVE_FORMAT_TAR_PAX_RESTRICTED, ARCHIVE_FILTER_NONE, rows, n);
}

static int take(struct fixture *f, int fd, const struct unpack_want *want, struct unpacked *out)
{
    static const struct unpack_want plain = {.folder = "", .max_bytes = 64 * MIB};

    f->e = ERR_INIT;
    return unpack(&f->sb, fd, want ? want : &plain, out, &f->e);
}

static void remove_below(const struct fixture *f, const char *name)
{
    AUTO_FREE char *path = mem_printf("%s/%s/%s", f->path, f->sb.name, name);

    unit_remove_tree(path);
}

/* It is refused, for a reason that says so, and nothing is left anywhere. */
static void assert_refused(struct fixture *f, int fd, enum err_kind kind, const char *part)
{
    AUTO_UNPACKED struct unpacked u = {0};
    int before = fixture_count(f->sb.fd, ".");

    assert_int_equal(take(f, fd, NULL, &u), -1);
    assert_contains(f->e.text, part);
    assert_string_equal(err_kind_name(f->e.kind), err_kind_name(kind));
    assert_int_equal(fixture_count(f->sb.fd, "."), before);
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

/* ---- there and back ---- */

static int pack_to_memory(struct fixture *f, const char *folder, enum pack_format format,
                          struct pack_sum *sum)
{
    int fd = memfd_create("packed", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_works(pack_files(&f->sb, folder, format, &(struct pack_sink){.fd = fd}, sum, &f->e),
                 f->e);
    return fd;
}

static void packed_files_come_back(void **state)
{
    struct fixture *f = *state;
    const struct unpack_want want = {.folder = "back/again", .max_bytes = MIB};

    assert_int_equal(fixture_put(f, "a b.txt", "one"), 0);
    assert_int_equal(fixture_put(f, "d/\xc3\xbc \"q\".txt", "two"), 0);
    assert_int_equal(fixture_put(f, "d/e/-rf", ""), 0);
    for (int format = 0; format < 2; format++) {
        AUTO_UNPACKED struct unpacked u = {0};
        struct pack_sum sum;
        AUTO_FD int fd = pack_to_memory(f, "", (enum pack_format)format, &sum);

        assert_int_equal(sum.files, 3);
        assert_int_equal(sum.bytes, 6);
        assert_works(take(f, fd, &want, &u), f->e);
        assert_int_equal(u.files, 3);
        assert_int_equal(u.bytes, 6);
        fixture_assert_content(f, "back/again/a b.txt", "one");
        fixture_assert_content(f, "back/again/d/\xc3\xbc \"q\".txt", "two");
        fixture_assert_content(f, "back/again/d/e/-rf", "");
        remove_below(f, "back");
    }
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

/* A folder of the user's machine, say: nothing in it is ours. */
static void a_folder_that_is_no_sandbox_is_packed_whole(void **state)
{
    struct fixture *f = *state;
    const struct sandbox local = {.fd = f->sb.fd};
    AUTO_FD int fd = memfd_create("packed", MFD_CLOEXEC);
    struct pack_sum sum;

    assert_int_equal(fixture_put(f, ".packages/one", "1"), 0);
    assert_works(pack_files(&local, NULL, PACK_TAR, &(struct pack_sink){.fd = fd}, &sum, &f->e),
                 f->e);
    assert_int_equal(sum.files, 1);
}

static void a_folder_alone_is_packed(void **state)
{
    struct fixture *f = *state;
    struct pack_sum sum;

    assert_int_equal(fixture_put(f, "out/one", "1"), 0);
    assert_int_equal(fixture_put(f, "outer", "22"), 0);
    assert_works(pack_look(&f->sb, "out", &sum, &f->e), f->e);
    assert_int_equal(sum.files, 1);
    AUTO_FD int fd = pack_to_memory(f, "out", PACK_ZIP, &sum);
    assert_int_equal(sum.bytes, 1);
    assert_int_equal(fixture_put(f, "out/.packages/one", "1"), 0);
    assert_int_equal(fixture_put(f, ".packages/python/x", "1"), 0);
    assert_int_equal(fixture_put(f, ".gitignore", "1"), 0);
    assert_works(pack_look(&f->sb, "out", &sum, &f->e), f->e);
    assert_int_equal(sum.files, 2);
    assert_works(pack_look(&f->sb, "", &sum, &f->e), f->e); /* but the sandbox's own packages */
    assert_int_equal(sum.files, 4);
    assert_fails(pack_look(&f->sb, "absent", &sum, &f->e), ERR_NOT_FOUND, f->e);
    assert_fails(pack_look(&f->sb, "outer", &sum, &f->e), ERR_NOT_FOUND, f->e);
}

/* H-68: it is as safe to unpack elsewhere. */
static void only_relative_regular_files_are_packed(void **state)
{
    struct fixture *f = *state;
    struct pack_sum sum;
    struct archive_entry *entry;

    fixture_plant(f, "real", "x");
    fixture_plant(f, "C:\\..\\evil", "x");
    fixture_plant(f, "\xff raw", "x");
    assert_int_equal(symlinkat(fixture_secret_file(f), f->sb.fd, "link"), 0);
    assert_int_equal(symlinkat("/", f->sb.fd, "root"), 0);
    assert_int_equal(mkfifoat(f->sb.fd, "fifo", 0600), 0);
    for (int format = 0; format < 2; format++) {
        AUTO_FD int fd = pack_to_memory(f, "", (enum pack_format)format, &sum);
        struct archive *a = archive_read_new();
        int n = 0;

        archive_read_support_format_all(a);
        archive_read_support_filter_all(a);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        assert_int_equal(archive_read_open_fd(a, fd, 10240), ARCHIVE_OK);
        while (archive_read_next_header(a, &entry) >= ARCHIVE_WARN) {
            const char *name = archive_entry_pathname(entry);
            if (n++ == 0)
                assert_string_equal(name, "C__.._evil");
            assert_null(strchr(name, '\\'));
            assert_int_equal(archive_entry_mode(entry), AE_IFREG | 0644);
            assert_int_equal(archive_entry_uid(entry), 0);
            if (n == 3)
                break; /* the end is another test's matter */
        }
        assert_int_equal(n, 3);
        archive_read_free(a);
        assert_int_equal(sum.files, 3);
    }
}

static void an_unread_archive_ends(void **state)
{
    struct fixture *f = *state;
    struct pack_sum sum;
    int p[2];

    assert_int_equal(fixture_put(f, "a", "1"), 0);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    close(p[0]);
    assert_fails(pack_files(&f->sb, "", PACK_ZIP, &(struct pack_sink){.fd = p[1]}, &sum, &f->e),
                 ERR_CANCELLED, f->e);
    close(p[1]);
}

/* A file of bytes that no compressor makes smaller. */
static void plant_noise(struct fixture *f, const char *name, size_t len)
{
    AUTO_FREE char *noise = mem_alloc(len);
    AUTO_FD int fd = openat(f->sb.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    uint32_t x = 2463534242u;

    for (size_t i = 0; i < len; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        noise[i] = (char)x;
    }
    assert_works(fdio_write_all(fd, noise, len, &f->e), f->e);
}

/* As far as there is room beside what else is on its way. */
static int room_of_3_mib(void *ctx, uint64_t bytes, uint64_t there, struct err *e)
{
    uint64_t *most = ctx;

    assert_true(there < bytes);
    *most = bytes > *most ? bytes : *most;
    return bytes <= 3 * MIB ? 0 : err_set(e, ERR_LIMIT, "there is no room");
}

static int go_on(void *ctx, struct err *e)
{
    (void)ctx;
    (void)e;
    return 0;
}

static void content_needs_room_as_it_comes(void **state)
{
    static const struct row small[] = {{.name = "s", .type = AE_IFREG, .zeros = 2 * MIB}};
    static const struct row large[] = {{.name = "l", .type = AE_IFREG, .zeros = 9 * MIB}};
    struct fixture *f = *state;
    uint64_t most = 0;
    const struct unpack_want want = {
        .folder = "", .max_bytes = 64 * MIB, .watch = {go_on, &most}, .keep_room = room_of_3_mib};
    AUTO_UNPACKED struct unpacked u = {0}, none = {0};
    AUTO_FD int fits = make_tar(small, 1);
    AUTO_FD int fits_not = make_tar(large, 1);

    assert_works(take(f, fits, &want, &u), f->e);
    assert_int_equal(most, 2 * MIB);
    assert_int_equal(take(f, fits_not, &want, &none), -1);
    assert_contains(f->e.text, "there is no room");
    assert_int_equal(fixture_count(f->sb.fd, "."), 1);
    f->root.bounds.bytes = 2 * MIB + MIB / 2; /* no more is asked for than there may be */
    most = 0;
    unlinkat(f->sb.fd, "s", 0);
    assert_works(take(f, fits, &want, &none), f->e);
    assert_true(most <= 2 * MIB + MIB / 2);
}

static void a_reader_that_takes_too_long_is_left(void **state)
{
    static const struct pack_sink patience[] = {{.stall_ms = 50}, {.total_ms = 50}};
    struct fixture *f = *state;
    int p[2], status;

    plant_noise(f, "big", 1 << 20); /* more than a pipe holds */
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    for (size_t i = 0; i < ARRAY_LEN(patience); i++) {
        pid_t pid = fork(); /* the library leaks what it could not write */
        if (pid == 0) {
            struct pack_sink sink = patience[i];
            struct pack_sum sum;
            sink.fd = p[1];
            pack_files(&f->sb, "", PACK_TAR, &sink, &sum, &f->e);
            _exit(f->e.kind == ERR_TIMEOUT ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    close(p[0]);
    close(p[1]);
}

/* The archive goes into a pipe that is not read while change does its work. */
static int pack_while(struct fixture *f, enum pack_format format,
                      void (*change)(const struct fixture *f))
{
    int p[2], status, fd = memfd_create("packed", MFD_CLOEXEC);
    char piece[4096];
    ssize_t n;

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct pack_sum sum;
        close(p[0]);
        _exit(pack_files(&f->sb, "", format, &(struct pack_sink){.fd = p[1]}, &sum, &f->e) == 0
                  ? 0
                  : 1);
    }
    close(p[1]);
    n = read(p[0], piece, sizeof(piece));
    assert_true(n > 0);
    change(f);
    do
        assert_works(fdio_write_all(fd, piece, (size_t)n, &f->e), f->e);
    while ((n = read(p[0], piece, sizeof(piece))) > 0);
    close(p[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return fd;
}

static void truncate_it(const struct fixture *f)
{
    AUTO_FD int fd = openat(f->sb.fd, "big", O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0);
}

static void append_to_it(const struct fixture *f)
{
    AUTO_FD int fd = openat(f->sb.fd, "big", O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "and more", 8), 8);
}

static void a_file_that_changes_keeps_its_size_in_the_archive(void **state)
{
    struct fixture *f = *state;
    const struct unpack_want want = {.folder = "back", .replace = true, .max_bytes = 64 * MIB};
    struct stat st;

    for (int i = 0; i < 4; i++) {
        AUTO_UNPACKED struct unpacked u = {0};
        plant_noise(f, "big", 4 * MIB);
        AUTO_FD int fd = pack_while(f, (enum pack_format)(i / 2),
                                    i % 2 ? append_to_it : truncate_it);
        assert_works(take(f, fd, &want, &u), f->e);
        assert_int_equal(fstatat(f->sb.fd, "back/big", &st, 0), 0);
        assert_int_equal(st.st_size, 4 * MIB);
        remove_below(f, "back");
    }
}

static void folders_come_too(void **state)
{
    static const struct row rows[] = {{.name = "./", .type = AE_IFDIR},
                                      {.name = "./empty/inner/", .type = AE_IFDIR},
                                      {.name = "./empty/", .type = AE_IFDIR},
                                      {.name = "./a", .type = AE_IFREG, .content = "1"}};
    struct fixture *f = *state;
    AUTO_FD int tar = make_tar(rows, ARRAY_LEN(rows));
    AUTO_UNPACKED struct unpacked u = {0};
    struct stat st;

    assert_works(take(f, tar, NULL, &u), f->e);
    assert_int_equal(u.files, 1);
    assert_string_equal(u.names[0], "a");
    assert_int_equal(fstatat(f->sb.fd, "empty/inner", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_uid, fixture_uid());
    assert_int_equal(fstatat(f->sb.fd, "a", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_uid, fixture_uid());
}

/* As GNU tar packs a file that is one hole of 2 MiB: only the header tells its length. */
static int make_hole(void)
{
    static const struct {
        size_t at;
        const char *text;
    } fields[] = {{0, "a"},
                  {100, "0000644"},
                  {124, "00000000000"},
                  {136, "00000000000"},
                  {148, "        "},
                  {156, "S"},
                  {257, "ustar  "},
                  {386, "00010000000"},
                  {398, "00000000000"},
                  {483, "00010000000"}};
    char blocks[3 * 512] = {0};
    unsigned sum = 0;
    int fd = memfd_create("archive", MFD_CLOEXEC);

    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        memcpy(blocks + fields[i].at, fields[i].text, strlen(fields[i].text));
    for (size_t i = 0; i < 512; i++)
        sum += (unsigned char)blocks[i];
    snprintf(blocks + 148, 8, "%06o", sum);
    assert_int_equal(write(fd, blocks, sizeof blocks), sizeof blocks);
    return fd;
}

static void a_file_that_is_a_hole_comes_too(void **state)
{
    struct fixture *f = *state;
    AUTO_FD int tar = make_hole();
    AUTO_UNPACKED struct unpacked u = {0};
    struct stat st;

    assert_works(take(f, tar, NULL, &u), f->e);
    assert_int_equal(fstatat(f->sb.fd, "a", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_size, 2 * MIB);
}

static void what_the_conversation_may_still_have(void **state)
{
    static const struct row big[] = {{.name = "a", .type = AE_IFREG, .zeros = 2 * MIB}};
    static const struct row many[] = {{.name = "a", .type = AE_IFREG, .content = "1"},
                                      {.name = "b", .type = AE_IFREG, .content = "1"}};
    struct fixture *f = *state;
    AUTO_FD int first = make_tar(big, 1);
    AUTO_FD int second = make_tar(many, 2);

    f->root.bounds.bytes = MIB;
    assert_refused(f, first, ERR_LIMIT, "SANDBOX_QUOTA");
    f->root.bounds = (struct sandbox_bounds){.files = 1};
    assert_refused(f, second, ERR_LIMIT, "SANDBOX_FILES");
}

/* ---- hostile archives ---- */

static void names_that_leave_the_sandbox(void **state)
{
    static const char *const names[] = {"../x",  "a/../../x", "/etc/x", "..", ".",        "a//b",
                                        "a/./b", "%2e%2e/x",  "././/x", "a/", "./../../x"};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct row rows[] = {{.name = "good", .type = AE_IFREG, .content = "x"},
                                   {.name = names[i], .type = AE_IFREG, .content = "x"}};
        AUTO_FD int tar = make_tar(rows, 2);
        if (strcmp(names[i], "a/") != 0) /* tar's old way to say that it is a folder */
            assert_refused(f, tar, ERR_INVALID, "archive");
    }
    assert_int_equal(access("/etc/x", F_OK), -1);
}

static void links_and_devices(void **state)
{
    static const struct row rows[] = {
        {.name = "l", .type = AE_IFLNK, .symlink = "/etc/passwd"},
        {.name = "h", .type = AE_IFREG, .hardlink = "good"},
        {.name = "c", .type = AE_IFCHR},
        {.name = "b", .type = AE_IFBLK},
        {.name = "p", .type = AE_IFIFO},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row both[] = {{.name = "good", .type = AE_IFREG, .content = "x"}, rows[i]};
        AUTO_FD int tar = make_tar(both, 2);
        AUTO_UNPACKED struct unpacked u = {0};

        assert_int_equal(take(f, tar, NULL, &u), 0);
        assert_int_equal(u.files, 1);
        assert_int_equal(u.left_out, 1);
        assert_non_null(strstr(u.first_left_out, rows[i].name));
        assert_int_equal(faccessat(f->sb.fd, rows[i].name, F_OK, AT_SYMLINK_NOFOLLOW), -1);
        remove_below(f, "good");
    }
}

/* What lies below a link that is left out lies in a folder of its name. */
static void nothing_goes_through_a_link(void **state)
{
    static const struct row rows[] = {
        {.name = "l", .type = AE_IFLNK, .symlink = "/tmp"},
        {.name = "l/sandcgi-through-a-link", .type = AE_IFREG, .content = "x"}};
    struct fixture *f = *state;
    AUTO_FD int tar = make_tar(rows, 2);
    AUTO_UNPACKED struct unpacked u = {0};

    assert_int_equal(take(f, tar, NULL, &u), 0);
    assert_int_equal(access("/tmp/sandcgi-through-a-link", F_OK), -1);
    assert_int_equal(faccessat(f->sb.fd, "l/sandcgi-through-a-link", F_OK, 0), 0);
    remove_below(f, "l");
}

static void names_of_other_encodings_are_repaired(void **state)
{
    static const struct row rows[] = {
        {.name = "\x93\xfa\x96\x7b\x8c\xea.txt", .type = AE_IFREG, .content = "x"},
        {.name = "\xb1\xa8\xb8\xe6.csv", .type = AE_IFREG, .content = "x"},
        {.name = "Pr\x81"
                 "fung.txt",
         .type = AE_IFREG,
         .content = "x"},
        {.name = "gr\xc3\xbc\xc3\x9f", .type = AE_IFREG, .content = "x"},
        {.name = "\xfc", .type = AE_IFLNK, .symlink = "good"}, /* that is left out */
    };
    static const char *const names[] = {"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e.txt",
                                        "\xe6\x8a\xa5\xe5\x91\x8a.csv",
                                        "Pr\xc3\xbc"
                                        "fung.txt",
                                        "gr\xc3\xbc\xc3\x9f"};
    struct fixture *f = *state;
    AUTO_FD int tar = make_tar(rows, ARRAY_LEN(rows));
    AUTO_UNPACKED struct unpacked u = {0};

    assert_int_equal(take(f, tar, NULL, &u), 0);
    assert_int_equal(u.repaired, 3);
    assert_int_equal(u.left_out, 1);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_string_equal(u.names[i], names[i]);
        remove_below(f, names[i]);
    }
}

static void bombs(void **state)
{
    static const struct row zeros[] = {{.name = "z", .type = AE_IFREG, .zeros = 48 * MIB}};
    static const struct row huge[] = {{.name = "z", .type = AE_IFREG, .zeros = 80 * MIB}};
    static const int filters[] = {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_BZIP2, ARCHIVE_FILTER_XZ,
                                  ARCHIVE_FILTER_ZSTD};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
        AUTO_FD int fd = make_archive(ARCHIVE_FORMAT_TAR_USTAR, filters[i], zeros, 1);
        assert_refused(f, fd, ERR_LIMIT, "200 times");
    }
    AUTO_FD int sparse = make_archive(ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_GZIP, zeros, 1);
    assert_int_equal(ftruncate(sparse, 1ll << 40), 0);
    assert_refused(f, sparse, ERR_LIMIT, "200 times");
    AUTO_FD int zip = make_archive(ARCHIVE_FORMAT_ZIP, ARCHIVE_FILTER_NONE, zeros, 1);
    assert_refused(f, zip, ERR_LIMIT, "200 times");
    AUTO_FD int tar = make_archive(ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_NONE, huge, 1);
    assert_refused(f, tar, ERR_LIMIT, "more than 67108864 bytes");
}

static void too_many_entries(void **state)
{
    struct fixture *f = *state;
    struct row *rows = mem_array(ARCHIVE_FILES_MAX + 1, sizeof(*rows));

    for (size_t i = 0; i <= ARCHIVE_FILES_MAX; i++)
        rows[i] = (struct row){.name = mem_printf("f%zu", i), .type = AE_IFREG, .content = ""};
    AUTO_FD int tar = make_tar(rows, ARCHIVE_FILES_MAX + 1);
    assert_refused(f, tar, ERR_LIMIT, "more than 10000");
    for (size_t i = 0; i <= ARCHIVE_FILES_MAX; i++)
        free((void *)(uintptr_t)rows[i].name);
    free(rows);
}

static void names_that_are_there_twice(void **state)
{
    static const struct row same[] = {{.name = "a", .type = AE_IFREG, .content = "1"},
                                      {.name = "./a", .type = AE_IFREG, .content = "2"}};
    static const struct row both[] = {{.name = "a/b", .type = AE_IFREG, .content = "1"},
                                      {.name = "a!", .type = AE_IFREG, .content = "1"},
                                      {.name = "a", .type = AE_IFREG, .content = "2"}};
    struct fixture *f = *state;
    AUTO_FD int first = make_tar(same, 2);
    AUTO_FD int second = make_tar(both, 3);

    assert_refused(f, first, ERR_INVALID, "'a' is twice");
    assert_refused(f, second, ERR_INVALID, "'a' is twice");
}

static void what_is_no_archive(void **state)
{
    static const char *const texts[] = {"", "no archive", "PK\x03\x04 nothing of the kind",
                                        "\x1f\x8b\x08 neither"};
    static const struct row rows[] = {{.name = "a", .type = AE_IFREG, .zeros = MIB}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO_FD int fd = fixture_memfd(texts[i]);
        if (*texts[i]) /* an empty file is an archive of nothing */
            assert_refused(f, fd, ERR_INVALID, "archive");
    }
    AUTO_FD int cut = make_tar(rows, 1);
    assert_int_equal(ftruncate(cut, MIB / 2), 0);
    assert_refused(f, cut, ERR_INVALID, "archive");
    int p[2];
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_refused(f, p[0], ERR_INVALID, "regular file");
    close(p[0]);
    close(p[1]);
}

static void what_is_in_the_way(void **state)
{
    static const struct row rows[] = {{.name = "new", .type = AE_IFREG, .content = "1"},
                                      {.name = "d/old", .type = AE_IFREG, .content = "2"}};
    const struct unpack_want replace = {.folder = "", .replace = true, .max_bytes = MIB};
    struct fixture *f = *state;
    AUTO_FD int tar = make_tar(rows, 2);
    AUTO_UNPACKED struct unpacked u = {0};

    assert_int_equal(fixture_put(f, "d/old", "kept"), 0);
    assert_refused(f, tar, ERR_EXISTS, "'d/old'");
    fixture_assert_content(f, "d/old", "kept");
    assert_works(take(f, tar, &replace, &u), f->e);
    fixture_assert_content(f, "d/old", "2");
    fixture_assert_content(f, "new", "1");

    remove_below(f, "d");
    assert_int_equal(symlinkat(f->dir, f->sb.fd, "d"), 0);
    assert_int_equal(unlinkat(f->sb.fd, "new", 0), 0);
    assert_refused(f, tar, ERR_INVALID, "something else");
    assert_int_equal(mkdirat(f->sb.fd, "new", 0755), 0);
    assert_refused(f, tar, ERR_EXISTS, "a folder");
}

static void what_was_new_is_taken_back_when_the_disk_fails(void **state)
{
    static const struct row rows[] = {{.name = "new", .type = AE_IFREG, .content = "1"},
                                      {.name = "d/new", .type = AE_IFREG, .content = "2"},
                                      {.name = "old", .type = AE_IFREG, .content = "3"},
                                      {.name = "last", .type = AE_IFREG, .content = "4"}};
    const struct unpack_want replace = {.folder = "", .replace = true, .max_bytes = MIB};
    struct fixture *f = *state;
    AUTO_FD int tar = make_tar(rows, 4);
    AUTO_UNPACKED struct unpacked u = {0};

    assert_int_equal(fixture_put(f, "old", "before"), 0);
    no_room_for = "last";
    assert_fails(take(f, tar, &replace, &u), ERR_IO, f->e);
    no_room_for = NULL;
    fixture_assert_content(f, "old", "3");
    assert_int_equal(faccessat(f->sb.fd, "new", F_OK, 0), -1);
    assert_int_equal(faccessat(f->sb.fd, "d/new", F_OK, 0), -1);
    assert_int_equal(faccessat(f->sb.fd, "last", F_OK, 0), -1);
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

static void a_disk_that_others_fill_ends_it(void **state)
{
    static const struct row rows[] = {{.name = "a", .type = AE_IFREG, .zeros = 40 * MIB}};
    struct fixture *f = *state;
    AUTO_FD int tar = make_tar(rows, 1);

    f->root.bounds.reserve = MIB;
    for (int looks = 0; looks < 6; looks++) { /* before it, twice meanwhile, behind it, for a */
        looks_with_room = looks;
        assert_refused(f, tar, ERR_LIMIT, "SANDBOX_DISK_RESERVE");
    }
    looks_with_room = INT_MAX;
}

/* ---- the reader's words ---- */

static void records_are_taken_for_hostile(void **state)
{
    static const char *const bad[] = {"",          "F",         "Z\0\0\0\1x",  "B\0\0\0\0",
                                      "B\0\2\0\0", "q\0\0\0\0", "F\0\0\0\5abc"};
    static const size_t lens[] = {0, 1, 6, 5, 5, 5, 8};
    struct fixture *f = *state;
    struct archive_record *r = mem_alloc(sizeof(*r));

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO_FD int fd = memfd_create("records", MFD_CLOEXEC);
        assert_int_equal(write(fd, bad[i], lens[i]), (ssize_t)lens[i]);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        assert_fails(archive_record_read(fd, DEADLINE_NEVER, r, &f->e), ERR_PROTOCOL, f->e);
    }
    int p[2];
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_fails(archive_record_read(p[0], deadline_in_ms(10), r, &f->e), ERR_LIMIT, f->e);
    assert_int_equal(archive_record_write(p[1], ARCHIVE_FILE, "name", 4), 0);
    assert_works(archive_record_read(p[0], deadline_in_ms(5000), r, &f->e), f->e);
    assert_int_equal(r->tag, ARCHIVE_FILE);
    assert_string_equal(r->data, "name");
    close(p[0]);
    close(p[1]);
    free(r);
}

/* Of /proc/<pid>/status. */
static void assert_status(pid_t pid, const char *line)
{
    AUTO_FREE char *path = mem_printf("/proc/%d/status", (int)pid);
    AUTO_BUF struct buf text = BUF_INIT(65536);
    struct err e = ERR_INIT;

    assert_works(fdio_read_file(path, &text, &e), e);
    assert_contains(buf_str(&text), line);
}

static void the_reader_has_no_rights(void **state)
{
    static const struct row rows[] = {{.name = "a", .type = AE_IFREG, .zeros = MIB}};
    struct fixture *f = *state;
    struct archive_record *r = mem_alloc(sizeof(*r));
    AUTO_FD int tar = make_tar(rows, 1);
    pid_t pid = -1;

    assert_int_equal(lseek(tar, 0, SEEK_SET), 0);
    AUTO_FD int records = archive_privsep_start(UNPACK_READER_COMMAND, tar, &pid, &f->e);
    /* Its first word comes when it has entered; the rest does not fit into the pipe. */
    assert_works(archive_record_read(records, deadline_in_ms(10000), r, &f->e), f->e);
    assert_status(pid, "NoNewPrivs:\t1\n");
    if (geteuid() == 0)
        assert_status(pid, "Uid:\t65534\t65534\t65534\t65534\n");
    assert_status(pid, "Seccomp:\t2\n");
    privsep_end(pid);
    assert_int_equal(kill(pid, 0), -1);
    free(r);
}

static int enter(void *unused)
{
    (void)unused;
    close_range(STDERR_FILENO + 1, ~0u, 0); /* as the process begins */
    return archive_privsep_enter(true);
}

static void a_reader_that_is_taken_over_reaches_nothing(void **state)
{
    (void)state;
    assert_no_escape(enter, NULL, 0);
}

/* Others go on without what the kernel lacks. */
static void a_reader_without_a_filter_does_not_read(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        kernel_lacks_seccomp();
        _exit(archive_privsep_enter(true) < 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

UNIT_COMMAND(UNPACK_READER_COMMAND, unpack_reader_main)

static int set_up(void **state)
{
    disk_free = room;
    return unit_ignore_sigpipe(state);
}

static const struct CMUnitTest tests[] = {
    TEST(packed_files_come_back),
    TEST(a_reader_that_is_taken_over_reaches_nothing),
    TEST(a_reader_without_a_filter_does_not_read),
    TEST(a_folder_alone_is_packed),
    TEST(a_folder_that_is_no_sandbox_is_packed_whole),
    TEST(only_relative_regular_files_are_packed),
    TEST(an_unread_archive_ends),
    TEST(content_needs_room_as_it_comes),
    TEST(a_reader_that_takes_too_long_is_left),
    TEST(a_file_that_changes_keeps_its_size_in_the_archive),
    TEST(folders_come_too),
    TEST(a_file_that_is_a_hole_comes_too),
    TEST(what_the_conversation_may_still_have),
    TEST(names_that_leave_the_sandbox),
    TEST(links_and_devices),
    TEST(nothing_goes_through_a_link),
    TEST(names_of_other_encodings_are_repaired),
    TEST(bombs),
    TEST(too_many_entries),
    TEST(names_that_are_there_twice),
    TEST(what_is_no_archive),
    TEST(what_is_in_the_way),
    TEST(a_disk_that_others_fill_ends_it),
    TEST(what_was_new_is_taken_back_when_the_disk_fails),
    TEST(the_reader_has_no_rights),
    TEST(records_are_taken_for_hostile),
};
UNIT_TESTS_IN(tests, set_up, NULL)
