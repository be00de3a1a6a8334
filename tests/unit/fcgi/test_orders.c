/* What an administrator asks of a server that runs, with the whole program and without an engine.
 */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/base/sock.h"
#include "fcgi/process/settings_check.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS  60000
#define TEXT_MAX (1u << 20)
#define SECRET   "a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3e4f5"
#define LONG     "a-folder-whose-name-leaves-room-for-a-socket-of-a-short-name-and-for-no-other-one"

struct world {
    char folder[PATH_MAX];
    char *config, *log;
    pid_t pid;    /* the guard */
    pid_t master; /* that a guard has already; 0: none */
};

/* What follows the settings that are right; @: the folder. */
static void write_settings(const struct world *w, const char *more)
{
    const size_t len = strcspn(more, "@");
    AUTO_FREE char *last = mem_printf("%.*s%s%s", (int)len, more, more[len] ? w->folder : "",
                                      more + len + (more[len] == '@'));
    AUTO_FREE char *text = mem_printf(
        "SANDCGI_LISTEN=%1$s/run/front.sock\nSANDCGI_BROKER=%1$s/run/broker.sock\n"
        "SANDBOX_ROOT=%1$s/root\nDOCKER_HOST=unix://%1$s/engine.sock\nSANDCGI_AUTH=token\n"
        "SANDCGI_WORKERS=1\nMCP_API_TOKEN=" SECRET "\nFILE_SECRET=" SECRET "\n"
        "PUBLIC_BASE_URL=http://localhost\n%2$s%3$s\n",
        w->folder, geteuid() == 0 ? "SANDCGI_USER=nobody\n" : "", last);

    unit_write_file(w->config, text, strlen(text));
    assert_int_equal(chmod(w->config, 0600), 0);
}

static int setup(void **state)
{
    struct world *w = mem_alloc(sizeof *w);

    unit_make_folder(w->folder);
    assert_int_equal(chmod(w->folder, 0711), 0);
    w->config = mem_printf("%s/settings", w->folder);
    w->log = mem_printf("%s/log", w->folder);
    write_settings(w, "");
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
    free(w->config);
    free(w->log);
    free(w);
    return 0;
}

/* Becomes the program with its settings alone. */
static void become(const struct world *w, const char *command, const char *option,
                   const char *value)
{
    AUTO_FREE char *program = mem_printf("%s/sandcgi", getenv("builddir") ?: ".");
    AUTO_FREE char *asan = mem_printf("ASAN_OPTIONS=%s", getenv("ASAN_OPTIONS") ?: "");
    AUTO_FREE char *master = mem_printf("SANDCGI_HANDOVER=master=%d", (int)w->master);
    char *environment[] = {(char[]){"PATH=/usr/bin:/bin"}, asan, w->master > 0 ? master : NULL,
                           NULL};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *const words[] = {program, command, "--config", w->config, option, value, NULL};
    execve(program, (char *const *)(uintptr_t)words, environment);
    _exit(127);
}

/* Returns the exit status; said: what the command has printed. */
static int run(const struct world *w, const char *command, const char *option, const char *value,
               struct buf *said)
{
    struct err e = ERR_INIT;
    int ends[2], status;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        become(w, command, option, value);
    }
    close(ends[1]);
    buf_reset(said);
    assert_works(fdio_read_to_end(ends[0], said, &e), e);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void assert_says(const struct buf *said, const char *words)
{
    if (!strstr(buf_str(said), words))
        fail_msg("\"%s\" is not in: %s", words, buf_str(said));
}

static void start(struct world *w)
{
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);
    struct deadline until = deadline_in_ms(WAIT_MS);

    w->pid = fork();
    if (w->pid == 0) {
        int log = open(w->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(log, STDERR_FILENO);
        become(w, "serve", NULL, NULL);
    }
    while (run(w, "status", NULL, NULL, &said) == 1) { /* 3: it runs, the engine does not */
        if (deadline_passed(until))
            fail_msg("the server does not start: %s", buf_str(&said));
        poll(NULL, 0, 50);
    }
}

static void await_end(struct world *w)
{
    struct deadline until = deadline_in_ms(WAIT_MS);

    while (waitpid(w->pid, NULL, WNOHANG) == 0) {
        if (deadline_passed(until))
            fail_msg("the server does not end");
        poll(NULL, 0, 20);
    }
    w->pid = 0;
}

/* How often the log has the words. */
static int count_in_log(const struct world *w, const char *words)
{
    AUTO_BUF struct buf log = BUF_INIT(TEXT_MAX);
    struct err e;
    int n = 0;

    assert_works(fdio_read_file(w->log, &log, &e), e);
    for (const char *at = buf_str(&log); (at = strstr(at, words)); at++)
        n++;
    return n;
}

static void await_log(const struct world *w, const char *words, int n)
{
    struct deadline until = deadline_in_ms(WAIT_MS);

    while (count_in_log(w, words) < n) {
        if (deadline_passed(until))
            fail_msg("the log has not %d times: %s", n, words);
        poll(NULL, 0, 20);
    }
}

/* ---- reload ---- */

static void a_reload_tells_the_outcome(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);

    assert_int_equal(run(w, "reload", NULL, NULL, &said), 1);
    assert_says(&said, "no server of ");
    start(w);
    assert_int_equal(run(w, "reload", NULL, NULL, &said), 0);
    assert_says(&said, "reloaded\n");
    assert_int_equal(count_in_log(w, "settings reloaded"), 1);
    write_settings(w, "SANDBOX_MEMORY=much\n");
    assert_int_equal(run(w, "reload", NULL, NULL, &said), 1);
    assert_says(&said, "SANDBOX_MEMORY is \"much\"");
    assert_int_equal(count_in_log(w, "audit=reload-refused"), 1);
    assert_int_equal(run(w, "reload", "--wait", "soon", &said), 2);
    write_settings(w, "");
    assert_int_equal(run(w, "reload", "--wait", "50s", &said), 0);
    kill(w->pid, SIGHUP);
    await_log(w, "settings reloaded", 3);
    assert_int_equal(run(w, "stop", NULL, NULL, &said), 0);
    await_end(w);
}

/* The program that a reload starts, with a master of the one before. */
static void settings_that_change_after_they_were_checked_end_nothing(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);

    write_settings(w, "SANDBOX_MEMORY=much\n");
    unit_write_file(w->log, "", 0);
    w->pid = fork();
    if (w->pid == 0) {
        const int log = open(w->log, O_WRONLY | O_APPEND);
        pid_t master = fork();
        if (master == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            pause();
            _exit(0);
        }
        dup2(log, STDERR_FILENO);
        w->master = master;
        become(w, "serve", NULL, NULL);
    }
    await_log(w, "settings not reloaded: ", 1);
    write_settings(w, "");
    kill(w->pid, SIGHUP);
    await_log(w, "settings reloaded", 1);
    assert_int_equal(run(w, "stop", NULL, NULL, &said), 0);
    await_end(w);
}

/* ---- one judge ---- */

static const struct {
    const char *settings, *words;
} faults[] = {
    {"SANDBOX_ROOT=@/no/root\n", "there is no folder "},
    {"SANDCGI_LISTEN=@/no/thing/front.sock\n", "SANDCGI_LISTEN="},
    {"SANDCGI_METRICS=@/no/thing/metrics.sock\n", "SANDCGI_METRICS="},
    {"SANDCGI_LOG=@/no/log\n", "SANDCGI_LOG="},
    {"SANDCGI_AUTH=nginx\nSANDCGI_SECRET_FILE=@/no-secret\n", "SANDCGI_SECRET_FILE"},
    {"SANDBOX_CA=@/no-ca\n", "SANDBOX_CA="},
    {"DOCKER_HOST=tcp://127.0.0.1:1\nDOCKER_CERT_PATH=@\n", "DOCKER_CERT_PATH: "},
    {"DOCKER_HOST=/run/docker.sock\n", "DOCKER_HOST must be unix:///PATH"},
    {"SANDBOX_MEMROY=1g\n", "there is SANDBOX_MEMORY"},
    {"SANDCGI_WORKERS=0\n", "SANDCGI_WORKERS"},
    {"FILE_SECRET=short\n", "FILE_SECRET is shorter"},
    {"SANDBOX_TENANTS_FILE=@/no-limits\n", "SANDBOX_TENANTS_FILE"},
    {"SANDBOX_TIMEOUT=2h\nSANDBOX_TIMEOUT_MAX=1h\n", "SANDBOX_TIMEOUT"},
    {"SANDCGI_OAUTH=builtin\nPUBLIC_BASE_URL=https://localhost\n", "sandcgi oauth passphrase"},
};

static void keep_first_line(struct buf *said)
{
    AUTO_FREE char *text = buf_take(said);

    buf_add(said, text, strcspn(text, "\n"));
}

static void expect_one_verdict(const struct world *w, const char *words)
{
    AUTO_BUF struct buf checked = BUF_INIT(TEXT_MAX), said = BUF_INIT(TEXT_MAX);

    assert_int_equal(run(w, "check", NULL, NULL, &checked), 1);
    assert_says(&checked, words);
    keep_first_line(&checked);
    assert_int_equal(run(w, "serve", NULL, NULL, &said), 1); /* a line of the log */
    keep_first_line(&said);
    assert_says(&said, buf_str(&checked) + strlen("sandcgi: "));
    static const char *const others[] = {"reload", "restart"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_int_equal(run(w, others[i], NULL, NULL, &said), 1);
        keep_first_line(&said);
        assert_string_equal(buf_str(&said), buf_str(&checked));
    }
}

static void check_start_reload_and_restart_refuse_the_same_with_the_same_sentence(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);

    start(w);
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        write_settings(w, faults[i].settings);
        expect_one_verdict(w, faults[i].words);
    }
    write_settings(w, "");
    assert_int_equal(chmod(w->config, 0644), 0);
    expect_one_verdict(w, "every account can read or write it (mode 0644): chmod o-rwx");
    assert_int_equal(chmod(w->config, 0600), 0);
    assert_int_equal(run(w, "reload", NULL, NULL, &said), 0); /* it has run all the time */
    assert_int_equal(run(w, "stop", NULL, NULL, &said), 0);
    await_end(w);
}

static void a_check_that_finds_no_room_for_a_process_says_so(void **state)
{
    int status;

    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        AUTO_BUF struct buf notes = BUF_INIT(64);
        struct err e = ERR_INIT;
        if (geteuid() == 0 && setuid(65534) < 0)
            _exit(2);
        setrlimit(RLIMIT_NPROC, &(struct rlimit){0});
        const int rc = settings_check_ask("/bin/true", NULL, NULL, &(sigset_t){0}, &notes, &e);
        _exit(!(rc < 0 && strstr(e.text, "fork: ") && strstr(e.text, strerror(EAGAIN))));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Those of another place find no server to reload. */
static void a_check_knows_where_the_brokers_sockets_cannot_be(void **state)
{
    static const struct {
        const char *settings, *words;
    } rows[] = {{"SANDCGI_BROKER=broker.sock\n", "SANDCGI_BROKER=broker.sock: "},
                {"SANDCGI_BROKER=@/" LONG "/a\n", "the socket path "}};
    struct world *w = *state;
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        write_settings(w, rows[i].settings);
        assert_int_equal(run(w, "check", NULL, NULL, &said), 1);
        assert_says(&said, rows[i].words);
        assert_int_equal(run(w, "serve", NULL, NULL, &said), 1);
        assert_says(&said, rows[i].words);
    }
}

/* One that takes connections and never answers: a start, too, asks it only for a moment. */
static void an_engine_that_does_not_answer_is_a_note_for_check_start_and_reload(void **state)
{
    static const char note[] = "the engine was not asked for its images (SANDBOX_WARM): ";
    struct world *w = *state;
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);
    AUTO_FREE char *socket = mem_printf("%s/engine.sock", w->folder);
    struct err e = ERR_INIT;
    AUTO_FD int engine = sock_listen(socket, NULL, &e);

    assert_true(engine >= 0);
    assert_int_equal(run(w, "check", NULL, NULL, &said), 0);
    assert_says(&said, note);
    assert_says(&said, "ok: ");
    start(w);
    await_log(w, note, 1);
    assert_int_equal(run(w, "reload", NULL, NULL, &said), 0);
    assert_says(&said, note);
    assert_int_equal(run(w, "status", NULL, NULL, &said), 3);
    assert_int_equal(run(w, "status", "--here", NULL, &said), 0);
    assert_int_equal(run(w, "stop", NULL, NULL, &said), 0);
    await_end(w);
}

/* ---- restart, stop, logs ---- */

static void a_restart_ends_all_processes_and_starts_with_the_settings_of_now(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);
    AUTO_FREE char *moved = mem_printf("%s/run/moved.sock", w->folder);

    start(w);
    write_settings(w, "SANDCGI_LISTEN=@/run/moved.sock\n");
    assert_int_equal(run(w, "restart", NULL, NULL, &said), 0);
    assert_says(&said, "restarted\n");
    assert_int_equal(count_in_log(w, " starts audit=start"), 2);
    assert_int_equal(access(moved, F_OK), 0);
    assert_int_equal(kill(w->pid, 0), 0); /* a container would end with it */
    assert_int_equal(run(w, "stop", "--wait", "20s", &said), 0);
    assert_says(&said, "stopped\n");
    await_end(w);
    assert_int_equal(run(w, "stop", NULL, NULL, &said), 1);
    assert_says(&said, "no server of ");
}

/* The process of that name among the descendants; 0: there is none. */
static pid_t find_descendant(pid_t of, const char *name)
{
    AUTO_FREE char *path = mem_printf("/proc/%1$d/task/%1$d/children", (int)of);
    AUTO_BUF struct buf list = BUF_INIT(4096), comm = BUF_INIT(64);
    struct err e = ERR_INIT;
    pid_t found = 0;
    uint64_t pid;

    assert_works(fdio_read_file(path, &list, &e), e);
    for (char *rest = list.data, *word; !found && (word = strsep(&rest, " "));) {
        AUTO_FREE char *of_name = mem_printf("/proc/%s/comm", word);
        if (parse_u64(word, 1, INT32_MAX, &pid) < 0)
            continue;
        buf_reset(&comm);
        if (fdio_read_file(of_name, &comm, &e) == 0 && strcmp(buf_str(&comm), name) == 0)
            found = (pid_t)pid;
        else
            found = find_descendant((pid_t)pid, name);
    }
    return found;
}

static pid_t begin(const struct world *w, const char *command)
{
    pid_t pid = fork();

    if (pid == 0)
        become(w, command, NULL, NULL);
    return pid;
}

static int status_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* As if it had a call. */
static void a_stop_in_the_place_of_a_restart_waits_as_any_does_for_however_many(void **state)
{
    struct world *w = *state;
    pid_t stops[12];

    start(w);
    const pid_t worker = find_descendant(w->pid, "sandcgi-worker\n");
    assert_true(worker > 0 && kill(worker, SIGSTOP) == 0);
    const pid_t restart = begin(w, "restart");
    await_log(w, "audit=restart", 1);
    for (size_t i = 0; i < ARRAY_LEN(stops); i++)
        stops[i] = begin(w, "stop");
    await_log(w, "audit=stop", 1);
    assert_int_equal(status_of(restart), 1);
    poll(NULL, 0, 1000);
    for (size_t i = 0; i < ARRAY_LEN(stops); i++)
        assert_int_equal(waitpid(stops[i], NULL, WNOHANG), 0);
    assert_int_equal(count_in_log(w, "not waiting any longer"), 0);
    kill(worker, SIGCONT);
    for (size_t i = 0; i < ARRAY_LEN(stops); i++)
        assert_int_equal(status_of(stops[i]), 0);
    await_end(w);
    assert_int_equal(count_in_log(w, "audit=start"), 1);
}

static void a_stop_works_whatever_is_wrong_with_the_settings(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);

    start(w);
    write_settings(w, "SANDBOX_MEMROY=1g\nFILE_SECRET=short\nnonsense\n");
    assert_int_equal(run(w, "stop", NULL, NULL, &said), 0);
    await_end(w);
}

static void the_log_is_shown_from_its_file_or_from_where_standard_error_goes(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);
    AUTO_FREE char *other = mem_printf("%s/other-log", w->folder);

    start(w);
    assert_int_equal(run(w, "logs", "--lines", "1000", &said), 0);
    assert_says(&said, " starts audit=start");
    assert_int_equal(run(w, "stop", NULL, NULL, &said), 0);
    await_end(w);
    assert_int_equal(run(w, "logs", NULL, NULL, &said), 1);
    unit_write_file(other, "one\ntwo\n", 8);
    write_settings(w, "SANDCGI_LOG=@/other-log\n");
    assert_int_equal(run(w, "logs", "--lines", "1", &said), 0);
    assert_string_equal(buf_str(&said), "two\n");
    assert_int_equal(run(w, "logs", "--lines", "few", &said), 2);
}

/* The socket's mode keeps others away; so does the server, if that is changed. */
static void another_account_may_not_order(void **state)
{
    struct world *w = *state;
    AUTO_FREE char *socket = mem_printf("%s/run/control.sock", w->folder);
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);
    struct stat st;
    int status;

    if (geteuid() != 0)
        skip();
    start(w);
    assert_int_equal(stat(socket, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(chmod(socket, 0666), 0);
    pid_t pid = fork();
    if (pid == 0) {
        AUTO_BUF struct buf answer = BUF_INIT(4096);
        struct err e = ERR_INIT;
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(2);
        int fd = sock_connect_unix(socket, &e);
        if (fd < 0 || sock_recv_message(fd, &answer, NULL, deadline_in_ms(WAIT_MS), &e) < 0)
            _exit(3);
        _exit(strcmp(buf_str(&answer), "refused this needs root, or the server's account") != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(run(w, "stop", NULL, NULL, &said), 0);
    await_end(w);
}

/* ---- words ---- */

static void wrong_words_are_repeated_with_the_nearest_right_ones(void **state)
{
    static const struct {
        const char *command, *option;
        int status;
        const char *words;
    } rows[] = {
        {"frobnicate", NULL, 2, "there is no command frobnicate; see sandcgi --help"},
        {"srve", NULL, 2, "there is no command srve; there is serve;"},
        {"status", "--jsno", 2, "status does not take --jsno; see sandcgi status --help"},
        {"reload", "--wait", 2, "--wait of reload needs a value"},
        {"reload", "--config", 2, "--config needs a value"},
        {"backup", "--help", 0, "Usage: sandcgi backup FILE"},
        {"purge", "-h", 0, "--older-than"},
        {"stop", "--help", 0, "--wait"},
        {"serve", "--help", 0, "Usage: sandcgi serve"},
        {"settings", "--help", 0, "--man"},
        {"restore", "--help", 0, "  --skip-existing         leave"},
    };
    struct world *w = *state;
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(run(w, rows[i].command, rows[i].option, NULL, &said), rows[i].status);
        assert_says(&said, rows[i].words);
    }
}

#define SERVED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static const struct CMUnitTest tests[] = {
    SERVED(a_reload_tells_the_outcome),
    SERVED(check_start_reload_and_restart_refuse_the_same_with_the_same_sentence),
    cmocka_unit_test(a_check_that_finds_no_room_for_a_process_says_so),
    SERVED(a_check_knows_where_the_brokers_sockets_cannot_be),
    SERVED(an_engine_that_does_not_answer_is_a_note_for_check_start_and_reload),
    SERVED(a_restart_ends_all_processes_and_starts_with_the_settings_of_now),
    SERVED(a_stop_in_the_place_of_a_restart_waits_as_any_does_for_however_many),
    SERVED(settings_that_change_after_they_were_checked_end_nothing),
    SERVED(a_stop_works_whatever_is_wrong_with_the_settings),
    SERVED(the_log_is_shown_from_its_file_or_from_where_standard_error_goes),
    SERVED(another_account_may_not_order),
    SERVED(wrong_words_are_repeated_with_the_nearest_right_ones),
};
UNIT_TESTS(tests)
