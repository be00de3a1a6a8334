/* The whole server as its own program, without an engine: what the master does for its children. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
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

struct world {
    char folder[PATH_MAX];
    char *front;
    pid_t pid;
};

static void set_path(const struct world *w, const char *name, const char *file)
{
    AUTO_FREE char *value = mem_printf("%s/%s", w->folder, file);
    setenv(name, value, 1);
}

static int setup(void **state)
{
    struct world *w = mem_alloc(sizeof *w);

    unit_make_folder(w->folder);
    assert_int_equal(chmod(w->folder, 0711), 0);
    w->front = mem_printf("%s/front.sock", w->folder);
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
    free(w);
    return 0;
}

static void start(struct world *w, int stderr_fd)
{
    AUTO_FREE char *program = mem_printf("%s/sandcgi", getenv("builddir") ?: ".");

    w->pid = fork();
    assert_true(w->pid >= 0);
    if (w->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(stderr_fd, STDERR_FILENO);
        execl(program, program, "serve", (char *)NULL);
        _exit(127);
    }
}

/* Asks a worker, which asks the broker. */
static bool is_healthy(const struct world *w)
{
    static const char *const health[] = {"REQUEST_METHOD", "GET", "REQUEST_URI", "/healthz", NULL};
    AUTO_BUF struct buf request = BUF_INIT(4096), answer = BUF_INIT(65536);
    AUTO_FD int fd = fcgi_client_connect(w->front, START_MS);

    fcgi_client_add_request(&request, health, "");
    if (send(fd, request.data, request.len, MSG_NOSIGNAL) != (ssize_t)request.len ||
        fcgi_client_read_answer(fd, &answer, BRIEF_MS) < 0)
        return false;
    return strstr(buf_str(&answer), "Status: 200") != NULL;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_log_without_a_reader_ends_no_process, setup, teardown),
        cmocka_unit_test_setup_teardown(an_end_after_a_reload_waits_for_the_old_generation, setup,
                                        teardown),
    };
    return RUN_TESTS(tests);
}
