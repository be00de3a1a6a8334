/* Who holds a file without a name: the processes are folders of this test. */
#include "config.h"

#include "common/base/mem.h"
#include "common/supervisor/held.h"
#include "tests/unit/unit.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE 300000

/* A /proc with one process, whose /data is a sandbox. */
struct world {
    char folder[PATH_MAX];
    char proc[PATH_MAX + 8];
    struct sandbox sb;
};

static void make(struct world *w, const char *name)
{
    AUTO_FREE char *path = mem_printf("%s/%s", w->folder, name);

    assert_int_equal(mkdir(path, 0755), 0);
}

/* As the kernel's links are: to what has no name, too. */
static void link_to_fd(struct world *w, const char *name, int fd)
{
    AUTO_FREE char *path = mem_printf("%s/proc/7/%s", w->folder, name);
    AUTO_FREE char *to = mem_printf("/proc/%d/fd/%d", (int)getpid(), fd);

    assert_int_equal(symlink(to, path), 0);
}

static int setup(void **state)
{
    static struct world w;
    static const char *const folders[] = {"data",
                                          "proc",
                                          "proc/7",
                                          "proc/7/task",
                                          "proc/7/task/7",
                                          "proc/7/task/7/fd",
                                          "proc/7/map_files",
                                          "proc/7/task/7/fdinfo"};

    unit_make_folder(w.folder);
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        make(&w, folders[i]);
    snprintf(w.proc, sizeof w.proc, "%s/proc", w.folder);
    AUTO_FREE char *root = mem_printf("%s/7/root", w.proc);
    AUTO_FREE char *data = mem_printf("%s/data", w.folder);
    assert_int_equal(symlink(w.folder, root), 0);
    w.sb = (struct sandbox){.fd = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    sandbox_close(&w->sb);
    unit_remove_tree(w->folder);
    return 0;
}

/* A file of the sandbox that was deleted. */
static int make_deleted(const struct world *w)
{
    static char bytes[SIZE];
    int fd = openat(w->sb.fd, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
    fsync(fd);
    assert_int_equal(unlinkat(w->sb.fd, "f", 0), 0);
    return fd;
}

static void expect(const struct world *w, size_t files, size_t in_flight)
{
    const struct held held = held_measure_at(w->proc, &w->sb);

    assert_int_equal(held.seen, 1);
    assert_int_equal(held.files.files, files);
    assert_int_equal(held.in_flight, in_flight);
    assert_true(held.files.bytes >= files * SIZE);
}

static void what_is_open_or_mapped_counts_once(void **state)
{
    struct world *w = *state;
    AUTO_FD int file = make_deleted(w);

    expect(w, 0, 0);
    link_to_fd(w, "task/7/fd/3", file);
    expect(w, 1, 0);
    link_to_fd(w, "task/7/fd/4", file);
    link_to_fd(w, "map_files/1-2", file);
    expect(w, 1, 0);
}

static void the_file_that_a_process_runs_counts(void **state)
{
    struct world *w = *state;
    AUTO_FD int file = make_deleted(w);

    link_to_fd(w, "exe", file);
    expect(w, 1, 0);
}

static void descriptors_on_their_way_are_told_by_their_socket(void **state)
{
    struct world *w = *state;
    AUTO_FREE char *path = mem_printf("%s/7/task/7/fdinfo/5", w->proc);
    AUTO_FD int info = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    static const char text[] = "pos:\t0\nflags:\t02\nmnt_id:\t10\nino:\t15\nscm_fds: 253\n";
    int pair[2];

    assert_int_equal(write(info, text, sizeof text - 1), sizeof text - 1);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    link_to_fd(w, "task/7/fd/5", pair[0]);
    link_to_fd(w, "task/7/fd/6", pair[1]); /* an older kernel tells nothing */
    expect(w, 0, 253);
    close(pair[0]);
    close(pair[1]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(what_is_open_or_mapped_counts_once, setup, teardown),
    cmocka_unit_test_setup_teardown(the_file_that_a_process_runs_counts, setup, teardown),
    cmocka_unit_test_setup_teardown(descriptors_on_their_way_are_told_by_their_socket, setup,
                                    teardown),
};
UNIT_TESTS(tests)
