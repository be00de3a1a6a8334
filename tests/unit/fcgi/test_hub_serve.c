/* The hub as a process of its own: nothing that one peer or the broker does holds up the others. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/mcp/session/session.h"
#include "common/mcp/session/stream.h"
#include "fcgi/app.h"
#include "fcgi/commands.h"
#include "fcgi/hub/events.h"
#include "fcgi/hub/hub_stream.h"
#include "fcgi/process/sockets.h"
#include "tests/fakes/fcgi_client.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define TOKEN "a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3e4f5"
#define BRIEF_MS                                                                                   \
    5000 /* much more than anything here takes, much less than the hub waits for a peer */
#define LONG_MS 20000

#define LISTEN(filter)                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{"               \
    "\"notifications\":{" filter "},\"_meta\":{"                                                   \
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                                  \
    "\"io.modelcontextprotocol/clientCapabilities\":"                                              \
    "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}}}"

struct world {
    char folder[PATH_MAX];
    struct settings settings;
    struct app app;
    struct event_sender events, workers_events;
    int broker_fd; /* listens; answers only as the test says */
    int sessions_fd;
    int asks[2]; /* the judge's end, the hub's */
    pid_t pid;
};

static void set_path(const struct world *w, const char *name, const char *file)
{
    AUTO_FREE char *value = mem_printf("%s/%s", w->folder, file);
    setenv(name, value, 1);
}

static int set_up(void **state, const char *issuer)
{
    struct world *w = mem_alloc(sizeof *w);
    const struct account self = {geteuid(), getegid()};
    struct err e = ERR_INIT;

    unit_make_folder(w->folder);
    set_path(w, "SANDCGI_BROKER", "broker.sock");
    set_path(w, "SANDCGI_HUB", "hub.sock");
    set_path(w, "SANDBOX_ROOT", "root");
    setenv("SANDCGI_AUTH", "token", 1);
    setenv("MCP_API_TOKEN", TOKEN, 1);
    setenv("FILE_SECRET", TOKEN, 1);
    setenv("PUBLIC_BASE_URL", "http://localhost", 1);
    assert_works(settings_load(&w->settings, NULL, &e), e);
    free(w->settings.oauth);
    w->settings.oauth = mem_strdup(issuer);
    assert_works(app_init(&w->app, &w->settings, true, NULL, &e), e);
    assert_works(w->broker_fd = sock_listen(w->settings.broker, NULL, &e), e);
    assert_works(pair_open(w->asks, &e), e);
    w->app.asks_fd = w->asks[1];
    assert_works(w->sessions_fd = sessions_dir_open(&w->settings, &self, &e), e);
    app_set_sessions(&w->app, w->sessions_fd);
    AUTO_FD int hub_fd = sock_listen(w->settings.hub, NULL, &e);
    AUTO_FD int events_fd = events_listen(w->settings.events, &self, &e);
    int pair[2];
    assert_true(hub_fd >= 0 && events_fd >= 0);
    assert_works(pair_open(pair, &e), e);
    event_sender_init(&w->events, w->settings.events, EVENTS_TIMEOUT_MS);
    AUTO_FD int left = openat(w->sessions_fd, "left", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(futimens(left, (const struct timespec[]){{.tv_sec = 1000}, {.tv_sec = 1000}}),
                     0);
    w->pid = fork();
    if (w->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int rc = hub_serve(&w->app, hub_fd, (int[]){events_fd, pair[0]}, &e);
        exit(rc < 0); /* where a sanitizer tells leaks */
    }
    close(pair[0]);
    event_sender_init(&w->workers_events, "", EVENTS_TIMEOUT_MS);
    event_sender_use(&w->workers_events, pair[1]);
    *state = w;
    return 0;
}

static int setup(void **state)
{
    return set_up(state, "");
}

static int setup_with_issuer(void **state)
{
    return set_up(state, "https://issuer.example.org");
}

static int teardown(void **state)
{
    struct world *w = *state;
    int status;

    kill(w->pid, SIGTERM);
    assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
    assert_int_equal(status, 0);
    app_clear(&w->app);
    event_sender_clear(&w->events);
    event_sender_clear(&w->workers_events);
    close(w->asks[0]);
    close(w->asks[1]);
    close(w->broker_fd);
    close(w->sessions_fd);
    unit_remove_tree(w->folder);
    settings_clear(&w->settings);
    free(w);
    return 0;
}

static void add_listen_as(struct buf *out, const char *authorization, const char *body)
{
    AUTO_FREE char *length = mem_printf("%zu", strlen(body));
    const char *const params[] = {"REQUEST_METHOD",
                                  "POST",
                                  "REQUEST_URI",
                                  "/mcp",
                                  "CONTENT_TYPE",
                                  "application/json",
                                  "CONTENT_LENGTH",
                                  length,
                                  "HTTP_HOST",
                                  "localhost",
                                  "HTTP_AUTHORIZATION",
                                  authorization,
                                  "HTTP_MCP_PROTOCOL_VERSION",
                                  "2026-07-28",
                                  "HTTP_MCP_METHOD",
                                  "subscriptions/listen",
                                  NULL};

    fcgi_client_add_request(out, params, body);
}

static void add_listen(struct buf *out, const char *body)
{
    add_listen_as(out, "Bearer " TOKEN, body);
}

static void expect(int fd, const char *part)
{
    AUTO_BUF struct buf got = BUF_INIT(1 << 20);

    if (fcgi_client_read_until(fd, part, &got, BRIEF_MS) < 0)
        fail_msg("not in time: %s; got: %s", part, buf_str(&got));
}

static int listen_to(const struct world *w, const char *body)
{
    AUTO_BUF struct buf request = BUF_INIT(65536);
    int fd = fcgi_client_connect(w->settings.hub, LONG_MS);

    add_listen(&request, body);
    assert_int_equal(send(fd, request.data, request.len, MSG_NOSIGNAL), request.len);
    expect(fd, "notifications/subscriptions/acknowledged");
    return fd;
}

static void publish(struct world *w, enum mcp_event_kind kind, const char *task)
{
    const struct mcp_event event = {.kind = kind, .tenant = "default", .task = task};

    event_sender_publish(&w->events, &event);
}

static void half_a_request_holds_up_no_other(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf request = BUF_INIT(65536);
    AUTO_FD int first = listen_to(w, LISTEN("\"toolsListChanged\":true"));
    AUTO_FD int half = fcgi_client_connect(w->settings.hub, LONG_MS);

    add_listen(&request, LISTEN("\"toolsListChanged\":true"));
    assert_int_equal(send(half, request.data, request.len / 2, MSG_NOSIGNAL), request.len / 2);
    AUTO_FD int second = listen_to(w, LISTEN("\"toolsListChanged\":true"));
    publish(w, MCP_EVENT_TOOLS, NULL);
    expect(first, "notifications/tools/list_changed");
    expect(second, "notifications/tools/list_changed");
    size_t rest = request.len - request.len / 2;
    assert_int_equal(send(half, request.data + request.len / 2, rest, MSG_NOSIGNAL), rest);
    expect(half, "notifications/subscriptions/acknowledged");
}

static void workers_events_come_over_a_pair(void **state)
{
    struct world *w = *state;
    const struct mcp_event event = {.kind = MCP_EVENT_TOOLS};
    AUTO_FD int stream = listen_to(w, LISTEN("\"toolsListChanged\":true"));

    event_sender_publish(&w->workers_events, &event);
    expect(stream, "notifications/tools/list_changed");
}

static void many_connections_may_come_before_their_requests(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf request = BUF_INIT(65536);
    int fds[300];

    add_listen(&request, LISTEN("\"toolsListChanged\":true"));
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = fcgi_client_connect(w->settings.hub, LONG_MS);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        assert_int_equal(send(fds[i], request.data, request.len, MSG_NOSIGNAL), request.len);
        expect(fds[i], "notifications/subscriptions/acknowledged");
        close(fds[i]);
    }
}

static void a_broker_that_does_not_answer_holds_up_no_stream(void **state)
{
    struct world *w = *state;
    static const char *const tasks[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    AUTO_FD int of_tasks = listen_to(w, LISTEN("\"taskIds\":[\"a\",\"b\",\"c\",\"d\",\"e\","
                                               "\"f\",\"g\",\"h\",\"i\",\"j\"]"));
    AUTO_FD int of_tools = listen_to(w, LISTEN("\"toolsListChanged\":true"));

    for (size_t i = 0; i < ARRAY_LEN(tasks); i++) /* a second each, one after another */
        publish(w, MCP_EVENT_TASK, tasks[i]);
    publish(w, MCP_EVENT_TASK, "of another stream");
    publish(w, MCP_EVENT_TOOLS, NULL);
    expect(of_tools, "notifications/tools/list_changed");
    AUTO_FD int later = listen_to(w, LISTEN("\"toolsListChanged\":true"));
    struct pollfd p = {.fd = of_tasks, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
}

#define REFUSED_BY_JUDGE                                                                           \
    "Status: 401 Unauthorized\r\nSandcgi-Fault: the issuer does not know it\r\n\r\n"

/* A stranger's request, whose token nobody here knows. */
static int ask_as_stranger(const struct world *w, int i)
{
    AUTO_BUF struct buf request = BUF_INIT(65536);
    AUTO_FREE char *authorization = mem_printf("Bearer unknown%d", i);
    int fd = fcgi_client_connect(w->settings.hub, LONG_MS);

    add_listen_as(&request, authorization, LISTEN("\"toolsListChanged\":true"));
    assert_int_equal(send(fd, request.data, request.len, MSG_NOSIGNAL), request.len);
    return fd;
}

static void answer_as_judge(const struct world *w)
{
    AUTO_BUF struct buf answer = BUF_INIT(1000);
    struct pollfd p = {.fd = w->asks[0], .events = POLLIN};
    char question[4096];

    assert_int_equal(poll(&p, 1, LONG_MS), 1);
    AUTO_FD int fd = sock_accept_over(w->asks[0]);
    assert_true(fd >= 0 && recv(fd, question, sizeof question, 0) > 0);
    fcgi_record_add(&answer, FCGI_STDOUT, 1, REFUSED_BY_JUDGE, sizeof REFUSED_BY_JUDGE - 1);
    assert_int_equal(send(fd, answer.data, answer.len, MSG_NOSIGNAL), answer.len);
}

/* Nor one that answers late: the judge asks the issuer about each token that it does not know. */
static void a_judge_that_does_not_answer_holds_up_no_stream(void **state)
{
    struct world *w = *state;
    AUTO_FD int stream = listen_to(w, LISTEN("\"toolsListChanged\":true"));
    int strangers[20];

    for (int i = 0; i < (int)ARRAY_LEN(strangers); i++)
        strangers[i] = ask_as_stranger(w, i);
    const int64_t before = clock_mono_ms();
    publish(w, MCP_EVENT_TOOLS, NULL);
    expect(stream, "notifications/tools/list_changed");
    close(listen_to(w, LISTEN("\"toolsListChanged\":true")));
    assert_true(clock_mono_ms() - before < 1000);
    answer_as_judge(w);
    expect(strangers[0], "the issuer does not know it");
    for (size_t i = 0; i < ARRAY_LEN(strangers); i++)
        close(strangers[i]);
}

/* It does not even take questions: they are refused when no more fit. */
static void a_judge_that_hangs_holds_up_no_stream(void **state)
{
    struct world *w = *state;
    AUTO_FD int stream = listen_to(w, LISTEN("\"toolsListChanged\":true"));
    int strangers[600];

    for (int i = 0; i < (int)ARRAY_LEN(strangers); i++)
        strangers[i] = ask_as_stranger(w, i);
    const int64_t before = clock_mono_ms();
    publish(w, MCP_EVENT_TOOLS, NULL);
    expect(stream, "notifications/tools/list_changed");
    assert_true(clock_mono_ms() - before < 1000);
    expect(strangers[ARRAY_LEN(strangers) - 1], "Status: 503");
    for (size_t i = 0; i < ARRAY_LEN(strangers); i++)
        close(strangers[i]);
}

static void the_state_of_a_task_is_told_when_the_broker_has_answered(void **state)
{
    static const char answer[] = "{\"result\":{\"runId\":\"a\",\"status\":\"cancelled\","
                                 "\"createdAt\":100,\"endedAt\":200,\"expiresAt\":300}}";
    struct world *w = *state;
    struct err e = ERR_INIT;
    struct pollfd p = {.fd = w->broker_fd, .events = POLLIN};
    AUTO_FD int one = listen_to(w, LISTEN("\"taskIds\":[\"a\"]"));
    AUTO_FD int other = listen_to(w, LISTEN("\"taskIds\":[\"b\",\"a\"]"));

    publish(w, MCP_EVENT_TASK, "a");
    assert_int_equal(poll(&p, 1, LONG_MS), 1);
    AUTO_FD int call = accept4(w->broker_fd, NULL, NULL, SOCK_CLOEXEC);
    assert_works(sock_send_message(call, answer, sizeof answer - 1, -1, &e), e);
    shutdown(call, SHUT_WR);
    expect(one, "\"status\":\"cancelled\"");
    expect(other, "\"status\":\"cancelled\"");
}

static void expired_sessions_are_removed_beside_the_loop(void **state)
{
    struct world *w = *state;
    struct deadline until = deadline_in_ms(LONG_MS);
    struct stat st;

    while (fstatat(w->sessions_fd, "left", &st, 0) == 0) {
        assert_false(deadline_passed(until));
        poll(NULL, 0, 5);
    }
}

static void on_no_task(void *owner, const struct hub_task *task, const json_t *state)
{
    (void)owner;
    (void)task;
    (void)state;
}

/* Behind as many look-ups as there may be at a time, which the broker does not answer. */
static void a_sweep_waits_with_look_ups_and_each_waits_once(void **state)
{
    struct world *w = *state;
    const struct mcp_server *server = app_server(&w->app, NULL, SCOPE_ALL);
    const struct hub_task sweep = {.server = server};
    struct loop loop;
    struct err e = ERR_INIT;
    struct hub_jobs jobs = {.loop = &loop, .on_task = on_no_task};
    size_t n;

    assert_works(loop_init(&loop, w, &e), e);
    for (n = 0; n == jobs.n_running; n++)
        hub_jobs_add(&jobs, &(struct hub_task){server, 0, "default", (char[]){(char)('a' + n), 0}});
    assert_int_equal(jobs.n, n);
    hub_jobs_add(&jobs, &sweep);
    for (int twice = 0; twice < 2; twice++) {
        hub_jobs_add(&jobs, &(struct hub_task){server, 0, "default", "queued"});
        hub_jobs_add(&jobs, &(struct hub_task){server, 0, "another", "queued"});
        hub_jobs_add(&jobs, &(struct hub_task){server, MCP_IN_TEXT, "default", "queued"});
        hub_jobs_add(&jobs, &sweep);
        assert_int_equal(jobs.n, n + 4);
    }
    hub_jobs_clear(&jobs);
    assert_int_equal(jobs.n, 0);
    loop_clear(&loop);
}

/* ---- replays ---- */

#define SLOW        40
#define MESSAGE_LEN MB
#define MB          (1024 * 1024)

static size_t memory_of(pid_t pid)
{
    AUTO_FREE char *path = mem_printf("/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    unsigned long size, resident;

    assert_int_equal(fscanf(file, "%lu %lu", &size, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* A stored stream of one large message; out_id gets the id that a reader of it has seen last. */
static void store_large(const struct world *w, char *out_session, char *out_id)
{
    const struct mcp_server *server = app_server(&w->app, NULL, SCOPE_ALL);
    AUTO_FREE char *text = mem_alloc(MESSAGE_LEN + 1);
    char id[MCP_EVENT_ID_MAX];
    struct err e = ERR_INIT;

    memset(text, 'x', MESSAGE_LEN);
    assert_works(mcp_session_create(server, "default", MCP_2025_11_25, NULL, NULL, out_session, &e),
                 e);
    struct mcp_stream *stream = mcp_stream_new(w->sessions_fd, "default", out_session, &e);
    assert_works(stream ? 0 : -1, e);
    mcp_stream_first_id(stream, out_id);
    json_auto_t *message = json_pack("{s:s, s:i, s:{s:s}}", "jsonrpc", "2.0", "id", 1, "result",
                                     "text", text);
    assert_works(mcp_stream_add(stream, message, id, &e), e);
    mcp_stream_end(stream);
}

/* last: the event from which it is a replay; NULL: none. */
static int get(const struct world *w, const char *session, const char *last)
{
    AUTO_BUF struct buf request = BUF_INIT(65536);
    const char *const params[] = {"REQUEST_METHOD",
                                  "GET",
                                  "REQUEST_URI",
                                  "/mcp",
                                  "HTTP_HOST",
                                  "localhost",
                                  "HTTP_ACCEPT",
                                  "text/event-stream",
                                  "HTTP_AUTHORIZATION",
                                  "Bearer " TOKEN,
                                  "HTTP_MCP_PROTOCOL_VERSION",
                                  "2025-11-25",
                                  "HTTP_MCP_SESSION_ID",
                                  session,
                                  last ? "HTTP_LAST_EVENT_ID" : NULL,
                                  last,
                                  NULL};
    int fd = fcgi_client_connect(w->settings.hub, LONG_MS);

    fcgi_client_add_request(&request, params, "");
    assert_int_equal(send(fd, request.data, request.len, MSG_NOSIGNAL), request.len);
    return fd;
}

/* Reads from all until each has sent a whole message. */
static void read_whole_messages(struct pollfd *readers, size_t n)
{
    AUTO_FREE size_t *got = mem_alloc(n * sizeof *got);
    char room[65536];

    for (size_t left = n; left > 0;) {
        assert_true(poll(readers, (nfds_t)n, LONG_MS) > 0);
        for (size_t i = 0; i < n; i++) {
            if (!readers[i].revents)
                continue;
            ssize_t len = recv(readers[i].fd, room, sizeof room, MSG_DONTWAIT);
            assert_true(len > 0);
            got[i] += (size_t)len;
            if (got[i] < MESSAGE_LEN)
                continue;
            close(readers[i].fd);
            readers[i] = (struct pollfd){.fd = -1};
            left--;
        }
    }
}

/* The hub's memory does not grow with their number, and each gets its message in the end. */
static void slow_readers_of_large_messages_wait_for_each_other(void **state)
{
    struct world *w = *state;
    char session[MCP_SESSION_ID_LEN + 1], last[MCP_EVENT_ID_MAX];
    struct pollfd readers[SLOW];

    store_large(w, session, last);
    size_t before = memory_of(w->pid);
    for (size_t i = 0; i < SLOW; i++)
        readers[i] = (struct pollfd){.fd = get(w, session, last), .events = POLLIN};
    for (size_t i = 0; i < SLOW; i++)
        assert_int_equal(poll(&readers[i], 1, LONG_MS), 1); /* the head of its answer */
    size_t after = memory_of(w->pid);
#ifndef WITH_SANITIZER /* AddressSanitizer keeps what was freed */
    assert_true(after < before + SLOW * 2 / 3 * (size_t)MESSAGE_LEN);
#endif
    (void)before;
    (void)after;
    read_whole_messages(readers, SLOW);
}

/* ---- subscriptions of a session ---- */

static json_t *subscribed(const json_t *now, void *uri, struct err *e)
{
    (void)now;
    (void)e;
    return json_pack("[s]", uri);
}

static void a_subscription_comes_before_what_the_broker_tells(void **state)
{
    static char uri[] = "sandbox://c/a.txt";
    const struct mcp_event file = {.kind = MCP_EVENT_RESOURCE, .tenant = "default", .uri = uri};
    struct world *w = *state;
    const struct mcp_server *server = app_server(&w->app, NULL, SCOPE_ALL);
    AUTO_MCP_SESSION struct mcp_session session = {.record = NULL};
    char id[MCP_SESSION_ID_LEN + 1];
    struct err e = ERR_INIT;
    int status;

    assert_works(mcp_session_create(server, "default", MCP_2025_11_25, NULL, NULL, id, &e), e);
    AUTO_FD int stream = get(w, id, NULL);
    expect(stream, "text/event-stream");
    kill(w->pid, SIGSTOP);
    assert_int_equal(waitpid(w->pid, &status, WUNTRACED), w->pid);
    event_sender_publish(&w->events, &file);
    assert_works(mcp_session_load(server, id, "default", &session, &e), e);
    assert_works(mcp_session_set(server, &session, "subscriptions", subscribed, uri, &e), e);
    event_sender_publish(
        &w->workers_events,
        &(struct mcp_event){.kind = MCP_EVENT_SESSION, .tenant = "default", .session = id});
    kill(w->pid, SIGCONT);
    expect(stream, "notifications/resources/updated");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(half_a_request_holds_up_no_other, setup, teardown),
    cmocka_unit_test_setup_teardown(workers_events_come_over_a_pair, setup, teardown),
    cmocka_unit_test_setup_teardown(many_connections_may_come_before_their_requests, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_broker_that_does_not_answer_holds_up_no_stream, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_judge_that_does_not_answer_holds_up_no_stream,
                                    setup_with_issuer, teardown),
    cmocka_unit_test_setup_teardown(a_judge_that_hangs_holds_up_no_stream, setup_with_issuer,
                                    teardown),
    cmocka_unit_test_setup_teardown(the_state_of_a_task_is_told_when_the_broker_has_answered, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_sweep_waits_with_look_ups_and_each_waits_once, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(expired_sessions_are_removed_beside_the_loop, setup, teardown),
    cmocka_unit_test_setup_teardown(a_subscription_comes_before_what_the_broker_tells, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(slow_readers_of_large_messages_wait_for_each_other, setup,
                                    teardown),
};
UNIT_TESTS(tests)
