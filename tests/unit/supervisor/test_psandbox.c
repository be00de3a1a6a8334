/* A persistent sandbox's process: what it does with commands and cells, and when it ends. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/protocol/run_body.h"
#include "common/protocol/run_id.h"
#include "common/records/kept_runs.h"
#include "common/records/psandbox_record.h"
#include "common/records/run_lock.h"
#include "common/rpc/json.h"
#include "common/supervisor/request.h"
#include "common/supervisor/supervisor.h"
#include "tests/fakes/fake_psandbox.h"
#include "tests/unit/sandbox/sandbox_fixture.h"
#include "tests/unit/unit.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define RUN     "0123456789abcdef01234567"
#define SANDBOX PSANDBOX_ID_PREFIX RUN
#define LONG    20000 /* ms: what should come comes within this */

struct world {
    struct fixture *f;
    struct broker_config config;
    struct engine_runner runner;
    int listen_fd; /* where the broker listens */
    char socket[400];
    pid_t pid;
    int channel; /* the main process's end */
    int creator; /* the first caller's */
};

static int set_up(void **state)
{
    struct world *w = mem_alloc(sizeof *w);
    struct err e = ERR_INIT;
    void *fixture = NULL;

    fixture_setup(&fixture);
    fake_psandbox_reset();
    *w = (struct world){.f = fixture, .channel = -1, .creator = -1};
    w->config = (struct broker_config){
        .path = w->socket,
        .instance = "test",
        .runtime = "",
        .limits = {.persistent = {.idle_ms = 600000, .total_ms = 3600000, .images = ""},
                   .timeout_ms = 30000,
                   .timeout_max_ms = 60000,
                   .code_max = 4096,
                   .stdin_max = 4096,
                   .env_max = 1024,
                   .output_keep = 1024,
                   .output_max = 100000,
                   .result_ttl_ms = 3600 * 1000},
        .sandbox_uid = fixture_uid(),
        .sandbox_gid = fixture_gid()};
    w->runner = (struct engine_runner){.language = (char *)(uintptr_t) "python",
                                       .image = (char *)(uintptr_t) "runner:latest",
                                       .image_id = (char *)(uintptr_t) "sha256:1",
                                       .protocol = 2};
    snprintf(w->socket, sizeof w->socket, "%s/s", w->f->dir);
    w->listen_fd = sock_listen(w->socket, NULL, &e);
    assert_true(w->listen_fd >= 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    void *fixture = w->f;

    if (w->pid > 0)
        kill(w->pid, SIGKILL);
    auto_close_fd(&w->channel);
    auto_close_fd(&w->creator);
    auto_close_fd(&w->listen_fd);
    free(w);
    return fixture_teardown(&fixture);
}

/* ---- being the main process, and its callers ---- */

/* A connection to the broker; the other end goes to *out_theirs. */
static int connect_to(const struct world *w, int *out_theirs)
{
    struct err e = ERR_INIT;
    int fd = sock_connect_unix(w->socket, &e);

    assert_true(fd >= 0);
    *out_theirs = accept4(w->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(*out_theirs >= 0);
    return fd;
}

static void be_psandbox(const struct world *w, const json_t *head, int channel, int connection)
{
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
    struct err e = ERR_INIT;
    struct supervisor_start start = {
        .config = &w->config,
        .psandbox = true,
        .root = &w->f->root,
        .runner = &w->runner,
        .helpers_path = "/tools",
        .channel = channel,
        .call = {.head = head, .connection = connection, .sandbox_dir = sandbox_dir}};

    assert_works(sandbox_name(&w->f->root, "ann", "chat", sandbox_dir, &e), e);
    memcpy(start.container_id, RUN, sizeof start.container_id);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    supervisor_main(&start);
    exit(0); /* not _exit: leaks are looked for */
}

/* As a caller does: code (or none), commands as "args", "stdin", "cwd". */
static void send_body(int fd, const json_t *body)
{
    const json_t *list = json_object_get(body, "args");
    const char *code = json_get_string(body, "code"), *input = json_get_string(body, "stdin");
    struct run_text args[PSANDBOX_COMMANDS_MAX + 1];
    const struct run_request request = {.code = {code, code ? strlen(code) : 0},
                                        .input = {input, input ? strlen(input) : 0},
                                        .args = args,
                                        .n_args = json_array_size(list)};
    AUTO_BUF struct buf message = BUF_INIT(WIRE_MESSAGE_MAX);
    struct err e = ERR_INIT;

    for (size_t i = 0; i < request.n_args; i++) {
        const json_t *arg = json_array_get(list, i);
        args[i] = (struct run_text){json_string_value(arg), json_string_length(arg)};
    }
    assert_works(run_body_write(&request, json_get_string(body, "cwd"), &message, &e), e);
    assert_int_equal(send(fd, message.data, message.len, MSG_NOSIGNAL), message.len);
}

static void go(struct world *w, const json_t *head, const json_t *body)
{
    int pair[2], theirs;

    w->creator = connect_to(w, &theirs);
    if (body)
        send_body(w->creator, body);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    fflush(NULL);
    w->pid = fork();
    if (w->pid == 0) {
        close(pair[0]);
        auto_close_fd(&w->creator);
        auto_close_fd(&w->listen_fd);
        be_psandbox(w, head, pair[1], theirs);
    }
    close(pair[1]);
    close(theirs);
    w->channel = pair[0];
}

/* The next message; NULL at the end of the connection. */
static json_t *hear(int fd)
{
    struct err e = ERR_INIT;
    json_t *message = wire_recv(fd, NULL, deadline_in_ms(LONG), &e);

    if (!message && e.kind != ERR_CANCELLED)
        fail_msg("no message: %s", e.text);
    return message;
}

/* The last message's result; closes fd. */
static json_t *result_of(int fd)
{
    json_t *result = NULL;

    while (!result) {
        json_auto_t *message = hear(fd);
        assert_non_null(message);
        if (json_object_get(message, "error"))
            fail_msg("an error: %s", json_get_string(json_object_get(message, "error"), "text"));
        result = json_incref(json_object_get(message, "result")); /* the message goes */
    }
    close(fd);
    return result;
}

static void expect_error(int fd, enum err_kind kind, const char *part)
{
    json_auto_t *message = hear(fd);
    const json_t *error = json_object_get(message, "error");

    assert_non_null(error);
    assert_string_equal(json_get_string(error, "kind"), err_kind_name(kind));
    assert_contains(json_get_string(error, "text"), part);
    close(fd);
}

static void create(struct world *w)
{
    json_auto_t *head = json_pack("{s:s, s:s, s:s, s:s}", "op", "create_psandbox", "tenant", "ann",
                                  "conversationId", "chat", "language", "python");
    go(w, head, NULL);
    json_auto_t *row = result_of(TAKE_FD(w->creator));
    assert_string_equal(json_get_string(row, "sandboxId"), SANDBOX);
    assert_string_equal(json_get_string(row, "status"), "running");
    assert_string_equal(json_get_string(row, "conversationId"), "chat");
    assert_null(json_object_get(row, "tenant"));
}

static int hand(const struct world *w, json_t *take_head, json_t *take_body)
{
    struct err e = ERR_INIT;
    json_auto_t *message = json_pack("{s:s, s:o, s:i}", "do", "hand", "head", take_head, "queueMs",
                                     0);
    json_auto_t *body = take_body;
    int theirs;
    int fd = connect_to(w, &theirs);

    if (body)
        send_body(fd, body);
    assert_works(wire_send(w->channel, message, theirs, &e), e);
    close(theirs);
    return fd;
}

static json_t *head_of(const char *op)
{
    return json_pack("{s:s, s:s, s:s}", "op", op, "tenant", "ann", "sandboxId", SANDBOX);
}

static json_t *exec_body(json_t *take_commands)
{
    return json_pack("{s:o}", "args", take_commands);
}

static json_t *cell_body(const char *code)
{
    return json_pack("{s:s}", "code", code);
}

/* commands as a JSON array's text. */
static int exec_with(const struct world *w, const char *commands, json_t *take_more)
{
    json_t *head = head_of("exec");
    json_auto_t *more = take_more;

    if (more)
        json_object_update(head, more);
    return hand(w, head, exec_body(json_loads(commands, 0, NULL)));
}

static int exec(const struct world *w, const char *commands)
{
    return exec_with(w, commands, NULL);
}

/* Of the last result row. */
/* Waits until the fake has counted that many. */
static void await_count(const int *count, int n)
{
    const struct deadline end = deadline_in_ms(20000);

    while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < n) {
        assert_false(deadline_passed(end));
        poll(NULL, 0, 5);
    }
}

static void expect_row(const json_t *result, size_t n, const char *status, const char *output)
{
    const json_t *rows = json_object_get(result, "results");

    assert_int_equal(json_array_size(rows), n);
    const json_t *row = json_array_get(rows, n - 1);
    assert_string_equal(json_get_string(row, "status"), status);
    assert_string_equal(json_get_string(row, "stdout"), output);
}

static void expect_status_of(const json_t *result, const char *status)
{
    assert_string_equal(json_get_string(result, "status"), status);
}

static void expect_exec(const struct world *w, const char *commands, const char *output)
{
    json_auto_t *result = result_of(exec(w, commands));
    size_t n = json_array_size(json_object_get(result, "results"));

    expect_row(result, n, "ok", output);
    assert_true(json_get_bool(result, "success", 0));
}

static json_t *row_of(const struct world *w, const char *tenant)
{
    struct err e = ERR_INIT;

    return psandbox_record_row(&w->f->root, SANDBOX, tenant, &e);
}

static void expect_status(const struct world *w, const char *status)
{
    struct deadline end = deadline_in_ms(LONG);

    for (;;) {
        json_auto_t *row = row_of(w, "ann");
        if (row && strcmp(json_get_string(row, "status"), status) == 0)
            return;
        if (deadline_passed(end))
            fail_msg("it does not become %s", status);
        poll(NULL, 0, 10);
    }
}

/* It ends by itself, in good order; nothing is left. */
static void expect_end(struct world *w, const char *status)
{
    struct deadline end = deadline_in_ms(LONG);
    int how = -1;
    pid_t pid = 0;

    while ((pid = waitpid(w->pid, &how, WNOHANG)) == 0 && !deadline_passed(end))
        poll(NULL, 0, 5);
    assert_int_equal(pid, w->pid);
    w->pid = 0;
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    assert_int_equal(fake_psandbox->alive, 0);
    assert_false(run_lock_reap(w->f->root.fd, RUN));
    if (status)
        expect_status(w, status);
}

static void close_psandbox(struct world *w)
{
    char name[SANDBOX_NAME_LEN + 1];
    struct err e = ERR_INIT;
    json_auto_t *row = result_of(hand(w, head_of("close_psandbox"), NULL));

    assert_string_equal(json_get_string(row, "status"), "closed");
    assert_works(sandbox_name(&w->f->root, "ann", "chat", name, &e), e);
    assert_false(sandbox_is_held(&w->f->root, name)); /* the next call may delete it */
    expect_end(w, "closed");
}

/* ---- commands ---- */

static void commands_run_one_after_the_other(void **state)
{
    struct world *w = *state;

    create(w);
    expect_status(w, "running");
    json_auto_t *result = result_of(
        exec(w, "[\"echo one\", \"echo two >&2; exit 3\", \"echo no\"]"));
    expect_row(result, 2, "error", "");
    const json_t *row = json_array_get(json_object_get(result, "results"), 1);
    assert_string_equal(json_get_string(row, "stderr"), "two\n");
    assert_int_equal(json_get_integer(row, "exitCode", -1), 3);
    assert_false(json_get_bool(result, "success", 1));
    close_psandbox(w);
}

static void all_run_where_failures_do_not_stop_them(void **state)
{
    struct world *w = *state;

    create(w);
    json_auto_t *result = result_of(
        exec_with(w, "[\"exit 1\", \"echo yes\"]", json_pack("{s:b}", "stopAtFailure", 0)));
    expect_row(result, 2, "ok", "yes\n");
    assert_false(json_get_bool(result, "success", 1));
    close_psandbox(w);
}

static void files_that_change_are_listed(void **state)
{
    struct world *w = *state;

    create(w);
    json_auto_t *result = result_of(exec(w, "[\"echo hello > note.txt\"]"));
    const json_t *file = json_array_get(json_object_get(result, "files"), 0);
    assert_string_equal(json_get_string(file, "name"), "note.txt");
    assert_string_equal(json_get_string(file, "change"), "created");
    assert_contains(json_get_string(file, "url"), "/note.txt");
    expect_exec(w, "[\"cat note.txt\"]", "hello\n");
    close_psandbox(w);
}

static void what_runs_in_the_background_lives_on(void **state)
{
    struct world *w = *state;

    create(w);
    expect_exec(w, "[\"sleep 600 >/dev/null 2>&1 & echo $! > pid; echo begun\"]", "begun\n");
    expect_exec(w, "[\"kill -0 $(cat pid) && echo alive\"]", "alive\n");
    expect_exec(w, "[\"kill $(cat pid)\"]", "");
    close_psandbox(w);
}

static void several_calls_share_it(void **state)
{
    struct world *w = *state;

    create(w);
    int slow = exec(w, "[\"while [ ! -e go ]; do sleep 0.05; done; echo slow\"]");
    expect_exec(w, "[\"touch go; echo quick\"]", "quick\n");
    json_auto_t *result = result_of(slow);
    expect_row(result, 1, "ok", "slow\n");
    close_psandbox(w);
}

static void too_many_calls_are_busy(void **state)
{
    struct world *w = *state;
    int fds[8];

    create(w);
    for (int i = 0; i < 8; i++)
        fds[i] = exec(w, "[\"sleep 600\"]");
    expect_error(exec(w, "[\"echo no\"]"), ERR_BUSY, "too many");
    int closer = hand(w, head_of("close_psandbox"), NULL);
    for (int i = 0; i < 8; i++)
        expect_error(fds[i], ERR_NOT_FOUND, "this sandbox is closed");
    json_auto_t *row = result_of(closer);
    assert_string_equal(json_get_string(row, "status"), "closed");
    expect_end(w, "closed");
}

static void its_calls_have_a_bound_of_their_own(void **state)
{
    struct world *w = *state;
    int fds[20], closed = 0, busy = 0;

    create(w);
    kill(w->pid, SIGSTOP); /* so that it finds all of them at once */
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = hand(w, head_of("close_psandbox"), NULL);
    kill(w->pid, SIGCONT);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        json_auto_t *message = hear(fds[i]);
        closed += json_object_get(message, "result") != NULL;
        busy += json_object_get(message, "error") != NULL;
        close(fds[i]);
    }
    assert_int_equal(closed, 16);
    assert_int_equal(busy, 4);
    expect_end(w, "closed");
}

static void a_slow_listing_of_files_holds_up_no_other_call(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;
    json_auto_t *cancel = json_pack("{s:b}", "cancel", 1);

    create(w);
    expect_exec(w, "[\"i=0; while [ $i -lt 300 ]; do : > f$i; i=$((i+1)); done\"]", "");
    int running = exec_with(w, "[\"echo early; while [ -e f7 ]; do sleep 0.05; done; echo late\"]",
                            json_pack("{s:b}", "live", 1));
    json_decref(hear(running));
    fake_psandbox->listing_ms = 600000;
    int slow = exec(w, "[\"echo slow\"]");
    int unwanted = exec(w, "[\"echo no\"]");
    await_count(&fake_psandbox->listings, 2);
    assert_works(wire_send(unwanted, cancel, -1, &e), e);
    json_auto_t *none = result_of(unwanted);
    expect_status_of(none, "cancelled");
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    assert_works(sandbox_find(&w->f->root, "ann", "chat", &sb, &e), e);
    assert_int_equal(unlinkat(sb.fd, "f7", 0), 0);
    json_auto_t *late = hear(running);
    assert_string_equal(json_get_string(json_object_get(late, "live"), "stdout"), "late\n");
    fake_psandbox->listing_ms = 0;
    json_auto_t *first = result_of(running);
    expect_row(first, 1, "ok", "early\nlate\n");
    assert_int_equal(json_array_size(json_object_get(first, "files")), 1); /* f7 is deleted */
    json_auto_t *second = result_of(slow);
    expect_row(second, 1, "ok", "slow\n");
    sandbox_close(&sb);
    close_psandbox(w);
}

static void a_sandbox_closes_while_its_files_are_listed(void **state)
{
    struct world *w = *state;

    create(w);
    expect_exec(w, "[\"i=0; while [ $i -lt 300 ]; do : > f$i; i=$((i+1)); done\"]", "");
    fake_psandbox->listing_ms = 60000;
    int slow = exec(w, "[\"echo no\"]");
    await_count(&fake_psandbox->listings, 1);
    close_psandbox(w);
    expect_error(slow, ERR_NOT_FOUND, "is closed");
}

static void a_time_limit_ends_the_command_only(void **state)
{
    struct world *w = *state;

    create(w);
    json_auto_t *result = result_of(exec_with(w, "[\"echo begun; sleep 600\", \"echo no\"]",
                                              json_pack("{s:i}", "timeoutMs", 300)));
    expect_row(result, 1, "timeout", "begun\n");
    expect_exec(w, "[\"echo still here\"]", "still here\n");
    close_psandbox(w);
}

static void its_caller_may_cancel_it(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;
    json_auto_t *word = json_pack("{s:b}", "cancel", 1);

    create(w);
    int fd = exec(w, "[\"sleep 600\"]");
    assert_works(wire_send(fd, word, -1, &e), e);
    json_auto_t *result = result_of(fd);
    expect_row(result, 1, "cancelled", "");
    int left = exec_with(w, "[\"echo $$ > pid; exec sleep 600\"]",
                         json_pack("{s:b}", "cancelOnDisconnect", 1));
    expect_exec(w, "[\"while [ ! -s pid ]; do sleep 0.05; done\"]", "");
    close(left);
    expect_exec(w, "[\"while kill -0 $(cat pid) 2>/dev/null; do sleep 0.05; done; echo gone\"]",
                "gone\n");
    close_psandbox(w);
}

/* ---- runs that outlive their calls ---- */

/* A get_run or cancel_run; more is merged into its head. */
static int poll_run(const struct world *w, const char *op, const char *run_id, json_t *take_more)
{
    json_t *head = json_pack("{s:s, s:s, s:s}", "op", op, "tenant", "ann", "runId", run_id);
    json_auto_t *more = take_more;

    json_object_update(head, more);
    return hand(w, head, NULL);
}

/* Of a result that says that its run goes on. */
static const char *running_id(const json_t *result)
{
    expect_status_of(result, "running");
    assert_true(json_get_integer(result, "expiresAt", 0) > 0);
    assert_string_equal(json_get_string(result, "conversationId"), "chat");
    const char *id = json_get_string(result, "runId");
    assert_non_null(id);
    assert_true(psandbox_has_run(RUN, id));
    assert_string_not_equal(id, RUN);
    return id;
}

/* The main process is told that this run goes on; NULL: that none does. */
static void expect_told(const struct world *w, const char *run_id)
{
    json_auto_t *message = hear(w->channel);
    const json_t *runs = json_object_get(message, "runs");

    assert_string_equal(json_get_string(message, "is"), "runs");
    assert_int_equal(json_array_size(runs), run_id ? 1 : 0);
    if (!run_id)
        return;
    assert_string_equal(json_get_string(json_array_get(runs, 0), "runId"), run_id);
    assert_string_equal(json_get_string(json_array_get(runs, 0), "language"), "sh");
}

static void a_command_outlives_the_wait_of_its_caller(void **state)
{
    static const char *const commands = "[\"echo early; while [ ! -e go ]; do sleep 0.05; done; "
                                        "echo late; echo x > made\", \"echo last\"]";
    struct world *w = *state;

    create(w);
    json_auto_t *first = result_of(exec_with(w, commands, json_pack("{s:i}", "waitMs", 300)));
    const char *id = running_id(first);
    assert_string_equal(json_get_string(first, "output"), "early\n");
    assert_int_equal(json_get_integer(first, "nextByte", 0), 6);
    int live = poll_run(w, "get_run", id, json_pack("{s:i, s:b}", "waitMs", 20000, "live", 1));
    int waits = poll_run(w, "get_run", id,
                         json_pack("{s:i, s:i}", "waitMs", 20000, "sinceByte", 6));
    expect_exec(w, "[\"touch go\"]", "");
    json_auto_t *more = result_of(waits);
    assert_contains(json_get_string(more, "newOutput"), "late\n");
    json_auto_t *piece = hear(live);
    assert_string_equal(json_get_string(json_object_get(piece, "live"), "stdout"), "early\n");
    json_auto_t *end = result_of(live);
    expect_row(end, 2, "ok", "last\n");
    assert_true(json_get_bool(end, "success", 0));
    assert_string_equal(json_get_string(end, "output"), "early\nlate\nlast\n");
    json_auto_t *again = result_of(poll_run(w, "get_run", id, json_pack("{s:i}", "sinceByte", 6)));
    expect_status_of(again, "ok");
    assert_string_equal(json_get_string(again, "newOutput"), "late\nlast\n");
    close_psandbox(w);
}

static void one_whose_caller_leaves_is_kept(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;
    char id[RUN_ID_LEN + 1];

    create(w);
    psandbox_run_id_write(RUN, 1, id);
    close(exec(w, "[\"while [ ! -e go ]; do sleep 0.05; done; echo done\"]"));
    json_auto_t *rows = NULL;
    for (int i = 0; i < 100 && json_array_size(rows) == 0; i++) {
        poll(NULL, 0, 50);
        json_decref(rows);
        rows = kept_runs_list(&w->f->root, "ann", "chat", clock_unix_s(), &e);
    }
    assert_int_equal(json_array_size(rows), 1);
    const json_t *row = json_array_get(rows, 0);
    assert_string_equal(json_get_string(row, "runId"), id);
    assert_string_equal(json_get_string(row, "status"), "running");
    assert_string_equal(json_get_string(row, "language"), "sh");
    expect_exec(w, "[\"touch go\"]", "");
    json_auto_t *end = result_of(poll_run(w, "get_run", id, json_pack("{s:i}", "waitMs", 20000)));
    expect_row(end, 1, "ok", "done\n");
    expect_error(poll_run(w, "get_run", id, json_pack("{s:s}", "tenant", "eve")), ERR_NOT_FOUND,
                 "no such run");
    close_psandbox(w);
}

static void a_command_in_the_background_can_be_cancelled(void **state)
{
    struct world *w = *state;

    create(w);
    json_auto_t *first = result_of(
        exec_with(w, "[\"sleep 600\"]", json_pack("{s:b}", "background", 1)));
    const char *id = running_id(first);
    expect_told(w, id);
    expect_error(poll_run(w, "cancel_run", id, json_pack("{s:s}", "tenant", "eve")), ERR_NOT_FOUND,
                 "no such run");
    json_auto_t *end = result_of(poll_run(w, "cancel_run", id, NULL));
    expect_row(end, 1, "cancelled", "");
    expect_told(w, NULL);
    json_auto_t *again = result_of(poll_run(w, "get_run", id, NULL));
    expect_status_of(again, "cancelled");
    close_psandbox(w);
}

static void one_that_a_close_cuts_off_is_lost(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;

    create(w);
    json_auto_t *first = result_of(
        exec_with(w, "[\"sleep 600\"]", json_pack("{s:b}", "background", 1)));
    json_auto_t *head = json_pack("{s:s, s:s}", "tenant", "ann", "runId", running_id(first));
    close_psandbox(w);
    json_auto_t *end = kept_run_get(&w->f->root, head, deadline_in_ms(0), &e);
    expect_status_of(end, "lost");
    assert_contains(json_get_string(end, "reason"), "closed");
}

static void a_flood_is_cut_and_ended(void **state)
{
    struct world *w = *state;

    create(w);
    json_auto_t *result = result_of(exec(w, "[\"yes\"]"));
    const json_t *row = json_array_get(json_object_get(result, "results"), 0);
    const json_t *cut = json_object_get(json_object_get(row, "truncation"), "stdout");
    assert_string_equal(json_get_string(row, "status"), "output_limit");
    assert_true(json_get_bool(cut, "truncated", 0));
    assert_true(json_get_integer(cut, "kept", 0) <= 1024);
    close_psandbox(w);
}

static void output_is_told_while_it_comes(void **state)
{
    struct world *w = *state;

    create(w);
    int fd = exec_with(w, "[\"echo early; while [ ! -e go ]; do sleep 0.05; done; echo late\"]",
                       json_pack("{s:b}", "live", 1));
    json_auto_t *first = hear(fd);
    assert_string_equal(json_get_string(json_object_get(first, "live"), "stdout"), "early\n");
    expect_exec(w, "[\"touch go\"]", "");
    json_auto_t *second = hear(fd);
    assert_string_equal(json_get_string(json_object_get(second, "live"), "stdout"), "late\n");
    json_auto_t *result = result_of(fd);
    expect_row(result, 1, "ok", "early\nlate\n");
    close_psandbox(w);
}

static void its_log_can_be_read_before_and_after_its_end(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf log = BUF_INIT(OUTPUT_NEWEST);

    create(w);
    expect_exec(w, "[\"echo one\"]", "one\n");
    expect_exec(w, "[\"echo two\"]", "two\n");
    json_auto_t *logs = result_of(hand(w, head_of("psandbox_logs"), NULL));
    assert_string_equal(json_get_string(logs, "text"), "one\ntwo\n");
    close_psandbox(w);
    psandbox_record_read_log(&w->f->root, SANDBOX, &log);
    assert_string_equal(buf_str(&log), "one\ntwo\n");
}

static void nonsense_is_refused_and_harms_no_other_call(void **state)
{
    struct world *w = *state;
    json_t *foreign = head_of("exec");

    create(w);
    json_object_set_new(foreign, "tenant", json_string("bob"));
    expect_error(hand(w, foreign, exec_body(json_pack("[s]", "echo no"))), ERR_NOT_FOUND,
                 WIRE_NO_SUCH_SANDBOX);
    expect_error(hand(w, head_of("run"), cell_body("print no")), ERR_INVALID, "no such operation");
    expect_error(exec(w, "[]"), ERR_LIMIT, "commands");
    expect_error(exec_with(w, "[\"true\"]", json_pack("{s:i}", "timeoutMs", 99999999)), ERR_LIMIT,
                 "timeout");
    expect_error(hand(w, head_of("exec"), cell_body("print no")), ERR_LIMIT, "commands");
    int garbled = hand(w, head_of("exec"), NULL);
    assert_int_equal(write(garbled, "\0\0\0\2{}", 6), 6);
    expect_error(garbled, ERR_INVALID, "makes no sense");
    assert_null(row_of(w, "bob"));
    expect_exec(w, "[\"echo well\"]", "well\n");
    close_psandbox(w);
}

/* ---- when it ends ---- */

static void unused_it_is_paused_and_then_expires(void **state)
{
    struct world *w = *state;

    w->config.limits.persistent.pause_ms = 100;
    w->config.limits.persistent.idle_ms = 3000;
    create(w);
    expect_status(w, "paused");
    assert_true(fake_psandbox->paused);
    assert_int_equal(fake_psandbox->pauses, 1);
    expect_exec(w, "[\"echo awake\"]", "awake\n");
    expect_end(w, "expired");
    assert_int_equal(fake_psandbox->pauses, 2);
    json_auto_t *row = row_of(w, "ann");
    assert_contains(json_get_string(row, "reason"), "unused");
}

/* A file in its directory. */
static void touch(const struct world *w, const char *name)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct err e = ERR_INIT;

    assert_works(sandbox_find(&w->f->root, "ann", "chat", &sb, &e), e);
    AUTO_FD int fd = openat(sb.fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
}

static void a_command_keeps_it_from_pausing(void **state)
{
    struct world *w = *state;

    w->config.limits.persistent.pause_ms = 100;
    create(w);
    int running = exec_with(w, "[\"echo begun; while [ ! -e go ]; do sleep 0.05; done\"]",
                            json_pack("{s:b}", "live", 1));
    json_decref(hear(running));
    int pauses = fake_psandbox->pauses; /* it may have taken long to call */
    poll(NULL, 0, 1000);
    assert_int_equal(fake_psandbox->pauses, pauses);
    assert_false(fake_psandbox->paused);
    touch(w, "go");
    json_auto_t *result = result_of(running);
    expect_row(result, 1, "ok", "begun\n");
    close_psandbox(w);
}

static void an_engine_that_cannot_pause_is_asked_once(void **state)
{
    struct world *w = *state;

    fake_psandbox->no_pause = true;
    w->config.limits.persistent.pause_ms = 50;
    w->config.limits.persistent.idle_ms = 600;
    create(w);
    expect_end(w, "expired");
}

static void its_time_ends_even_what_runs(void **state)
{
    struct world *w = *state;

    w->config.limits.persistent.total_ms = 500;
    create(w);
    expect_error(exec(w, "[\"sleep 600\"]"), ERR_NOT_FOUND, "has expired (its time");
    expect_end(w, "expired");
}

static void a_container_that_goes_is_noticed(void **state)
{
    struct world *w = *state;

    create(w);
    int fd = exec(w, "[\"sleep 600\"]");
    await_count(&fake_psandbox->commands, 1);
    fake_psandbox_remove();
    expect_error(fd, ERR_LOST, "ended from outside");
    expect_end(w, "lost");
}

static void one_that_cannot_start_leaves_nothing(void **state)
{
    struct world *w = *state;
    json_auto_t *head = json_pack("{s:s, s:s, s:s, s:s}", "op", "create_psandbox", "tenant", "ann",
                                  "conversationId", "chat", "language", "python");

    fake_psandbox->failing = true;
    go(w, head, NULL);
    expect_error(TAKE_FD(w->creator), ERR_NOT_FOUND, "missing on the server");
    expect_end(w, NULL);
    assert_null(row_of(w, "ann"));
}

static void one_whose_creator_leaves_ends(void **state)
{
    struct world *w = *state;
    json_auto_t *head = json_pack("{s:s, s:s, s:s, s:s}", "op", "create_psandbox", "tenant", "ann",
                                  "conversationId", "chat", "language", "python");

    fake_psandbox->start_ms = 600000;
    go(w, head, NULL);
    auto_close_fd(&w->creator);
    expect_end(w, NULL);
}

static void a_server_that_stops_lets_commands_end(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;
    json_auto_t *word = json_pack("{s:s}", "do", "end");

    create(w);
    int fd = exec(w, "[\"while [ ! -e go ]; do sleep 0.05; done; echo done\"]");
    int other = exec(w, "[\"sleep 0.3; touch go\"]");
    await_count(&fake_psandbox->commands, 2);
    assert_works(wire_send(w->channel, word, -1, &e), e);
    auto_close_fd(&w->channel);
    json_auto_t *result = result_of(fd);
    expect_row(result, 1, "ok", "done\n");
    json_decref(result_of(other));
    expect_end(w, "closed");
}

static void it_goes_on_under_the_next_main_process(void **state)
{
    struct world *w = *state;

    create(w);
    auto_close_fd(&w->channel);
    struct pollfd p = {.fd = w->listen_fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, LONG), 1);
    w->channel = accept4(w->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    json_auto_t *head = hear(w->channel);
    assert_string_equal(json_get_string(head, "op"), "adopt");
    assert_string_equal(json_get_string(head, "call"), "create_psandbox");
    assert_string_equal(json_get_string(head, "runId"), RUN);
    assert_string_equal(json_get_string(head, "tenant"), "ann");
    int64_t ago_ms = clock_mono_ms() - json_get_integer(head, "usedMs", 0);
    assert_true(ago_ms >= 0 && ago_ms < 2 * LONG);
    expect_exec(w, "[\"echo again\"]", "again\n");
    close_psandbox(w);
}

static void one_whose_process_dies_is_lost(void **state)
{
    struct world *w = *state;

    create(w);
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
    w->pid = 0;
    expect_status(w, "lost");
}

/* ---- sessions ---- */

static json_t *cell_head(void)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "op", "session", "tenant", "ann", "conversationId",
                     "chat", "language", "python");
}

static void expect_cell(json_t *take_result, const char *status, bool started, bool lost)
{
    json_auto_t *result = take_result;

    assert_string_equal(json_get_string(result, "status"), status);
    assert_int_equal(json_get_bool(result, "sessionStarted", -1), started);
    assert_int_equal(json_get_bool(result, "stateLost", -1), lost);
    assert_int_equal(json_object_get(result, "sessionNote") != NULL, lost);
    assert_string_equal(json_get_string(result, "sandboxId"), SANDBOX);
}

static void expect_language(const struct world *w, const char *language)
{
    json_auto_t *row = row_of(w, "ann");

    assert_string_equal(json_get_string(row, "language"), language);
}

static json_t *cell(struct world *w, const char *code)
{
    return result_of(hand(w, cell_head(), cell_body(code)));
}

static void begin_session(struct world *w, const char *code)
{
    json_auto_t *head = cell_head();
    json_auto_t *body = cell_body(code);

    go(w, head, body);
}

static void cells_are_worked_on_in_one_interpreter(void **state)
{
    struct world *w = *state;

    begin_session(w, "print one");
    json_t *first = result_of(TAKE_FD(w->creator));
    assert_string_equal(json_get_string(first, "stdout"), "one\n");
    expect_cell(first, "ok", true, false);
    expect_cell(cell(w, "print two"), "ok", false, false);
    expect_cell(cell(w, "exit 3"), "error", false, false);
    assert_int_equal(fake_psandbox->commands, 1);
    close_psandbox(w);
}

static json_t *cell_in(struct world *w, const char *language, const char *code)
{
    json_t *head = cell_head();

    json_object_set_new(head, "language", json_string(language));
    return result_of(hand(w, head, cell_body(code)));
}

/* A reset names one of them; then the close ends it all. */
static void two_languages_have_interpreters_of_their_own_in_it(void **state)
{
    struct world *w = *state;
    json_t *reset = head_of("close_psandbox");

    begin_session(w, "print one");
    expect_cell(result_of(TAKE_FD(w->creator)), "ok", true, false);
    expect_cell(cell_in(w, "typescript", "print two"), "ok", true, false);
    expect_cell(cell_in(w, "typescript", "print three"), "ok", false, false);
    expect_cell(cell(w, "print four"), "ok", false, false);
    assert_int_equal(fake_psandbox->commands, 2);
    expect_language(w, "python typescript");
    expect_cell(cell(w, "die"), "error", false, true);
    expect_cell(cell_in(w, "typescript", "print five"), "ok", false, false);
    json_object_set_new(reset, "language", json_string("typescript"));
    json_decref(result_of(hand(w, reset, NULL)));
    expect_language(w, "python");
    expect_cell(cell(w, "print six"), "ok", true, false);
    expect_cell(cell_in(w, "typescript", "print seven"), "ok", true, false);
    close_psandbox(w);
}

static void an_interpreter_may_end_while_files_are_listed(void **state)
{
    struct world *w = *state;

    begin_session(w, "print one");
    json_decref(result_of(TAKE_FD(w->creator)));
    expect_exec(w, "[\"i=0; while [ $i -lt 300 ]; do : > f$i; i=$((i+1)); done\"]", "");
    fake_psandbox->listing_ms = 200;
    int first = hand(w, cell_head(), cell_body("fade"));
    int second = hand(w, cell_head(), cell_body("print two"));
    expect_cell(result_of(first), "ok", false, false);
    expect_cell(result_of(second), "ok", true, true);
    fake_psandbox->listing_ms = 0;
    close_psandbox(w);
}

static void a_cell_that_is_given_up_while_files_are_listed_makes_room(void **state)
{
    struct world *w = *state;

    begin_session(w, "print one");
    json_decref(result_of(TAKE_FD(w->creator)));
    expect_exec(w, "[\"i=0; while [ $i -lt 300 ]; do : > f$i; i=$((i+1)); done\"]", "");
    fake_psandbox->listing_ms = 600000;
    int first = hand(w, cell_head(), cell_body("print no"));
    int second = hand(w, cell_head(), cell_body("print two"));
    await_count(&fake_psandbox->listings, 1);
    fake_psandbox->listing_ms = 0;
    close(first);
    expect_cell(result_of(second), "ok", false, false);
    close_psandbox(w);
}

static void an_interpreter_that_ends_says_that_its_state_is_lost(void **state)
{
    struct world *w = *state;

    begin_session(w, "print one");
    json_decref(result_of(TAKE_FD(w->creator)));
    expect_cell(cell(w, "die"), "error", false, true);
    expect_cell(cell(w, "print new"), "ok", true, false);
    assert_int_equal(fake_psandbox->commands, 2);
    close_psandbox(w);
}

static void a_cell_beyond_its_time_loses_the_state(void **state)
{
    struct world *w = *state;
    json_t *head = cell_head();

    begin_session(w, "print one");
    json_decref(result_of(TAKE_FD(w->creator)));
    json_object_set_new(head, "timeoutMs", json_integer(200));
    int slow = hand(w, head, cell_body("hang"));
    int next = hand(w, cell_head(), cell_body("print next"));
    expect_cell(result_of(slow), "timeout", false, true);
    expect_cell(result_of(next), "ok", true, false);
    close_psandbox(w);
}

static void an_interpreter_that_ends_between_cells_is_told_with_the_next(void **state)
{
    struct world *w = *state;

    begin_session(w, "print one");
    json_decref(result_of(TAKE_FD(w->creator)));
    expect_cell(cell(w, "fade"), "ok", false, false);
    json_t *next = cell(w, "print new");
    assert_contains(json_get_string(next, "sessionNote"), "exit code 1");
    expect_cell(next, "ok", true, true);
    expect_cell(cell(w, "print again"), "ok", false, false);
    close_psandbox(w);
}

static void a_cell_outlives_the_wait_of_its_caller(void **state)
{
    struct world *w = *state;
    json_t *head = cell_head();

    begin_session(w, "print one");
    json_decref(result_of(TAKE_FD(w->creator)));
    json_object_set_new(head, "waitMs", json_integer(50));
    json_auto_t *first = result_of(hand(w, head, cell_body("hang")));
    json_auto_t *end = result_of(poll_run(w, "cancel_run", running_id(first), NULL));
    expect_status_of(end, "cancelled");
    close_psandbox(w);
}

static void one_that_ended_with_an_unanswered_call_is_told_with_the_next(void **state)
{
    struct world *w = *state;

    begin_session(w, "print one");
    json_decref(result_of(TAKE_FD(w->creator)));
    json_t *head = cell_head();
    json_object_set_new(head, "cancelOnDisconnect", json_true());
    close(hand(w, head, cell_body("hang")));
    json_t *next = cell(w, "print new");
    assert_contains(json_get_string(next, "sessionNote"), "cancelled");
    expect_cell(next, "ok", true, true);
    expect_cell(cell(w, "print again"), "ok", false, false);
    close_psandbox(w);
}

/* What is known of a session of before; the order is that of microseconds in one second. */
static void leave_session(const struct world *w, const char *run_id, const char *status,
                          const char *reason, int order)
{
    struct err e = ERR_INIT;
    json_int_t then = clock_unix_s() - 100;
    json_auto_t *record = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:I, s:I, s:I, s:i}",
                                    "tenant", "ann", "sandboxId", "x", "status", status,
                                    "conversationId", "chat", "language", "python", "session", 1,
                                    "reason", reason, "createdAt", then, "begunUs",
                                    then * 1000000 + order, "endedAt", then, "keepSeconds", 3600);

    assert_works(psandbox_record_write(&w->f->root, run_id, record, &e), e);
}

static void a_session_of_before_is_missed_unless_its_owner_closed_it(void **state)
{
    static const struct {
        const char *status, *reason, *told;
    } ends[] = {
        {"expired", "it was unused for 6 seconds", "has expired (it was unused"},
        {"lost", "the process that looked after it died", "is lost (the process"},
        {"closed", "the server was stopped", "is closed (the server was stopped)"},
        {"closed", PSANDBOX_CLOSED_BY_OWNER, NULL},
    };
    struct world *w = *state;

    leave_session(w, "aaaaaaaaaaaaaaaaaaaaaaaa", "lost", "long ago", 0);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char run_id[] = "bbbbbbbbbbbbbbbbbbbbbbb0";
        run_id[RUN_ID_LEN - 1] = (char)('0' + i);
        leave_session(w, run_id, ends[i].status, ends[i].reason, 1 + (int)i);
        begin_session(w, "print one");
        json_t *first = result_of(TAKE_FD(w->creator));
        if (ends[i].told)
            assert_contains(json_get_string(first, "sessionNote"), ends[i].told);
        expect_cell(first, "ok", true, ends[i].told != NULL);
        expect_cell(cell(w, "print two"), "ok", false, false);
        close_psandbox(w);
        auto_close_fd(&w->channel);
    }
}

static void nonsense_on_the_control_channel_ends_the_interpreter(void **state)
{
    struct world *w = *state;

    begin_session(w, "print one");
    json_decref(result_of(TAKE_FD(w->creator)));
    expect_cell(cell(w, "babble"), "killed", false, true);
    expect_cell(cell(w, "print new"), "ok", true, false);
    expect_cell(cell(w, "babble on"), "ok", false, false);
    expect_cell(cell(w, "print newer"), "ok", true, true);
    close_psandbox(w);
}

static void a_default_variable_gives_way_to_the_callers(void **state)
{
    const char *items[4] = {"A=HOME=/b", "HOME=/a"};
    struct request_env env = {.items = items, .n = 2};

    (void)state;
    request_env_add_default(&env, "HOME=/tmp");
    assert_int_equal(env.n, 2);
    request_env_add_default(&env, "HOM=/tmp");
    request_env_add_default(&env, "HOME_=/tmp");
    assert_int_equal(env.n, 4);
    assert_string_equal(items[2], "HOM=/tmp");
}

static void a_cell_gets_its_input_and_no_network_that_the_session_has_not(void **state)
{
    struct world *w = *state;
    json_t *body = cell_body("input");

    begin_session(w, "print one");
    json_decref(result_of(TAKE_FD(w->creator)));
    json_object_set_new(body, "stdin", json_string("text"));
    json_auto_t *result = result_of(hand(w, cell_head(), body));
    assert_string_equal(json_get_string(result, "stdout"), "text");
    json_t *head = cell_head();
    json_object_set_new(head, "network", json_integer(NETWORK_PUBLIC));
    expect_error(hand(w, head, cell_body("print no")), ERR_BUSY, "runs something without it");
    close_psandbox(w);
}

static void a_session_that_gives_way_says_why_it_ended(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;
    json_auto_t *word = json_pack("{s:s, s:s}", "do", "end", "why", "its place was needed");

    begin_session(w, "print one");
    json_decref(result_of(TAKE_FD(w->creator)));
    assert_works(wire_send(w->channel, word, -1, &e), e);
    expect_end(w, "closed");
    json_auto_t *row = row_of(w, "ann");
    assert_string_equal(json_get_string(row, "reason"), "its place was needed");
}

/* ---- records ---- */

static void records_are_listed_and_forgotten(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;

    create(w);
    close_psandbox(w);
    json_auto_t *mine = psandbox_record_list(&w->f->root, "ann", "chat", &e);
    json_auto_t *elsewhere = psandbox_record_list(&w->f->root, "ann", "other", &e);
    json_auto_t *others = psandbox_record_list(&w->f->root, "bob", NULL, &e);
    assert_int_equal(json_array_size(mine), 1);
    assert_int_equal(json_array_size(elsewhere), 0);
    assert_int_equal(json_array_size(others), 0);
    psandbox_record_sweep(&w->f->root, clock_unix_s() + 3000);
    json_decref(row_of(w, "ann"));
    psandbox_record_sweep(&w->f->root, clock_unix_s() + 3700);
    assert_null(row_of(w, "ann"));
}

static void ids_are_ours_or_nothing(void **state)
{
    (void)state;
    assert_string_equal(psandbox_run_id(SANDBOX), RUN);
    assert_null(psandbox_run_id(RUN));
    assert_null(psandbox_run_id(SANDBOX "0"));
    assert_null(psandbox_run_id("sbx_../../../../etc/passwd"));
    assert_null(psandbox_run_id("sbx_0123456789ABCDEF01234567"));
    assert_null(psandbox_run_id(""));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(commands_run_one_after_the_other),
    TEST(all_run_where_failures_do_not_stop_them),
    TEST(files_that_change_are_listed),
    TEST(what_runs_in_the_background_lives_on),
    TEST(several_calls_share_it),
    TEST(too_many_calls_are_busy),
    TEST(its_calls_have_a_bound_of_their_own),
    TEST(a_slow_listing_of_files_holds_up_no_other_call),
    TEST(a_sandbox_closes_while_its_files_are_listed),
    TEST(a_time_limit_ends_the_command_only),
    TEST(its_caller_may_cancel_it),
    TEST(a_command_outlives_the_wait_of_its_caller),
    TEST(one_whose_caller_leaves_is_kept),
    TEST(a_command_in_the_background_can_be_cancelled),
    TEST(one_that_a_close_cuts_off_is_lost),
    TEST(a_cell_outlives_the_wait_of_its_caller),
    TEST(a_flood_is_cut_and_ended),
    TEST(output_is_told_while_it_comes),
    TEST(its_log_can_be_read_before_and_after_its_end),
    TEST(nonsense_is_refused_and_harms_no_other_call),
    TEST(unused_it_is_paused_and_then_expires),
    TEST(a_command_keeps_it_from_pausing),
    TEST(an_engine_that_cannot_pause_is_asked_once),
    TEST(its_time_ends_even_what_runs),
    TEST(a_container_that_goes_is_noticed),
    TEST(one_that_cannot_start_leaves_nothing),
    TEST(one_whose_creator_leaves_ends),
    TEST(a_server_that_stops_lets_commands_end),
    TEST(it_goes_on_under_the_next_main_process),
    TEST(one_whose_process_dies_is_lost),
    TEST(cells_are_worked_on_in_one_interpreter),
    TEST(two_languages_have_interpreters_of_their_own_in_it),
    TEST(an_interpreter_may_end_while_files_are_listed),
    TEST(a_cell_that_is_given_up_while_files_are_listed_makes_room),
    TEST(an_interpreter_that_ends_says_that_its_state_is_lost),
    TEST(a_cell_beyond_its_time_loses_the_state),
    TEST(an_interpreter_that_ends_between_cells_is_told_with_the_next),
    TEST(one_that_ended_with_an_unanswered_call_is_told_with_the_next),
    TEST(a_session_of_before_is_missed_unless_its_owner_closed_it),
    TEST(nonsense_on_the_control_channel_ends_the_interpreter),
    cmocka_unit_test(a_default_variable_gives_way_to_the_callers),
    TEST(a_cell_gets_its_input_and_no_network_that_the_session_has_not),
    TEST(a_session_that_gives_way_says_why_it_ended),
    TEST(records_are_listed_and_forgotten),
    TEST(ids_are_ours_or_nothing),
};
UNIT_TESTS(tests)
