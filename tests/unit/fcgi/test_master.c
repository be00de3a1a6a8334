/* The whole server as its own program, without an engine: what the master does for its children. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/base/sock.h"
#include "tests/fakes/fcgi_client.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define START_MS 20000
#define BRIEF_MS 10000

#define MOST_CHILDREN 64
#define PROGRAM_MAX   (256u << 20)

struct world {
    char folder[PATH_MAX];
    char *front;
    char *program; /* a copy, which a test may replace */
    pid_t pid;     /* the guard */
};

static void set_path(const struct world *w, const char *name, const char *file)
{
    AUTO_FREE char *value = mem_printf("%s/%s", w->folder, file);
    setenv(name, value, 1);
}

/* Replaces the program as an installation does: by another file. */
static void put_program(const struct world *w)
{
    AUTO_FREE char *built = mem_printf("%s/sandcgi", getenv("builddir") ?: ".");
    AUTO_FREE char *fresh = mem_printf("%s.new", w->program);
    AUTO_BUF struct buf program = BUF_INIT(PROGRAM_MAX);
    struct err e = ERR_INIT;

    assert_works(fdio_read_file(built, &program, &e), e);
    unit_write_file(fresh, program.data, program.len);
    assert_int_equal(chmod(fresh, 0755), 0);
    assert_int_equal(rename(fresh, w->program), 0);
}

static int setup(void **state)
{
    struct world *w = mem_alloc(sizeof *w);

    unit_make_folder(w->folder);
    assert_int_equal(chmod(w->folder, 0711), 0);
    w->front = mem_printf("%s/front.sock", w->folder);
    w->program = mem_printf("%s/sandcgi", w->folder);
    put_program(w);
    setenv("SANDCGI_LISTEN", w->front, 1);
    set_path(w, "SANDCGI_BROKER", "broker.sock");
    set_path(w, "SANDCGI_HUB", "hub.sock");
    set_path(w, "SANDBOX_ROOT", "root");
    AUTO_FREE char *engine = mem_printf("unix://%s/engine.sock", w->folder);
    setenv("DOCKER_HOST", engine, 1);
    setenv("SANDCGI_AUTH", "token", 1);
    setenv("SANDCGI_WORKERS", "2", 1);
    setenv("SANDCGI_LOG_LEVEL", "debug", 1);
    setenv("MCP_API_TOKEN", "a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3e4f5", 1);
    setenv("FILE_SECRET", "a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3e4f5", 1);
    setenv("PUBLIC_BASE_URL", "http://localhost", 1);
    if (geteuid() == 0)
        setenv("SANDCGI_USER", "nobody", 1);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    if (w->pid > 0) {
        kill(w->pid, SIGKILL);
        waitpid(w->pid, NULL, 0);
    }
    unit_remove_tree(w->folder);
    free(w->front);
    free(w->program);
    free(w);
    unsetenv("SANDCGI_CONFIG");
    return 0;
}

static void start(struct world *w, int stderr_fd)
{
    w->pid = fork();
    assert_true(w->pid >= 0);
    if (w->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(stderr_fd, STDERR_FILENO);
        execl(w->program, w->program, "serve", (char *)NULL);
        _exit(127);
    }
}

/* Asks a worker. Has its answer the words? */
static bool answers(const struct world *w, const char *const *params, const char *body,
                    const char *words)
{
    AUTO_BUF struct buf request = BUF_INIT(4096), answer = BUF_INIT(65536);
    AUTO_FD int fd = fcgi_client_connect(w->front, START_MS);

    fcgi_client_add_request(&request, params, body);
    if (send(fd, request.data, request.len, MSG_NOSIGNAL) != (ssize_t)request.len ||
        fcgi_client_read_answer(fd, &answer, BRIEF_MS) < 0)
        return false;
    return strstr(buf_str(&answer), words) != NULL;
}

/* A worker, which asks the broker. */
static bool is_healthy(const struct world *w)
{
    static const char *const health[] = {"REQUEST_METHOD", "GET", "REQUEST_URI", "/healthz", NULL};

    return answers(w, health, "", "Status: 200");
}

static void wait_until_healthy(const struct world *w)
{
    struct deadline until = deadline_in_ms(START_MS);

    while (!is_healthy(w)) {
        if (deadline_passed(until))
            fail_msg("the server does not answer");
        poll(NULL, 0, 20);
    }
}

/* Its exit status, or -1: it still runs after that time. */
static int wait_for_exit(struct world *w, int ms)
{
    struct deadline until = deadline_in_ms(ms);
    int status;

    for (;;) {
        if (waitpid(w->pid, &status, WNOHANG) == w->pid) {
            w->pid = 0;
            return status;
        }
        if (deadline_passed(until))
            return -1;
        poll(NULL, 0, 10);
    }
}

static void a_log_without_a_reader_ends_no_process(void **state)
{
    struct world *w = *state;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]); /* each line of the log now fails with EPIPE */
    start(w, ends[1]);
    close(ends[1]);
    wait_until_healthy(w);
    for (int i = 0; i < 5; i++)
        assert_true(is_healthy(w));
    kill(w->pid, SIGTERM);
    assert_int_equal(wait_for_exit(w, BRIEF_MS), 0);
}

/* Half a request keeps its worker until the connection is closed. */
static void an_end_after_a_reload_waits_for_the_old_generation(void **state)
{
    struct world *w = *state;
    AUTO_FD int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    start(w, null);
    wait_until_healthy(w);
    AUTO_FD int half = fcgi_client_connect(w->front, START_MS);
    assert_int_equal(send(half, "\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0\1\4\0\1", 20, MSG_NOSIGNAL), 20);
    assert_true(is_healthy(w)); /* by the other worker: the first has taken the half */
    assert_true(is_healthy(w));
    kill(w->pid, SIGHUP);
    poll(NULL, 0, 300); /* for the new generation; sooner would only be easier */
    assert_true(is_healthy(w));
    kill(w->pid, SIGTERM);
    assert_int_equal(wait_for_exit(w, 1500), -1);
    auto_close_fd(&half);
    assert_int_equal(wait_for_exit(w, BRIEF_MS), 0);
}

/* ---- a new program, new settings ---- */

struct children {
    pid_t pids[MOST_CHILDREN];
    size_t n;
};

static struct children children_of(pid_t parent)
{
    struct children found = {.n = 0};
    AUTO_DIR DIR *proc = opendir("/proc");

    for (struct dirent *entry; (entry = readdir(proc)) && found.n < MOST_CHILDREN;) {
        AUTO_FREE char *path = mem_printf("/proc/%s/stat", entry->d_name);
        AUTO_BUF struct buf stat = BUF_INIT(4096);
        struct err none = ERR_INIT;
        uint64_t pid, ppid;
        if (parse_u64(entry->d_name, 1, INT32_MAX, &pid) < 0 ||
            fdio_read_file(path, &stat, &none) < 0)
            continue;
        char *text = strrchr(buf_str(&stat), ')'); /* ") S PPID …" */
        if (!text || strlen(text) < 5)
            continue;
        text[4 + strcspn(text + 4, " ")] = '\0';
        if (parse_u64(text + 4, 0, INT32_MAX, &ppid) == 0 && (pid_t)ppid == parent)
            found.pids[found.n++] = (pid_t)pid;
    }
    return found;
}

static bool has_one_generation(const struct world *w)
{
    const struct children masters = children_of(w->pid);

    return masters.n == 1 && children_of(masters.pids[0]).n == 4; /* broker, hub, two workers */
}

static pid_t only_master(const struct world *w)
{
    struct deadline until = deadline_in_ms(START_MS);

    while (!has_one_generation(w)) {
        if (deadline_passed(until))
            fail_msg("there is not one generation of processes");
        poll(NULL, 0, 20);
    }
    return children_of(w->pid).pids[0];
}

static void wait_for_text(int fd, const char *text)
{
    struct deadline until = deadline_in_ms(START_MS);
    AUTO_BUF struct buf log = BUF_INIT(1 << 20);

    while (!strstr(buf_str(&log), text)) {
        char some[4096];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (deadline_passed(until))
            fail_msg("the log lacks: %s\n%s", text, buf_str(&log));
        if (poll(&p, 1, 100) == 1)
            buf_add(&log, some, (size_t)read(fd, some, sizeof some));
    }
}

static void write_text(const char *path, const char *text)
{
    unit_write_file(path, text, strlen(text));
}

static void another_program_takes_over(void **state)
{
    struct world *w = *state;
    AUTO_FD int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    AUTO_FREE char *exe = NULL;
    struct stat runs, lies;

    start(w, null);
    pid_t master = only_master(w);
    put_program(w);
    kill(w->pid, SIGHUP);
    for (int i = 0; i < 20; i++)
        assert_true(is_healthy(w));
    struct deadline until = deadline_in_ms(START_MS);
    while (only_master(w) == master && !deadline_passed(until))
        poll(NULL, 0, 20);
    exe = mem_printf("/proc/%d/exe", (int)only_master(w));
    assert_int_equal(stat(exe, &runs), 0);
    assert_int_equal(stat(w->program, &lies), 0);
    assert_int_equal(runs.st_ino, lies.st_ino);
    assert_true(is_healthy(w));
    kill(w->pid, SIGTERM);
    assert_int_equal(wait_for_exit(w, BRIEF_MS), 0);
}

static bool is_draining(const struct world *w)
{
    static const char *const ready[] = {"REQUEST_METHOD", "GET", "REQUEST_URI", "/readyz", NULL};

    return answers(w, ready, "", "draining");
}

/* An edge must not send new conversations to a server that is about to end. */
static void a_drain_survives_a_reload(void **state)
{
    struct world *w = *state;
    AUTO_FD int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct deadline until = deadline_in_ms(START_MS);

    start(w, null);
    wait_until_healthy(w);
    pid_t first = only_master(w);
    assert_false(is_draining(w));
    kill(w->pid, SIGURG);
    while (!is_draining(w) && !deadline_passed(until))
        poll(NULL, 0, 20);
    kill(w->pid, SIGHUP);
    while (only_master(w) == first && !deadline_passed(until))
        poll(NULL, 0, 20);
    assert_int_not_equal(only_master(w), first);
    assert_true(is_draining(w));
    kill(w->pid, SIGTERM);
    assert_int_equal(wait_for_exit(w, BRIEF_MS), 0);
}

static void a_program_that_cannot_run_changes_nothing(void **state)
{
    struct world *w = *state;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    start(w, ends[1]);
    close(ends[1]);
    pid_t master = only_master(w);
    assert_int_equal(unlink(w->program), 0);
    write_text(w->program, "#!/bin/sh\necho the library is missing >&2; exit 1\n");
    assert_int_equal(chmod(w->program, 0755), 0);
    kill(w->pid, SIGHUP);
    wait_for_text(ends[0], "settings not reloaded: the library is missing");
    assert_int_equal(only_master(w), master);
    assert_true(is_healthy(w));
    close(ends[0]);
    kill(w->pid, SIGTERM);
    assert_int_equal(wait_for_exit(w, BRIEF_MS), 0);
}

static void a_reload_moves_a_socket(void **state)
{
    struct world *w = *state;
    AUTO_FREE char *config = mem_printf("%s/settings", w->folder);
    AUTO_FREE char *moved = mem_printf("%s/moved.sock", w->folder);
    AUTO_FREE char *before = mem_printf("SANDCGI_LISTEN=%s\n", w->front);
    AUTO_FREE char *after = mem_printf("SANDCGI_LISTEN=%s # moved\n", moved);
    AUTO_FREE char *impossible = mem_printf("SANDCGI_LISTEN=%s/no/folder/front.sock\n", w->folder);
    AUTO_FREE char *late = mem_printf("%sSANDCGI_LOG=%s\n", before, w->folder); /* a folder */
    int ends[2];
    struct stat st;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    unsetenv("SANDCGI_LISTEN");
    setenv("SANDCGI_CONFIG", config, 1);
    write_text(config, before);
    start(w, ends[1]);
    close(ends[1]);
    pid_t master = only_master(w);
    write_text(config, impossible);
    kill(w->pid, SIGHUP);
    wait_for_text(ends[0], "settings not reloaded: SANDCGI_LISTEN");
    assert_int_equal(only_master(w), master);
    assert_true(is_healthy(w));
    write_text(config, late);
    kill(w->pid, SIGHUP);
    wait_for_text(ends[0], "settings not reloaded: SANDCGI_LOG");
    assert_int_equal(only_master(w), master);
    assert_int_equal(wait_for_exit(w, 500), -1);
    assert_true(is_healthy(w));
    write_text(config, after);
    kill(w->pid, SIGHUP);
    wait_for_text(ends[0], "the earlier generation has ended");
    assert_int_equal(access(w->front, F_OK), -1);
    assert_int_equal(stat(moved, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    free(w->front);
    w->front = mem_strdup(moved);
    assert_true(is_healthy(w));
    close(ends[0]);
    kill(w->pid, SIGTERM);
    assert_int_equal(wait_for_exit(w, BRIEF_MS), 0);
}

/* Those of programs before, which end when their calls have: none has such a pid. */
static void a_reload_is_refused_while_too_many_generations_answer(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf words = BUF_INIT(4096);
    struct deadline until = deadline_in_ms(START_MS);
    int ends[2];

    for (int i = 0; i < 40; i++)
        buf_addf(&words, "old=%d ", INT32_MAX);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    setenv("SANDCGI_HANDOVER", buf_str(&words), 1);
    start(w, ends[1]);
    unsetenv("SANDCGI_HANDOVER");
    close(ends[1]);
    pid_t master = only_master(w);
    kill(w->pid, SIGHUP);
    wait_for_text(ends[0], "settings not reloaded: 32 earlier generations still answer calls");
    assert_int_equal(only_master(w), master);
    close(ends[0]);
    kill(w->pid, SIGTERM);
    while (children_of(w->pid).n > 0 && !deadline_passed(until))
        poll(NULL, 0, 10);
    assert_int_equal(wait_for_exit(w, 0), -1); /* it waits for those of before */
}

static char state_of(pid_t pid)
{
    AUTO_FREE char *path = mem_printf("/proc/%d/stat", (int)pid);
    AUTO_BUF struct buf stat = BUF_INIT(4096);
    struct err e;

    assert_works(fdio_read_file(path, &stat, &e), e);
    return strrchr(buf_str(&stat), ')')[2];
}

/* One that turns round and round is running or waits for a processor at nearly each look. */
static void a_master_with_nothing_to_do_sleeps(void **state)
{
    struct world *w = *state;
    AUTO_FD int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct deadline until = deadline_in_ms(START_MS);
    int asleep = 0;

    start(w, null);
    pid_t master = only_master(w);
    while (asleep < 20) {
        asleep = state_of(master) == 'S' ? asleep + 1 : 0;
        assert_false(deadline_passed(until));
        poll(NULL, 0, 1);
    }
    kill(w->pid, SIGTERM);
    assert_int_equal(wait_for_exit(w, BRIEF_MS), 0);
}

/* ---- places ---- */

#define LONGEST "a-name-of-as-many-letters-as-fit" /* 32 */

static void a_place_has_the_tools_that_its_whole_name_says(void **state)
{
    static const struct {
        const char *uri, *words;
    } rows[] = {{"/mcp", "Status: 200"},
                {"/mcp/all?x=/", "Status: 200"},
                {"/mcp/none", "No such set of tools"},
                {"/mcp/" LONGEST, "No such set of tools"},
                {"/mcp/" LONGEST "s", "No such set of tools"},
                {"/mcp/" LONGEST "/", "No such set of tools"},
                {"/mcp/" LONGEST LONGEST "/?all", "No such set of tools"},
                {"/mcp/all/all", "There is no such place"}};
    static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    struct world *w = *state;
    AUTO_FD int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    AUTO_FREE char *token = mem_printf("Bearer %s", getenv("MCP_API_TOKEN"));
    AUTO_FREE char *length = mem_printf("%zu", strlen(body));

    start(w, null);
    wait_until_healthy(w);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *const params[] = {
            "REQUEST_METHOD",     "POST",         "REQUEST_URI",
            rows[i].uri,          "CONTENT_TYPE", "application/json",
            "CONTENT_LENGTH",     length,         "HTTP_HOST",
            "localhost",          "HTTP_ACCEPT",  "application/json, text/event-stream",
            "HTTP_AUTHORIZATION", token,          NULL};
        if (!answers(w, params, body, rows[i].words))
            fail_msg("%s", rows[i].uri);
    }
}

/* ---- the end ---- */

static bool is_refused(const struct world *w)
{
    struct err e = ERR_INIT;
    AUTO_FD int fd = sock_connect_unix(w->front, &e);

    return fd < 0 && e.kind == ERR_UNAVAILABLE;
}

/* The workers stand still: the connection is in the queue when the end begins. */
static void an_end_serves_the_queue_and_refuses_what_follows(void **state)
{
    static const char *const health[] = {"REQUEST_METHOD", "GET", "REQUEST_URI", "/healthz", NULL};
    struct world *w = *state;
    AUTO_FD int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    AUTO_BUF struct buf request = BUF_INIT(4096), answer = BUF_INIT(65536);

    start(w, null);
    wait_until_healthy(w);
    const struct children all = children_of(only_master(w));
    for (size_t i = 0; i < all.n; i++)
        kill(all.pids[i], SIGSTOP);
    AUTO_FD int queued = fcgi_client_connect(w->front, START_MS);
    fcgi_client_add_request(&request, health, "");
    assert_int_equal(send(queued, request.data, request.len, MSG_NOSIGNAL), request.len);
    kill(w->pid, SIGTERM);
    struct deadline until = deadline_in_ms(BRIEF_MS);
    while (!is_refused(w)) {
        assert_false(deadline_passed(until));
        poll(NULL, 0, 10);
    }
    for (size_t i = 0; i < all.n; i++)
        kill(all.pids[i], SIGCONT);
    assert_int_equal(fcgi_client_read_answer(queued, &answer, BRIEF_MS), 0);
    assert_contains(buf_str(&answer), "Status: ");
    assert_int_equal(wait_for_exit(w, BRIEF_MS), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(another_program_takes_over, setup, teardown),
    cmocka_unit_test_setup_teardown(a_drain_survives_a_reload, setup, teardown),
    cmocka_unit_test_setup_teardown(a_program_that_cannot_run_changes_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(a_reload_moves_a_socket, setup, teardown),
    cmocka_unit_test_setup_teardown(a_reload_is_refused_while_too_many_generations_answer, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_master_with_nothing_to_do_sleeps, setup, teardown),
    cmocka_unit_test_setup_teardown(a_place_has_the_tools_that_its_whole_name_says, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(an_end_serves_the_queue_and_refuses_what_follows, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_log_without_a_reader_ends_no_process, setup, teardown),
    cmocka_unit_test_setup_teardown(an_end_after_a_reload_waits_for_the_old_generation, setup,
                                    teardown),
};
UNIT_TESTS(tests)
