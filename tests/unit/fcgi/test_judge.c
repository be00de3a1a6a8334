/* The process that judges access tokens, as one that many connect to: half questions end, and
 * without descriptors it waits for some. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "fcgi/oauth/judge_serve.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS 30
#define FDS         24 /* of the process */
#define LONG_MS     20000
#define HALF        "\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0\1\4\0\1"

struct world {
    char folder[PATH_MAX];
    char *path;
    struct settings s;
    pid_t pid;
};

static struct world w;

static void settings_fill(struct settings *s)
{
    static char base[] = "https://sandbox.example.org", broker[] = "/run/x/broker.sock";
    static char builtin[] = "builtin", empty[] = "";

    s->public_base_url = base;
    s->broker = broker;
    s->tenants_file = s->access.audience = s->access.tenant = s->access.scope_names = empty;
    s->access.limits = s->access.introspect = s->access.client_file = empty;
    s->oauth = builtin;
    s->access.issuer = base;
    s->access.builtin = true;
    tenants_init(&s->tenants);
}

static void serve(int listen_fd, int state_fd)
{
    const struct judge_secrets secrets = {.state_fd = state_fd};
    const struct rlimit few = {FDS, FDS};
    struct err e = ERR_INIT;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_setup(LOG_LEVEL_ERROR, "judge");
    setrlimit(RLIMIT_NOFILE, &few);
    exit(judge_serve(&w.s, &secrets, listen_fd, -1, &e) < 0); /* where a sanitizer tells leaks */
}

static int setup(void **state)
{
    struct err e = ERR_INIT;

    (void)state;
    w = (struct world){0};
    unit_make_folder(w.folder);
    w.path = mem_printf("%s/judge.sock", w.folder);
    settings_fill(&w.s);
    AUTO_FD int listen_fd = sock_listen(w.path, NULL, &e);
    AUTO_FD int state_fd = open(w.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w.pid = fork();
    if (w.pid == 0)
        serve(listen_fd, state_fd);
    return w.pid > 0 ? 0 : -1;
}

static int teardown(void **state)
{
    int status;

    (void)state;
    kill(w.pid, SIGTERM);
    assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
    assert_int_equal(status, 0);
    free(w.path);
    tenants_clear(&w.s.tenants);
    unit_remove_tree(w.folder);
    return 0;
}

static bool ask(void)
{
    struct judge_verdict verdict;

    judge_ask(-1, w.path, LONG_MS, "Bearer x", &verdict);
    if (verdict.why.kind != ERR_NONE)
        fail_msg("%s", verdict.why.text);
    return verdict.good;
}

static bool is_closed(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;

    return poll(&p, 1, ms) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
}

/* Of processor time. */
static int64_t used_ms(void)
{
    AUTO_FREE char *path = mem_printf("/proc/%d/schedstat", (int)w.pid);
    FILE *file = fopen(path, "re");
    long long ns = 0;

    if (!file || fscanf(file, "%lld", &ns) != 1)
        skip();
    fclose(file);
    return ns / 1000000;
}

static void half_a_question_ends(void **state)
{
    struct err e = ERR_INIT;
    AUTO_FD int half = sock_connect_unix(w.path, &e), silent = sock_connect_unix(w.path, &e);

    (void)state;
    assert_int_equal(send(half, HALF, sizeof HALF - 1, MSG_NOSIGNAL), sizeof HALF - 1);
    assert_false(ask());
    assert_true(is_closed(half, LONG_MS));
    assert_true(is_closed(silent, LONG_MS));
}

static void without_descriptors_it_rests(void **state)
{
    int fds[CONNECTIONS];
    struct err e = ERR_INIT;

    (void)state;
    assert_false(ask());
    for (size_t i = 0; i < CONNECTIONS; i++)
        assert_true((fds[i] = sock_connect_unix(w.path, &e)) >= 0);
    poll(NULL, 0, 200);
    const int64_t before = used_ms();
    poll(NULL, 0, 1000);
    assert_true(used_ms() - before < 300);
    for (size_t i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    assert_false(ask());
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(half_a_question_ends, setup, teardown),
    cmocka_unit_test_setup_teardown(without_descriptors_it_rests, setup, teardown),
};
UNIT_TESTS(tests)
