/* What workers and the hub keep: the sessions, and their ends of pairs. */
#include "config.h"

#include "common/base/mem.h"
#include "common/base/sock.h"
#include "fcgi/hub/events.h"
#include "fcgi/process/resources.h"
#include "fcgi/process/sockets.h"
#include "tests/unit/escapes.h"

#include <sys/file.h>

struct front {
    int sessions_fd;
    bool is_hub;
};

static int enter(void *arg)
{
    const struct front *front = arg;
    struct err e = ERR_INIT;

    return account_confine(front->sessions_fd, front->is_hub, &e);
}

static void a_process_that_is_taken_over_reaches_only_its_sessions(void **state)
{
    char folder[PATH_MAX];
    struct front front;

    (void)state;
    unit_make_folder(folder);
    front.sessions_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int hub = 0; hub < 2; hub++) {
        front.is_hub = hub;
        assert_no_escape(enter, &front, hub ? NEEDS_CHILDREN : 0);
    }
    close(front.sessions_fd);
    rmdir(folder);
}

/* What common/mcp/session does with its directory. */
static bool keeps_sessions(int dir)
{
    int fd = openat(dir, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct stat st;

    return write(fd, "x", 1) == 1 && ftruncate(fd, 0) == 0 && flock(fd, LOCK_EX) == 0 &&
           renameat(dir, "new", dir, "old") == 0 && mkfifoat(dir, "pipe", 0600) == 0 &&
           openat(dir, "pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC) >= 0 &&
           openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0 &&
           fstatat(dir, "old", &st, 0) == 0 && unlinkat(dir, "old", 0) == 0 &&
           unlinkat(dir, "pipe", 0) == 0;
}

/* Connections to the broker, with their descriptors; events for the hub. */
static bool speaks_over(int out)
{
    struct err e = ERR_INIT;
    struct event_sender sender;
    const struct mcp_event event = {.kind = MCP_EVENT_TOOLS};
    int fd = sock_connect_over(out, &e);

    event_sender_init(&sender, "", 0);
    event_sender_use(&sender, out);
    return fd >= 0 && sock_send_message(fd, "x", 1, fd, &e) == 0 &&
           event_sender_try(&sender, &event);
}

static void sessions_and_pairs_are_kept(void **state)
{
    char folder[PATH_MAX];
    int status, pair[2];
    struct err e = ERR_INIT;
    struct mcp_event event;
    pid_t pid;

    (void)state;
    unit_make_folder(folder);
    assert_works(pair_open(pair, &e), e);
    struct front front = {.sessions_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    pid = fork();
    if (pid == 0) {
        if (enter(&front) < 0 || !keeps_sessions(front.sessions_fd))
            _exit(1);
        _exit(speaks_over(pair[1]) ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    AUTO_FD int fd = sock_accept_over(pair[0]);
    AUTO_BUF struct buf message = BUF_INIT(16);
    AUTO_FD int passed = -1;
    assert_true(fd >= 0);
    assert_works(sock_recv_message(fd, &message, &passed, deadline_in_ms(10000), &e), e);
    assert_true(passed >= 0);
    json_auto_t *source = events_receive(pair[0], &event);
    assert_non_null(source);
    assert_int_equal(event.kind, MCP_EVENT_TOOLS);
    close(pair[0]);
    close(pair[1]);
    close(front.sessions_fd);
    assert_int_equal(rmdir(folder), 0);
}

/* Ends with 0 if it could give up its rights, and says what the kernel lacks. */
static int status_and_log(void (*lacks)(void), struct front *front, struct buf *log)
{
    int status, ends[2];
    struct err e = ERR_INIT;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        lacks();
        kernel_log_walls();
        _exit(enter(front) < 0 ? 1 : 0);
    }
    close(ends[1]);
    assert_works(fdio_read_to_end(ends[0], log, &e), e);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void nothing(void)
{
}

static void a_kernel_without_a_wall_is_told_of_and_does(void **state)
{
    static const struct {
        void (*lacks)(void);
        const char *told;
    } cases[] = {
        {kernel_lacks_landlock, "the kernel has no Landlock"},
        {kernel_lacks_seccomp, "the kernel has no seccomp"},
        {nothing, ""},
    };
    struct front front = {.sessions_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf log = BUF_INIT(4096);
        assert_int_equal(status_and_log(cases[i].lacks, &front, &log), 0);
        assert_contains(buf_str(&log), cases[i].told);
        if (cases[i].lacks == nothing && privsep_landlock_version() >= PRIVSEP_LANDLOCK_SIGNALS)
            assert_string_equal(buf_str(&log), "");
    }
    close(front.sessions_fd);
}

/* ---- one server for each SANDBOX_ROOT ---- */

static bool is_refused(const char *root, pid_t holder)
{
    struct settings s = {.sandbox_root = (char *)(uintptr_t)root};
    AUTO_FREE char *who = mem_printf("%s: another server (process %d) uses it", root, (int)holder);
    AUTO_FD int fd = -1;
    struct err e = ERR_INIT;

    return root_lock(&s, &fd, &e) < 0 && e.kind == ERR_BUSY && fd < 0 && strstr(e.text, who);
}

/* Tried by a process of its own: a process is not in its own way. */
static bool is_refused_elsewhere(const char *root, pid_t holder)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(is_refused(root, holder) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void the_root_is_one_servers_until_its_process_ends(void **state)
{
    char folder[PATH_MAX];
    int ends[2], status;
    struct err e = ERR_INIT;
    char byte;

    (void)state;
    unit_make_folder(folder);
    AUTO_FREE char *root = mem_printf("%s/root", folder);
    AUTO_FREE char *other = mem_printf("%s/other", folder);
    struct settings s = {.sandbox_root = root};
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t holder = fork();
    if (holder == 0) {
        int fd = -1;
        setpgid(0, 0);
        if (root_lock(&s, &fd, &e) == 0 && root_lock(&s, &fd, &e) == 0 && fork() == 0)
            auto_close_fd(&fd); /* it stays when its parent is killed */
        else
            (void)!write(ends[1], "x", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_true(is_refused_elsewhere(root, holder));
    kill(holder, SIGKILL);
    assert_int_equal(waitpid(holder, &status, 0), holder);
    AUTO_FD int fd = -1;
    assert_works(root_lock(&s, &fd, &e), e);
    assert_true(is_refused_elsewhere(root, getpid()));
    s.sandbox_root = other; /* a reload with another folder */
    assert_works(root_lock(&s, &fd, &e), e);
    assert_true(is_refused_elsewhere(other, getpid()));
    assert_false(is_refused_elsewhere(root, getpid()));
    auto_close_fd(&fd);
    assert_false(is_refused_elsewhere(other, getpid()));
    kill(-holder, SIGKILL);
    close(ends[0]);
    close(ends[1]);
    unit_remove_tree(folder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_process_that_is_taken_over_reaches_only_its_sessions),
    cmocka_unit_test(sessions_and_pairs_are_kept),
    cmocka_unit_test(a_kernel_without_a_wall_is_told_of_and_does),
    cmocka_unit_test(the_root_is_one_servers_until_its_process_ends),
};
UNIT_TESTS(tests)
