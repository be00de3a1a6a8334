/* Persistent sandboxes in the main process: room for one, and which connection gets which. */
#include "config.h"

#include "tests/unit/broker/broker_world.h"

#include "common/protocol/client_files.h"
#include "common/protocol/client_runs.h"
#include "common/protocol/ops.h"
#include "common/protocol/run_id.h"
#include "common/records/psandbox_record.h"
#include "common/records/run_lock.h"
#include "common/sandbox/sandbox.h"
#include "common/sandbox/stand_in.h"

#include <dirent.h>
#include <netinet/in.h>

#define IMAGES "debian,tools/*"

static int setup(void **state)
{
    static struct broker_world w;
    bw_open(&w);
    w.config.limits.persistent = (struct psandbox_settings){
        .tenant_max = 2, .server_max = 3, .idle_ms = 60000, .total_ms = 60000, .images = IMAGES};
    *state = &w;
    return 0;
}

static const struct broker_psandbox_request in_bash = {.conversation = "c", .language = "bash"};

/* Its id; heap. */
static char *create(struct broker_world *w, const char *tenant)
{
    struct err e = ERR_INIT;
    json_auto_t *row = broker_create_psandbox(bw_client(w, tenant), &in_bash, &e);
    if (!row)
        fail_msg("%s", e.text);
    return mem_strdup(json_get_string(row, "sandboxId"));
}

static void expect_refusal(struct broker_world *w, const char *tenant,
                           const struct broker_psandbox_request *want, enum err_kind kind,
                           const char *part)
{
    struct err e = ERR_INIT;
    assert_null(broker_create_psandbox(bw_client(w, tenant), want, &e));
    assert_string_equal(err_kind_name(e.kind), err_kind_name(kind));
    assert_contains(e.text, part);
}

static json_t *exec(struct broker_world *w, const char *tenant, const char *id, struct err *e)
{
    const struct run_text command = {"true", 4};
    const struct broker_exec_want want = {.psandbox_id = id, .commands = &command, .n = 1};
    return broker_exec(bw_client(w, tenant), &want, NULL, e);
}

static void expect_mine(struct broker_world *w, const char *tenant, const char *id)
{
    struct err e = ERR_INIT;
    json_auto_t *result = exec(w, tenant, id, &e);
    if (!result)
        fail_msg("%s", e.text);
    assert_string_equal(json_get_string(result, "by"), id);
}

/* A get_run and a cancel_run of the first run in that sandbox. */
static void expect_its_run(struct broker_world *w, const char *tenant, const char *id)
{
    static const struct broker_poll_options at_once = {0};
    struct err e = ERR_INIT;
    char run_id[RUN_ID_LEN + 1];

    psandbox_run_id_write(psandbox_run_id(id), 1, run_id);
    json_auto_t *got = broker_get_run(bw_client(w, tenant), run_id, &at_once, &e);
    assert_string_equal(json_get_string(got, "by"), id);
    assert_string_equal(json_get_string(got, "op"), "get_run");
    json_auto_t *cancelled = broker_cancel_run(bw_client(w, tenant), run_id, &e);
    assert_string_equal(json_get_string(cancelled, "by"), id);
    assert_null(broker_get_run(bw_client(w, "eve"), run_id, &at_once, &e));
    assert_string_equal(e.text, WIRE_NO_SUCH_RUN);
}

static void expect_not_found(struct broker_world *w, const char *tenant, const char *id)
{
    struct err e = ERR_INIT;
    assert_null(exec(w, tenant, id, &e));
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    assert_string_equal(e.text, WIRE_NO_SUCH_SANDBOX);
    assert_null(broker_close_psandbox(bw_client(w, tenant), id, &e));
    assert_string_equal(e.text, WIRE_NO_SUCH_SANDBOX);
    assert_null(broker_psandbox_logs(bw_client(w, tenant), id, &e));
    assert_string_equal(e.text, WIRE_NO_SUCH_SANDBOX);
    assert_null(broker_psandbox_status(bw_client(w, tenant), id, NULL, &e));
    assert_string_equal(e.text, WIRE_NO_SUCH_SANDBOX);
}

static void close_psandbox(struct broker_world *w, const char *tenant, const char *id)
{
    struct err e = ERR_INIT;
    json_auto_t *row = broker_close_psandbox(bw_client(w, tenant), id, &e);
    assert_non_null(row);
}

static void calls_reach_their_own_sandbox_and_no_other(void **state)
{
    struct broker_world *w = *state;
    bw_start_broker(w);
    AUTO_FREE char *one = create(w, "ann");
    AUTO_FREE char *two = create(w, "ann");
    AUTO_FREE char *theirs = create(w, "bob");
    expect_mine(w, "ann", one);
    expect_mine(w, "ann", two);
    expect_mine(w, "bob", theirs);
    expect_its_run(w, "ann", one);
    expect_its_run(w, "ann", two);
    expect_its_run(w, "bob", theirs);
    expect_not_found(w, "bob", one);
    expect_not_found(w, "ann", theirs);
    expect_not_found(w, "ann", "sbx_0123456789abcdef01234567");
    expect_not_found(w, "ann", one + strlen(PSANDBOX_ID_PREFIX));
    expect_not_found(w, "ann", "");
    bw_close(w); /* and all end with the server */
}

static void a_tenant_has_its_most_and_the_server_too(void **state)
{
    struct broker_world *w = *state;
    bw_start_broker(w);
    AUTO_FREE char *one = create(w, "ann");
    AUTO_FREE char *two = create(w, "ann");
    expect_refusal(w, "ann", &in_bash, ERR_LIMIT, "SANDBOX_PERSISTENT_MAX");
    AUTO_FREE char *theirs = create(w, "bob");
    expect_refusal(w, "bob", &in_bash, ERR_BUSY, "no room");
    close_psandbox(w, "ann", one);
    AUTO_FREE char *three = create(w, "ann"); /* its room is free as soon as it is closed */
    expect_not_found(w, "ann", one);
    expect_mine(w, "ann", three);
    bw_close(w);
}

static void what_must_not_be_made_is_refused(void **state)
{
    struct broker_world *w = *state;
    struct broker_psandbox_request want = in_bash;
    bw_start_broker(w);
    want.language = "cobol";
    expect_refusal(w, "ann", &want, ERR_NOT_FOUND, "language");
    want.language = NULL;
    expect_refusal(w, "ann", &want, ERR_INVALID, "language or image");
    static const char *const images[] = {"alpine",
                                         "debian/other",
                                         "evil.example/debian",
                                         "toolsx/a",
                                         "sandcgi-runner-bash:latest",
                                         "*",
                                         ""};
    for (size_t i = 0; i < ARRAY_LEN(images); i++) {
        want.image = images[i];
        expect_refusal(w, "ann", &want, ERR_DENIED, "SANDBOX_PERSISTENT_IMAGES");
    }
    want = in_bash;
    want.network = NETWORK_PUBLIC;
    expect_refusal(w, "ann", &want, ERR_DENIED, "network");
    want = in_bash;
    want.conversation = "bad\nname";
    expect_refusal(w, "ann", &want, ERR_INVALID, "conversationId");
    bw_close(w);
}

static void an_image_of_the_list_is_taken(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;
    struct broker_psandbox_request want = in_bash;
    want.language = NULL;
    want.image = "tools/all:2";
    bw_start_broker(w);
    json_auto_t *row = broker_create_psandbox(bw_client(w, "ann"), &want, &e);
    assert_string_equal(json_get_string(row, "image"), "tools/all:2");
    bw_close(w);
}

/* Its sandbox's id; heap. */
static char *cell_in(struct broker_world *w, const char *language, const char *tenant,
                     const char *conversation)
{
    struct err e = ERR_INIT;
    const struct broker_run_options options = {.options = {.session = true}};
    struct run_request r = bw_request(tenant, conversation, "x");
    r.language = language;
    json_auto_t *result = broker_run(&w->client, &r, &options, &e);
    if (!result)
        fail_msg("%s", e.text);
    return mem_strdup(json_get_string(result, "by"));
}

static char *cell(struct broker_world *w, const char *tenant, const char *conversation)
{
    return cell_in(w, "python", tenant, conversation);
}

static void a_session_has_one_sandbox_of_its_conversation(void **state)
{
    struct broker_world *w = *state;
    const struct broker_run_options options = {.options = {.session = true}};
    struct err e = ERR_INIT;
    bw_start_broker(w);
    AUTO_FREE char *first = cell(w, "ann", "one");
    AUTO_FREE char *again = cell(w, "ann", "one");
    AUTO_FREE char *other = cell(w, "ann", "two");
    AUTO_FREE char *theirs = cell(w, "bob", "one");
    assert_string_equal(first, again);
    AUTO_FREE char *further = cell_in(w, "typescript", "ann", "one"); /* of the same image */
    assert_string_equal(first, further);
    assert_string_not_equal(first, other);
    assert_string_not_equal(first, theirs);
    struct run_request r = bw_request("ann", "one", "x");
    assert_null(broker_run(&w->client, &r, &options, &e)); /* in bash */
    assert_int_equal(e.kind, ERR_INVALID);
    close_psandbox(w, "ann", first);
    AUTO_FREE char *next = cell(w, "ann", "one");
    assert_string_not_equal(first, next);
    bw_close(w);
}

static void expect_no_cell(struct broker_world *w, const char *tenant, const char *conversation,
                           enum err_kind kind, const char *part)
{
    struct err e = ERR_INIT;
    const struct broker_run_options options = {.options = {.session = true}};
    struct run_request r = bw_request(tenant, conversation, "x");

    r.language = "python";
    assert_null(broker_run(&w->client, &r, &options, &e));
    assert_string_equal(err_kind_name(e.kind), err_kind_name(kind));
    assert_contains(e.text, part);
}

static void the_session_that_is_unused_longest_gives_way(void **state)
{
    struct broker_world *w = *state;
    bw_start_broker(w);
    AUTO_FREE char *one = cell(w, "ann", "one");
    AUTO_FREE char *two = cell(w, "ann", "two");
    AUTO_FREE char *again = cell(w, "ann", "one"); /* used after two */
    AUTO_FREE char *three = cell(w, "ann", "three");
    expect_not_found(w, "ann", two);
    expect_mine(w, "ann", one);
    AUTO_FREE char *made = create(w, "ann"); /* three's turn: one was used after it */
    expect_not_found(w, "ann", three);
    expect_mine(w, "ann", one);
    AUTO_FREE char *four = cell(w, "ann", "four"); /* never made */
    expect_not_found(w, "ann", one);
    expect_mine(w, "ann", made);
    expect_mine(w, "ann", four);
    bw_close(w);
}

static void what_runs_and_what_a_client_made_stay(void **state)
{
    struct broker_world *w = *state;
    bw_start_broker(w);
    AUTO_FREE char *made = create(w, "ann");
    AUTO_FREE char *busy = cell(w, "ann", "busy");
    expect_no_cell(w, "ann", "three", ERR_LIMIT, "call again without session");
    expect_refusal(w, "ann", &in_bash, ERR_LIMIT, "close_sandbox");
    expect_mine(w, "ann", made);
    expect_mine(w, "ann", busy);
    bw_close(w);
}

static void sessions_of_others_give_way_to_a_tenant_without_one(void **state)
{
    struct broker_world *w = *state;
    w->config.limits.persistent.server_max = 2;
    bw_start_broker(w);
    AUTO_FREE char *one = cell(w, "ann", "one");
    AUTO_FREE char *busy = cell(w, "ann", "busy");
    AUTO_FREE char *theirs = cell(w, "bob", "one");
    expect_not_found(w, "ann", one);
    expect_mine(w, "ann", busy);
    AUTO_FREE char *next = cell(w, "bob", "two"); /* bob's own gives way */
    expect_not_found(w, "bob", theirs);
    AUTO_FREE char *held = cell(w, "bob", "busy");
    expect_not_found(w, "bob", next);
    expect_no_cell(w, "eve", "one", ERR_BUSY, "SANDBOX_PERSISTENT_SERVER");
    bw_close(w);
}

static void sessions_give_way_to_what_has_less(void **state)
{
    struct broker_world *w = *state;
    w->config.limits.persistent.server_max = w->config.limits.persistent.tenant_max = 4;
    bw_start_broker(w);
    AUTO_FREE char *only = cell(w, "eve", "one"); /* the oldest of all */
    AUTO_FREE char *one = cell(w, "ann", "one");
    AUTO_FREE char *two = cell(w, "ann", "two");
    AUTO_FREE char *three = cell(w, "ann", "three");
    expect_refusal(w, "bob", &in_bash, ERR_BUSY, "no room"); /* that would never give way */
    AUTO_FREE char *busy = cell(w, "bob", "busy");
    expect_not_found(w, "ann", one);
    expect_no_cell(w, "bob", "two", ERR_BUSY, "SANDBOX_PERSISTENT_SERVER"); /* ann has 2, too */
    expect_mine(w, "eve", only);
    expect_mine(w, "ann", two);
    expect_mine(w, "ann", three);
    expect_mine(w, "bob", busy);
    bw_close(w);
}

/* One of a broker before; its channel. */
static int adopt(struct broker_world *w, const char *run_id, json_t *take_more)
{
    struct err e = ERR_INIT;
    json_auto_t *more = take_more;
    json_auto_t *head = op_head_new(OP_ADOPT, "{s:s, s:s, s:s, s:s, s:s}", "call",
                                    "create_psandbox", "tenant", "ann", "conversationId", "c",
                                    "language", "bash", "runId", run_id);
    if (more)
        json_object_update(head, more);
    int fd = sock_connect_unix(w->socket, &e);
    assert_true(fd >= 0);
    assert_works(wire_send(fd, head, -1, &e), e);
    return fd;
}

static void one_of_a_broker_before_counts_and_gets_its_calls(void **state)
{
    struct broker_world *w = *state;
    struct broker_psandbox_request want = in_bash;
    struct err e = ERR_INIT;
    w->config.limits.persistent.tenant_max = 1;
    bw_start_broker(w);
    int channel = adopt(w, "0123456789abcdef01234567", NULL);
    json_auto_t *head = json_pack("{s:s, s:s, s:s}", "op", "close_psandbox", "tenant", "ann",
                                  "sandboxId", "sbx_0123456789abcdef01234567");
    int caller = -1, theirs = -1;
    json_auto_t *message = NULL;
    while (!message) { /* until its row is there; before, the caller is refused */
        caller = sock_connect_unix(w->socket, &e);
        assert_works(wire_send(caller, head, -1, &e), e);
        struct pollfd p[] = {{.fd = channel, .events = POLLIN}, {.fd = caller, .events = POLLIN}};
        assert_true(poll(p, 2, 20000) > 0);
        if (p[0].revents)
            message = wire_recv(channel, &theirs, deadline_in_ms(20000), &e);
        else
            close(caller);
    }
    assert_string_equal(json_get_string(message, "do"), "hand");
    assert_true(theirs >= 0);
    expect_refusal(w, "ann", &want, ERR_LIMIT, "SANDBOX_PERSISTENT_MAX");
    close(theirs);
    close(caller);
    close(channel);
    json_t *row = NULL;
    while (!(row = broker_create_psandbox(bw_client(w, "ann"), &want, &e)))
        poll(NULL, 0, 10); /* until it is out of them again */
    json_decref(row);
    bw_close(w);
}

static void another_version_is_met_at_a_reload(void **state)
{
    static const char *const ops[] = {"run", "session", "exec"};
    struct broker_world *w = *state;
    struct err e = ERR_INIT;

    bw_start_broker(w);
    int channel = adopt(w, "0123456789abcdef01234567", json_pack("{s:i}", "wire", 0));
    json_auto_t *message = wire_recv(channel, NULL, deadline_in_ms(20000), &e);
    assert_non_null(message);
    assert_string_equal(json_get_string(message, "do"), "end");
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        json_auto_t *head = json_pack("{s:s, s:s}", "op", ops[i], "tenant", "ann");
        int caller = sock_connect_unix(w->socket, &e);
        assert_works(wire_send(caller, head, -1, &e), e);
        bw_expect_error(caller, ERR_BUSY, "of the version before");
    }
    close(channel);
    bw_close(w);
}

static json_t *exec_in_background(struct broker_world *w, const char *id, struct err *e)
{
    const struct run_text command = {"true", 4};
    const struct broker_exec_want want = {
        .psandbox_id = id, .commands = &command, .n = 1, .options = {.background = true}};
    return broker_exec(bw_client(w, "ann"), &want, NULL, e);
}

static void what_goes_on_in_the_background_in_one_counts_for_its_tenant(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;
    w->config.limits.background_max = 1;
    bw_start_broker(w);
    AUTO_FREE char *id = create(w, "ann");
    int channel = adopt(w, "0123456789abcdef01234567",
                        json_pack("{s:[{s:b}]}", "runs", "background", 1));
    for (json_t *done; (done = exec_in_background(w, id, &e));) {
        json_decref(done);
        poll(NULL, 0, 10); /* until the row is there */
    }
    assert_int_equal(e.kind, ERR_BUSY);
    assert_contains(e.text, "SANDBOX_BACKGROUND_MAX");
    expect_mine(w, "ann", id);
    close(channel);
    bw_close(w);
}

static void one_that_does_not_say_whose_it_is_is_not_taken(void **state)
{
    struct broker_world *w = *state;
    bw_start_broker(w);
    int bad = adopt(w, "../../etc/passwd", NULL);
    assert_null(bw_hear(bad));
    close(bad);
    int worse = adopt(w, "0123456789abcdef01234567", json_pack("{s:n}", "tenant"));
    assert_null(bw_hear(worse));
    close(worse);
    bw_close(w);
}

/* ---- those that are about to come back ---- */

#define OF_BEFORE "0123456789abcdef01234567"

/* A process that holds the lock of that sandbox until it is killed. */
static pid_t hold_lock(const struct sandbox_root *root)
{
    struct err e = ERR_INIT;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (run_lock_take(root->fd, OF_BEFORE, &e) >= 0)
            pause();
        _exit(1);
    }
    while (!run_lock_reap(root->fd, OF_BEFORE))
        poll(NULL, 0, 5);
    return pid;
}

static void die(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Before the broker starts: ann's sandbox that lived under another, in her conversation c; the
 * process that stands for it. */
static pid_t leave_one(struct broker_world *w, bool session)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct sandbox_root root;
    struct err e = ERR_INIT;
    json_auto_t *record = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:i}", "tenant", "ann", "sandboxId",
        PSANDBOX_ID_PREFIX OF_BEFORE, "status", "running", "conversationId", "c", "language",
        "python", "session", session, "createdAt", (json_int_t)clock_unix_s(), "expiresAt",
        (json_int_t)clock_unix_s() + 3600, "keepSeconds", 3600);

    assert_works(sandbox_root_open(&root, w->root, "", w->config.file_secret, "", geteuid(),
                                   getegid(), 0, &e),
                 e);
    assert_works(sandbox_open(&root, "ann", "c", &sb, &e), e);
    assert_works(psandbox_record_write(&root, OF_BEFORE, record, &e), e);
    pid_t pid = hold_lock(&root);
    sandbox_root_close(&root);
    return pid;
}

static int ask(struct broker_world *w, json_t *take_head)
{
    struct err e = ERR_INIT;
    json_auto_t *head = take_head;
    int fd = sock_connect_unix(w->socket, &e);

    assert_true(fd >= 0);
    assert_works(wire_send(fd, head, -1, &e), e);
    return fd;
}

static json_t *about(const char *op)
{
    return json_pack("{s:s, s:s, s:s, s:i}", "op", op, "tenant", "ann", "sandboxId",
                     PSANDBOX_ID_PREFIX OF_BEFORE, "wire", WIRE_VERSION);
}

static json_t *session_head(void)
{
    return op_head_new(OP_SESSION, "{s:s, s:s, s:s}", "tenant", "ann", "conversationId", "c",
                       "language", "python");
}

static bool is_handed(int channel, const char *op)
{
    struct err e = ERR_INIT;
    int connection = -1;
    json_auto_t *message = wire_recv(channel, &connection, deadline_in_ms(20000), &e);

    assert_non_null(message);
    assert_true(connection >= 0);
    close(connection);
    return strcmp(json_get_string(json_object_get(message, "head"), "op"), op) == 0;
}

static void expect_handed(int channel, const char *op)
{
    assert_true(is_handed(channel, op));
}

static void expect_handed_at_last(int channel, const char *op)
{
    while (!is_handed(channel, op))
        ;
}

/* Until OF_BEFORE has its row. */
static void await_row(struct broker_world *w, int channel)
{
    for (;;) {
        int caller = ask(w, about("psandbox_logs"));
        struct pollfd p[] = {{.fd = channel, .events = POLLIN}, {.fd = caller, .events = POLLIN}};
        assert_true(poll(p, 2, 20000) > 0);
        close(caller);
        if (p[0].revents)
            break;
    }
    expect_handed(channel, "psandbox_logs");
}

/* ann's session that has that network, in her conversation c; its channel. */
static int adopt_with_network(struct broker_world *w, enum network_tier network)
{
    int channel = adopt(
        w, OF_BEFORE,
        json_pack("{s:s, s:s, s:i}", "call", "session", "language", "python", "network", network));
    await_row(w, channel);
    return channel;
}

static void a_session_keeps_its_network_where_the_caller_may_have_one(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;
    bw_start_broker(w);
    int channel = adopt_with_network(w, NETWORK_PUBLIC);
    json_t *head = session_head();
    json_object_set_new(head, "sessionNetwork", json_integer(NETWORK_PUBLIC));
    int caller = ask(w, head);
    expect_handed(channel, "session");
    json_auto_t *over = json_pack("{s:s, s:[], s:i}", "is", "runs", "runs", "dealt", 1);
    assert_works(wire_send(channel, over, -1, &e), e);
    AUTO_FREE char *anew = cell(w, "ann", "c"); /* it may have none, and nothing runs */
    json_auto_t *end = wire_recv(channel, NULL, deadline_in_ms(20000), &e);
    assert_string_equal(json_get_string(end, "do"), "end");
    assert_contains(json_get_string(end, "why"), "it had a network");
    assert_string_not_equal(anew, PSANDBOX_ID_PREFIX OF_BEFORE);
    close(caller);
    close(channel);
    bw_close(w);
}

/* A call like that goes on with the session. */
static void expect_handed_session(struct broker_world *w, int channel, const char *language,
                                  enum network_tier network, enum network_tier session_network)
{
    json_t *head = session_head();

    json_object_set_new(head, "language", json_string(language));
    json_object_set_new(head, "network", json_integer(network));
    json_object_set_new(head, "sessionNetwork", json_integer(session_network));
    int caller = ask(w, head);
    expect_handed(channel, "session");
    close(caller);
}

static void the_use_of_a_session_is_known_to_the_next_broker(void **state)
{
    struct broker_world *w = *state;

    bw_start_broker(w);
    int channel = adopt(w, OF_BEFORE,
                        json_pack("{s:s, s:s, s:I}", "call", "session", "language", "python",
                                  "usedMs", (json_int_t)clock_mono_ms() + 60000));
    await_row(w, channel);
    AUTO_FREE char *one = cell(w, "ann", "one");
    AUTO_FREE char *two = cell(w, "ann", "two");
    expect_not_found(w, "ann", one);
    expect_handed_session(w, channel, "python", NETWORK_NONE, NETWORK_NONE);
    close(channel);
    bw_close(w);
}

static void the_files_of_one_that_gives_way_stay_until_it_has_ended(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;

    w->config.limits.persistent.tenant_max = 1;
    bw_start_broker(w);
    int channel = adopt(w, OF_BEFORE,
                        json_pack("{s:s, s:s}", "call", "session", "language", "python"));
    await_row(w, channel);
    AUTO_FREE char *other = cell(w, "ann", "other");
    json_auto_t *end = wire_recv(channel, NULL, deadline_in_ms(20000), &e);
    assert_string_equal(json_get_string(end, "do"), "end");
    assert_null(broker_delete_conversation(bw_client(w, "ann"), "c", &e));
    assert_int_equal(e.kind, ERR_BUSY);
    assert_contains(e.text, "about to end");
    json_auto_t *ended = json_pack("{s:s}", "is", "ended");
    assert_works(wire_send(channel, ended, -1, &e), e);
    assert_null(broker_delete_conversation(bw_client(w, "ann"), "c", &e));
    assert_int_equal(e.kind, ERR_NOT_FOUND); /* it had none */
    close(channel);
    bw_close(w);
}

static void a_session_is_not_given_up_for_one_that_cannot_begin(void **state)
{
    struct broker_world *w = *state;
    struct pollfd quiet = {.events = POLLIN};

    w->config.limits.network = NETWORK_PUBLIC;
    bw_start_broker(w);
    int channel = adopt(w, OF_BEFORE,
                        json_pack("{s:s, s:s}", "call", "session", "language", "python"));
    await_row(w, channel);
    json_t *head = session_head();
    json_object_set_new(head, "network", json_integer(NETWORK_LAN));
    bw_expect_error(ask(w, head), ERR_DENIED, "SANDBOX_NETWORK");
    quiet.fd = channel;
    assert_int_equal(poll(&quiet, 1, 0), 0);
    expect_handed_session(w, channel, "python", NETWORK_NONE, NETWORK_NONE);
    close(channel);
    bw_close(w);
}

static void another_network_than_the_sessions_begins_another(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;

    bw_start_broker(w);
    int channel = adopt_with_network(w, NETWORK_LAN);
    expect_handed_session(w, channel, "python", NETWORK_NONE, NETWORK_LAN);
    json_auto_t *over = json_pack("{s:s, s:[], s:i}", "is", "runs", "runs", "dealt", 1);
    assert_works(wire_send(channel, over, -1, &e), e);
    json_t *head = session_head(); /* SANDBOX_NETWORK has become public */
    json_object_set_new(head, "sessionNetwork", json_integer(NETWORK_PUBLIC));
    int caller = ask(w, head);
    json_auto_t *end = wire_recv(channel, NULL, deadline_in_ms(20000), &e);
    assert_string_equal(json_get_string(end, "do"), "end");
    close(caller);
    close(channel);
    bw_close(w);
}

static void one_that_is_not_back_yet_counts_and_its_callers_wait_for_it(void **state)
{
    struct broker_world *w = *state;
    struct broker_psandbox_request want = in_bash;
    struct err e = ERR_INIT;

    w->config.limits.persistent.tenant_max = 1;
    pid_t alive = leave_one(w, true);
    bw_start_broker(w);
    bw_wait_for(w, "running", 0);
    expect_refusal(w, "ann", &want, ERR_LIMIT, "SANDBOX_PERSISTENT_MAX");
    assert_null(broker_delete_conversation(bw_client(w, "ann"), "c", &e));
    assert_contains(e.text, "a persistent sandbox of this conversation is still open");
    static const char *const ops[] = {"exec", "session", "close_psandbox"};
    int callers[ARRAY_LEN(ops)];
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        callers[i] = ask(w, strcmp(ops[i], "session") == 0 ? session_head() : about(ops[i]));
        bw_wait_for(w, "running", 0); /* it has been heard */
    }
    AUTO_FD int channel = adopt(w, OF_BEFORE,
                                json_pack("{s:s, s:s}", "call", "session", "language", "python"));
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        expect_handed(channel, ops[i]);
    expect_refusal(w, "ann", &want, ERR_LIMIT, "SANDBOX_PERSISTENT_MAX"); /* it counts once: */
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        close(callers[i]);
    die(alive);
    close(TAKE_FD(channel));
    json_t *row = NULL; /* when it goes there is room at once */
    while (!(row = broker_create_psandbox(bw_client(w, "ann"), &want, &e)))
        poll(NULL, 0, 10);
    json_decref(row);
    bw_close(w);
}

static void one_that_does_not_come_back_is_busy_while_it_lives_and_lost_then(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;

    pid_t alive = leave_one(w, false);
    bw_start_broker(w);
    bw_expect_error(ask(w, about("exec")), ERR_BUSY, "restarted");
    int held = ask(w, about("exec"));
    bw_wait_for(w, "running", 0);
    die(alive);
    bw_expect_error(held, ERR_NOT_FOUND, "lost");
    json_auto_t *row = broker_close_psandbox(bw_client(w, "ann"), PSANDBOX_ID_PREFIX OF_BEFORE, &e);
    assert_string_equal(json_get_string(row, "status"), "lost");
    bw_close(w);
}

static bool is_cut(int channel)
{
    struct pollfd p = {.fd = channel, .events = POLLRDHUP};

    return poll(&p, 1, 0) > 0;
}

/* A frozen supervisor: a message for it is sent in part, and the rest never follows. */
static void one_that_does_not_read_loses_its_channel_and_comes_back_to_its_row(void **state)
{
    struct broker_world *w = *state;
    struct broker_psandbox_request want = in_bash;
    struct err e = ERR_INIT;

    w->config.limits.persistent.tenant_max = 1;
    pid_t alive = leave_one(w, false);
    bw_start_broker(w);
    AUTO_FD int deaf = adopt(w, OF_BEFORE, NULL);
    for (int i = 0; i < 2000 && !is_cut(deaf); i++) {
        close(ask(w, about("psandbox_logs")));
        if (i % 50 == 0)
            bw_wait_for(w, "running", 0); /* they have been heard */
    }
    assert_true(is_cut(deaf));
    int caller = ask(w, about("exec")); /* waits for it */
    bw_wait_for(w, "running", 0);
    AUTO_FD int channel = adopt(w, OF_BEFORE, NULL);
    expect_handed_at_last(channel, "exec"); /* after what else waited */
    await_row(w, channel);
    bw_wait_for(w, "sandboxes", 1);
    expect_refusal(w, "ann", &want, ERR_LIMIT, "SANDBOX_PERSISTENT_MAX");
    close(caller);
    die(alive);
    close(TAKE_FD(channel));
    json_t *row = NULL;
    while (!(row = broker_create_psandbox(bw_client(w, "ann"), &want, &e)))
        poll(NULL, 0, 10);
    json_decref(row);
    bw_close(w);
}

/* It has lost its channel, and the broker has not noticed yet. */
static void one_that_comes_back_twice_stands_once_in_the_books(void **state)
{
    struct broker_world *w = *state;

    bw_start_broker(w);
    AUTO_FD int first = adopt(w, OF_BEFORE, NULL);
    await_row(w, first);
    AUTO_FD int second = adopt(w, OF_BEFORE, NULL);
    struct deadline d = deadline_in_ms(20000);
    while (!is_cut(first)) {
        assert_false(deadline_passed(d));
        poll(NULL, 0, 5);
    }
    await_row(w, second);
    bw_wait_for(w, "sandboxes", 1);
    close(TAKE_FD(second));
    bw_close(w);
}

static void a_broker_that_is_relieved_ends_although_one_lives_on(void **state)
{
    struct broker_world *w = *state;
    struct deadline end = deadline_in_ms(20000);
    struct broker_psandbox_request want = in_bash;
    struct err e = ERR_INIT;

    want.conversation = "lingers";
    bw_start_broker(w);
    json_auto_t *row = broker_create_psandbox(bw_client(w, "ann"), &want, &e);
    pid_t sandbox_dir = (pid_t)json_get_integer(row, "pid", 0);
    assert_true(sandbox_dir > 0);
    poll(NULL, 0, 2500); /* nothing is due any more that would wake it */
    kill(w->pid, SIGHUP);
    while (waitpid(w->pid, NULL, WNOHANG) == 0) {
        if (deadline_passed(end))
            kill(sandbox_dir, SIGKILL);
        assert_false(deadline_passed(end));
        poll(NULL, 0, 10);
    }
    assert_int_equal(kill(sandbox_dir, SIGKILL), 0);
    bw_start_broker(w);
    bw_wait_for(w, "running", 0);
    bw_close(w);
}

static void one_of_a_conversation_keeps_its_files(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;

    bw_start_broker(w);
    AUTO_FREE char *id = create(w, "ann");
    die(leave_one(w, false)); /* the directory is there now */
    assert_null(broker_delete_conversation(bw_client(w, "ann"), "c", &e));
    assert_int_equal(e.kind, ERR_BUSY);
    assert_contains(e.text, "a persistent sandbox of this conversation is still open");
    close_psandbox(w, "ann", id);
    json_auto_t *gone = broker_delete_conversation(bw_client(w, "ann"), "c", &e);
    if (!gone)
        fail_msg("%s", e.text);
    assert_true(json_get_bool(gone, "deleted", 0));
    bw_close(w);
}

/* ---- of a conversation whose home is away ---- */

/* A port of this machine at which nothing listens yet. */
static int take_port(char home[32])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    snprintf(home, 32, "127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

static void wait_for_notes(int notes, int wanted)
{
    struct deadline end = deadline_in_ms(20000);

    for (;; poll(NULL, 0, 10)) {
        AUTO_DIR DIR *dir = fdopendir(openat(notes, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        int n = -2; /* the dots */
        while (readdir(dir))
            n++;
        if (n == wanted)
            return;
        if (deadline_passed(end))
            fail_msg("there are %d notes, not %d", n, wanted);
    }
}

static void one_keeps_its_files_when_the_home_of_its_conversation_is_back(void **state)
{
    struct broker_world *w = *state;
    struct sandbox sb = SANDBOX_INIT;
    char home[32], inside[SANDBOX_ID_MAX + 1], empty[SANDBOX_ID_MAX + 1];
    struct broker_psandbox_request want = in_bash;
    AUTO_FD int port = take_port(home);
    struct sandbox_root root;
    struct err e = ERR_INIT;

    w->config.is_node = true;
    assert_works(sandbox_root_open(&root, w->root, "", w->config.file_secret, "", geteuid(),
                                   getegid(), 0, &e),
                 e);
    assert_int_equal(mkdirat(root.fd, SESSIONS_DIR, 0700), 0);
    AUTO_FD int sessions = openat(root.fd, SESSIONS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(sessions, STAND_IN_DIR, 0700), 0);
    AUTO_FD int notes = openat(sessions, STAND_IN_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_works(stand_in_open(sessions, "ann", "one", home, inside, &e), e);
    assert_works(stand_in_open(sessions, "ann", "two", home, empty, &e), e);
    assert_works(sandbox_open(&root, "ann", inside, &sb, &e), e);
    sandbox_close(&sb); /* it is not in use */
    sandbox_root_close(&root);
    bw_start_broker(w);
    want.conversation = inside;
    json_auto_t *row = broker_create_psandbox(bw_client(w, "ann"), &want, &e);
    assert_int_equal(listen(port, 8), 0);
    wait_for_notes(notes, 1); /* of the second there is nothing */
    assert_null(broker_delete_conversation(bw_client(w, "ann"), inside, &e));
    assert_int_equal(e.kind, ERR_BUSY);
    close_psandbox(w, "ann", json_get_string(row, "sandboxId"));
    wait_for_notes(notes, 0);
    assert_null(broker_delete_conversation(bw_client(w, "ann"), inside, &e));
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    bw_close(w);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

static const struct CMUnitTest tests[] = {
    TEST(calls_reach_their_own_sandbox_and_no_other),
    TEST(a_tenant_has_its_most_and_the_server_too),
    TEST(what_must_not_be_made_is_refused),
    TEST(an_image_of_the_list_is_taken),
    TEST(a_session_has_one_sandbox_of_its_conversation),
    TEST(the_session_that_is_unused_longest_gives_way),
    TEST(what_runs_and_what_a_client_made_stay),
    TEST(sessions_of_others_give_way_to_a_tenant_without_one),
    TEST(sessions_give_way_to_what_has_less),
    TEST(the_use_of_a_session_is_known_to_the_next_broker),
    TEST(the_files_of_one_that_gives_way_stay_until_it_has_ended),
    TEST(one_of_a_broker_before_counts_and_gets_its_calls),
    TEST(another_version_is_met_at_a_reload),
    TEST(what_goes_on_in_the_background_in_one_counts_for_its_tenant),
    TEST(one_that_does_not_say_whose_it_is_is_not_taken),
    TEST(a_session_keeps_its_network_where_the_caller_may_have_one),
    TEST(a_session_is_not_given_up_for_one_that_cannot_begin),
    TEST(another_network_than_the_sessions_begins_another),
    TEST(one_that_is_not_back_yet_counts_and_its_callers_wait_for_it),
    TEST(one_that_does_not_come_back_is_busy_while_it_lives_and_lost_then),
    TEST(one_that_does_not_read_loses_its_channel_and_comes_back_to_its_row),
    TEST(one_that_comes_back_twice_stands_once_in_the_books),
    TEST(one_of_a_conversation_keeps_its_files),
    TEST(one_keeps_its_files_when_the_home_of_its_conversation_is_back),
    TEST(a_broker_that_is_relieved_ends_although_one_lives_on),
};
UNIT_TESTS(tests)
