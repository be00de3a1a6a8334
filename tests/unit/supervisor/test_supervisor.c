/* A run's supervisor: cold and warm, cancelled, left by its caller, polled, without a main process.
 */
#include "config.h"

#include "common/supervisor/container.h"
#include "tests/unit/supervisor/supervisor_world.h"

#define WORLD(w)                                                                                   \
    struct world w;                                                                                \
    world_open(&(w), *state)

/* ---- forked for a run ---- */

static void a_run_is_served_cold(void **state)
{
    WORLD(w);
    w.start.call.queue_ms = 5;
    int client = world_cold(&w, "out hello\nerr oops\nfile a.txt\nexit 3", NULL);
    json_auto_t *result = world_result(client, "error");

    world_expect_text(result, "stdout", "hello\n");
    world_expect_text(result, "stderr", "oops\n");
    world_expect_text(result, "output", "hello\noops\n");
    world_expect_text(result, "runId", WORLD_RUN_ID);
    assert_int_equal(json_get_integer(result, "exitCode", -1), 3);
    assert_int_equal(json_get_integer(result, "queueMs", -1), 5);
    assert_int_equal(json_array_size(json_object_get(result, "files")), 1);
    assert_null(json_object_get(result, "expiresAt"));
    world_expect_is(&w, "running", NULL);
    world_expect_is(&w, "ended", NULL);
    world_expect_end(&w, WORLD_LONG);
    assert_false(world_has_record(&w));
}

/* The answer to a run that asked for opened files; what came with it. */
static void hear_opened(int fd, struct fds *out)
{
    json_auto_t *message = world_hear_with_fds(fd, out);

    assert_non_null(json_object_get(message, "result"));
    close(fd);
}

static void the_first_files_come_opened_if_the_caller_wants_them_so(void **state)
{
    AUTO_BUF struct buf many = BUF_INIT(1000);

    for (int i = 0; i < FDS_MAX + 4; i++)
        buf_addf(&many, "file f%02d\n", i);
    for (int opened = 0; opened <= 1; opened++) {
        WORLD(w);
        AUTO_FDS struct fds files = FDS_INIT(FDS_MAX);
        hear_opened(world_cold(&w, buf_str(&many), json_pack("{s:b}", "openFiles", opened)),
                    &files);
        assert_int_equal(files.n, opened ? FDS_MAX : 0);
        for (size_t i = 0; i < files.n; i++) {
            char x = 0;
            assert_int_equal(pread(files.at[i], &x, 1, 0), 1);
            assert_int_equal(x, 'x');
        }
        world_expect_end(&w, WORLD_LONG);
    }
}

static void what_passes_a_limit_is_refused_before_a_container_is_made(void **state)
{
    char code[5000];

    memset(code, 'x', sizeof code - 1);
    code[sizeof code - 1] = '\0';
    for (int i = 0; i < 3; i++) {
        WORLD(w);
        static const enum err_kind kinds[] = {ERR_LIMIT, ERR_DENIED, ERR_LIMIT};
        static const char *const parts[] = {"code is 4999 bytes", "SANDBOX_NETWORK",
                                            "timeoutMs is"};
        json_t *more = i == 1   ? json_pack("{s:i}", "network", NETWORK_LAN)
                       : i == 2 ? json_pack("{s:i}", "timeoutMs", 99999999)
                                : NULL;
        int client = world_cold(&w, i == 0 ? code : "out x", more);
        world_expect_error(client, kinds[i], parts[i]);
        world_expect_end(&w, WORLD_LONG);
        assert_int_equal(fake_container->starts, 0);
    }
}

static void an_engine_that_is_away_is_told(void **state)
{
    WORLD(w);
    fake_container->failing = 1;
    int client = world_cold(&w, "out x", NULL);
    world_expect_error(client, ERR_UNAVAILABLE, "the engine is away");
    world_expect_end(&w, WORLD_LONG);
    assert_false(world_has_record(&w));
}

static void a_body_that_never_comes_whole_is_no_run(void **state)
{
    WORLD(w);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(write(pair[0], "\0\0\1\0{", 5), 5);
    close(pair[0]);
    w.start.call.connection = pair[1];
    w.head = json_pack("{s:s, s:s, s:s, s:s}", "op", "run", "tenant", "ann", "conversationId",
                       "chat", "language", "python");
    world_go(&w);
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 0);
}

/* ---- warm ---- */

static void go_on_warm_dir(struct world *w)
{
    struct err e = ERR_INIT;

    assert_works(warm_dir_make(&w->f->root, w->warm_dir, &e), e);
    w->start.warm_dir = w->warm_dir;
    world_go(w);
}

static void wait_on_warm_dir(struct world *w)
{
    go_on_warm_dir(w);
    world_expect_is(w, "waiting", "started");
}

static bool warm_dir_exists(const struct world *w)
{
    AUTO_FREE char *path = warm_dir_host_path(&w->f->root, w->warm_dir);

    return access(path, F_OK) == 0;
}

static void a_waiting_container_gets_its_run(void **state)
{
    WORLD(w);
    wait_on_warm_dir(&w);
    int client = world_claim(&w, "out hi\nfile made.txt", NULL);
    json_auto_t *result = world_result(client, "ok");

    world_expect_text(result, "stdout", "hi\n");
    assert_int_equal(json_get_integer(result, "queueMs", -1), 7);
    assert_int_equal(json_array_size(json_object_get(result, "files")), 1);
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 1);
    assert_false(warm_dir_exists(&w));
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    assert_works(sandbox_find(&w.f->root, "ann", "chat", &sb, &w.f->e), w.f->e);
    assert_int_equal(faccessat(sb.fd, "made.txt", F_OK, 0), 0);
}

static void a_waiting_container_takes_no_command(void **state)
{
    WORLD(w);
    wait_on_warm_dir(&w);
    world_expect_error(world_hand(&w, "exec", NULL), ERR_INVALID, "no such operation");
    json_decref(world_result(world_claim(&w, "out x", NULL), "ok"));
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 1);
}

static void a_sandbox_that_exists_meanwhile_gets_another_container(void **state)
{
    WORLD(w);
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    wait_on_warm_dir(&w);
    assert_works(sandbox_open(&w.f->root, "ann", "chat", &sb, &w.f->e), w.f->e);
    int client = world_claim(&w, "file b.txt", NULL);
    json_auto_t *result = world_result(client, "ok");
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(json_array_size(json_object_get(result, "files")), 1);
    assert_int_equal(fake_container->starts, 2);
    assert_int_equal(faccessat(sb.fd, "b.txt", F_OK, 0), 0);
    assert_true(warm_dir_exists(&w)); /* untouched */
}

static void a_known_conversations_container_waits_on_its_sandbox(void **state)
{
    WORLD(w);
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    assert_works(sandbox_open(&w.f->root, "ann", "chat", &sb, &w.f->e), w.f->e);
    w.start.call.sandbox_dir = sb.name;
    world_go(&w);
    world_expect_is(&w, "waiting", "started");
    json_decref(world_result(world_claim(&w, "out x", NULL), "ok"));
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 1);
}

static void a_container_on_another_sandbox_does_not_serve(void **state)
{
    WORLD(w);
    w.start.call.sandbox_dir = w.f->sb.name; /* of another conversation */
    world_go(&w);
    world_expect_is(&w, "waiting", "started");
    json_decref(world_result(world_claim(&w, "file c.txt", NULL), "ok"));
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 2);
    assert_int_equal(faccessat(w.f->sb.fd, "c.txt", F_OK, 0), -1);
}

static void tell(struct world *w, const char *word)
{
    struct err e = ERR_INIT;
    json_auto_t *message = json_pack("{s:s}", "do", word);

    assert_works(wire_send(w->channel, message, -1, &e), e);
}

static void it_preloads_when_told(void **state)
{
    WORLD(w);
    wait_on_warm_dir(&w);
    tell(&w, "preload");
    world_expect_is(&w, "waiting", "preloaded");
    auto_close_fd(&w.channel); /* not wanted any more */
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->preloads, 1);
    assert_true(warm_dir_exists(&w)); /* it is the main process's */
}

/* Waits until the container has been told to load. */
static void load_fast(struct world *w)
{
    w->config.container.cpu_milli = 500;
    wait_on_warm_dir(w);
    tell(w, "preload_fast");
    for (int i = 0; fake_container->preloads == 0 && i < WORLD_LONG; i++)
        usleep(1000);
    assert_int_equal(fake_container->preloads, 1);
}

static void it_loads_with_a_higher_limit_and_serves_with_its_own(void **state)
{
    WORLD(w);
    load_fast(&w);
    world_expect_is(&w, "waiting", "preloaded");
    assert_int_equal(fake_container->load_cpu_milli, 2000);
    assert_int_equal(fake_container->cpu_milli, 500); /* when it is said to be preloaded */
    json_decref(world_result(world_claim(&w, "out x", NULL), "ok"));
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 1);
    assert_int_equal(fake_container->run_cpu_milli, 500);
}

static void a_limit_is_not_raised_without_need(void **state)
{
    static const struct {
        const char *word;
        uint64_t cpu_milli;
        bool paces;
    } cases[] = {{"preload", 500, false},
                 {"preload_fast", 0, false},
                 {"preload_fast", 4000, false},
                 {"preload_fast", 500, true}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        WORLD(w);
        w.config.container.cpu_milli = cases[i].cpu_milli;
        fake_container->paces = cases[i].paces;
        wait_on_warm_dir(&w);
        tell(&w, cases[i].word);
        world_expect_is(&w, "waiting", "preloaded");
        assert_int_equal(fake_container->load_cpu_milli, cases[i].cpu_milli);
        assert_int_equal(fake_container->cpu_milli, cases[i].cpu_milli);
        auto_close_fd(&w.channel);
        world_expect_end(&w, WORLD_LONG);
    }
}

static void a_container_of_several_languages_is_told_that_of_the_run(void **state)
{
    for (int protocol = 2; protocol <= 3; protocol++) {
        WORLD(w);
        w.items[0].protocol = protocol;
        wait_on_warm_dir(&w);
        json_decref(world_result(world_claim(&w, "out x", NULL), "ok"));
        world_expect_end(&w, WORLD_LONG);
        assert_string_equal(fake_container->language, protocol == 3 ? "python" : "");
    }
}

static void a_claim_may_come_while_it_loads(void **state)
{
    WORLD(w);
    fake_container->loads = true;
    load_fast(&w);
    assert_int_equal(fake_container->cpu_milli, 2000);
    json_decref(world_result(world_claim(&w, "out x", NULL), "ok"));
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 1);
    assert_int_equal(fake_container->run_cpu_milli, 500);
}

static void a_container_whose_limit_is_not_known_gets_no_run(void **state)
{
    for (int loads = 0; loads <= 1; loads++) {
        WORLD(w);
        fake_container->loads = loads;
        fake_container->failing_limits = 2; /* whether it is raised, whether it is set back */
        load_fast(&w);
        if (loads)
            json_decref(world_result(world_claim(&w, "out x", NULL), "ok"));
        world_expect_end(&w, WORLD_LONG);
        assert_int_equal(fake_container->starts, 1 + loads);
        assert_int_equal(fake_container->run_cpu_milli, loads ? 500 : 0);
    }
}

static void libraries_for_a_program_have_a_higher_limit_and_it_has_its_own(void **state)
{
    static const struct {
        bool paces;
        int failing_limits, starts; /* failing: whether it is raised, and whether it is set back */
        uint64_t load_cpu_milli;
    } cases[] = {{false, 0, 1, 2000}, {true, 0, 1, 500}, {false, 2, 2, 2000}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        WORLD(w);
        w.config.container.cpu_milli = 500;
        fake_container->paces = cases[i].paces;
        fake_container->failing_limits = cases[i].failing_limits;
        json_auto_t *result = world_result(world_cold(&w, "load\nout x", NULL), "ok");
        world_expect_text(result, "stdout", "x\n");
        world_expect_end(&w, WORLD_LONG);
        assert_int_equal(fake_container->starts, cases[i].starts);
        assert_int_equal(fake_container->load_cpu_milli, cases[i].load_cpu_milli);
        assert_int_equal(fake_container->run_cpu_milli, 500);
    }
}

static void a_run_that_a_limit_ends_is_asked_what_it_has_used(void **state)
{
    WORLD(w);
    json_auto_t *result = world_result(
        world_cold(&w, "sleep 60000", json_pack("{s:i}", "timeoutMs", 50)), "timeout");

    assert_int_equal(json_get_integer(result, "cpuMs", 0), FAKE_KILLED_CPU_US / 1000);
    assert_int_equal(json_get_integer(result, "peakMemoryBytes", 0), FAKE_KILLED_MEMORY);
    assert_int_equal(json_get_integer(result, "signal", 0), SIGKILL);
    world_expect_end(&w, WORLD_LONG);
}

static void a_run_that_ends_while_its_libraries_are_loaded_leaves_no_container(void **state)
{
    WORLD(w);
    w.config.container.cpu_milli = 500;
    w.start.reuse = true;
    json_decref(world_result(world_cold(&w, "load forever", json_pack("{s:i}", "timeoutMs", 50)),
                             "timeout"));
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->cpu_milli, 2000);
    assert_int_equal(fake_container->wipes, 0);
}

static void a_waiting_container_that_dies_ends_its_supervisor(void **state)
{
    WORLD(w);
    fake_container->dies_after_ms = 50;
    wait_on_warm_dir(&w);
    world_expect_end(&w, WORLD_LONG);
}

static void while_it_starts_it_ends_with_the_main_process(void **state)
{
    WORLD(w);
    fake_container->start_ms = 60000;
    w.start.call.sandbox_dir = w.f->sb.name;
    world_go(&w);
    auto_close_fd(&w.channel);
    world_expect_end(&w, WORLD_LONG);
}

static void a_claim_may_come_while_it_starts(void **state)
{
    WORLD(w);
    fake_container->start_ms = 200;
    go_on_warm_dir(&w);
    json_decref(world_result(world_claim(&w, "out x", NULL), "ok"));
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 1);
}

/* The main process counts a container as starting until its interpreter says that it waits. */
static void a_claim_may_come_while_it_boots(void **state)
{
    static const char *const words[] = {"running", "started", "ended"};
    WORLD(w);
    fake_container->boots = true;
    go_on_warm_dir(&w);
    while (fake_container->alive == 0)
        poll(NULL, 0, 1);
    int client = world_claim(&w, "out x", NULL);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        json_auto_t *message = world_hear(w.channel);
        assert_non_null(message);
        assert_string_equal(json_get_string(message, "is"), words[i]);
    }
    json_decref(world_result(client, "ok"));
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 1);
}

static void a_claim_survives_a_start_that_fails(void **state)
{
    WORLD(w);
    fake_container->start_ms = 200;
    fake_container->failing = 1;
    go_on_warm_dir(&w);
    json_decref(world_result(world_claim(&w, "out x", NULL), "ok"));
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 2);
}

static void a_container_that_is_gone_at_the_claim_is_replaced_twice(void **state)
{
    for (int gone = 1; gone <= 3; gone++) {
        WORLD(w);
        fake_container->gone_at_run = gone;
        w.start.call.sandbox_dir = w.f->sb.name;
        world_go(&w);
        world_expect_is(&w, "waiting", "started");
        int client = world_claim(
            &w, "out x", json_pack("{s:s, s:s}", "tenant", "default", "conversationId", "talk"));
        if (gone <= 2)
            json_decref(world_result(client, "ok"));
        else
            world_expect_error(client, ERR_LOST, "gone");
        world_expect_end(&w, WORLD_LONG);
        assert_int_equal(fake_container->starts, gone < 3 ? 1 + gone : 3);
    }
}

/* ---- cancelled ---- */

static void a_run_is_cancelled_in_every_phase(void **state)
{
    for (int ms = 0; ms <= 300; ms += 60) {
        WORLD(w);
        struct deadline soon = deadline_in_ms(20000);
        fake_container->start_ms = 150;
        int client = world_cold(&w, "out begun\nsleep 60000", NULL);
        usleep((useconds_t)ms * 1000);
        world_say_cancel(client);
        json_decref(world_result(client, "cancelled"));
        world_expect_end(&w, WORLD_LONG);
        assert_false(deadline_passed(soon));
        assert_false(world_has_record(&w));
    }
}

static void a_cancel_counts_that_comes_with_the_hang_up(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "sleep 60000", NULL);
    world_say_cancel(client);
    close(client);
    world_expect_end(&w, WORLD_LONG);
    assert_false(world_has_record(&w));
}

static void cancel_run_ends_it_for_everybody(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "out begun\nsleep 60000", NULL);
    world_expect_is(&w, "running", NULL);
    int other = world_hand(&w, "cancel_run", NULL);
    json_decref(world_result(other, "cancelled"));
    json_auto_t *result = world_result(client, "cancelled");
    world_expect_end(&w, WORLD_LONG);
    assert_true(json_is_null(json_object_get(result, "exitCode")));
}

/* ---- kept ---- */

static void a_caller_that_leaves_finds_the_result_later(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "await\nout done", NULL);
    world_expect_is(&w, "running", NULL);
    close(client);
    fake_container->goes++;
    world_expect_end(&w, WORLD_LONG);
    json_auto_t *result = world_record(&w);
    world_expect_text(result, "status", "ok");
    world_expect_text(result, "stdout", "done\n");
    assert_true(json_get_integer(result, "expiresAt", 0) > clock_unix_s());
}

static void who_waits_long_enough_is_answered_before_the_end(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "out first\nawait\nout last", json_pack("{s:i}", "waitMs", 200));
    json_auto_t *early = world_result(client, "running");
    world_expect_text(early, "stdout", "first\n");
    assert_int_equal(json_get_integer(early, "nextByte", -1), 6);
    assert_true(json_is_null(json_object_get(early, "exitCode")));
    assert_true(json_get_integer(early, "expiresAt", 0) > clock_unix_s());
    assert_true(world_has_record(&w)); /* before it was told */

    int poll = world_hand(&w, "get_run",
                          json_pack("{s:i, s:i}", "waitMs", WORLD_LONG, "sinceByte", 6));
    fake_container->goes++;
    json_auto_t *late = world_result(poll, "ok");
    world_expect_text(late, "newOutput", "last\n");
    world_expect_text(late, "stdout", "first\nlast\n");
    assert_int_equal(json_get_integer(late, "nextByte", -1), 11);
    world_expect_end(&w, WORLD_LONG);
    json_auto_t *kept = world_record(&w);
    world_expect_text(kept, "stdout", "first\nlast\n");
}

static void what_it_waited_in_the_queue_counts_as_waiting(void **state)
{
    WORLD(w);
    w.start.call.queue_ms = 60000;
    int client = world_cold(&w, "await", json_pack("{s:i}", "waitMs", 30000));
    json_decref(world_result(client, "running"));
    fake_container->goes++;
    world_expect_end(&w, WORLD_LONG);
}

static void a_background_run_is_answered_at_once(void **state)
{
    WORLD(w);
    fake_container->start_ms = 100;
    int client = world_cold(&w, "out x", json_pack("{s:b}", "background", 1));
    json_auto_t *early = world_result(client, "running");
    world_expect_text(early, "runId", WORLD_RUN_ID);
    assert_int_equal(fake_container->runs, 0);
    world_expect_end(&w, WORLD_LONG);
    json_auto_t *kept = world_record(&w);
    world_expect_text(kept, "status", "ok");
}

static void a_background_run_that_cannot_start_is_lost_with_a_reason(void **state)
{
    WORLD(w);
    fake_container->failing = 1;
    fake_container->start_ms = 100;
    int client = world_cold(&w, "out x", json_pack("{s:b}", "background", 1));
    json_decref(world_result(client, "running"));
    world_expect_end(&w, WORLD_LONG);
    json_auto_t *kept = world_record(&w);
    world_expect_text(kept, "status", "lost");
    world_expect_text(kept, "reason", "the engine is away");
}

static void a_full_disk_does_not_end_the_run(void **state)
{
    WORLD(w);
    w.full_disk = true;
    int client = world_cold(&w, "sleep 100\nout x", json_pack("{s:b}", "background", 1));
    json_auto_t *early = world_result(client, "running");
    assert_contains(json_get_string(early, "notKept"), "File too large");
    assert_null(json_object_get(early, "expiresAt"));
    int poll = world_hand(&w, "get_run", json_pack("{s:i}", "waitMs", WORLD_LONG));
    json_auto_t *late = world_result(poll, "ok");
    world_expect_text(late, "stdout", "x\n");
    assert_non_null(json_object_get(late, "notKept"));
    world_expect_end(&w, WORLD_LONG);
    assert_false(world_has_record(&w));
}

/* ---- one run after the other ---- */

#define SECOND_ID "aaaaaaaaaaaaaaaaaaaaaaaa"

static void reuse(struct world *w)
{
    w->start.reuse = true;
}

/* A wipe may end before a run is refused that came meanwhile. */
static void expect_ended(struct world *w, bool reusable)
{
    json_auto_t *message = world_hear(w->channel);
    const char *is = json_get_string(message, "is");

    if (strcmp(is, "started") == 0 || strcmp(is, "waiting") == 0) {
        expect_ended(w, reusable);
        return;
    }
    assert_string_equal(is, "ended");
    assert_int_equal(json_get_bool(message, "reusable", !reusable), reusable);
}

/* A first run, in a container that waited, and the order to wipe it. */
static void serve_first(struct world *w, const char *code)
{
    reuse(w);
    wait_on_warm_dir(w);
    json_decref(world_result(world_claim(w, code, NULL), "ok"));
    world_expect_is(w, "running", NULL);
    expect_ended(w, true);
    tell(w, "next");
    w->run_id = SECOND_ID;
}

static void serve_second(struct world *w, const char *code, int starts)
{
    json_auto_t *result = world_result(world_claim(w, code, NULL), "ok");

    world_expect_text(result, "runId", SECOND_ID);
    auto_close_fd(&w->channel);
    world_expect_end(w, WORLD_LONG);
    assert_int_equal(fake_container->starts, starts);
    assert_false(run_lock_reap(w->f->root.fd, SECOND_ID));
}

static int count_descriptors(pid_t pid)
{
    AUTO_FREE char *path = mem_printf("/proc/%d/fd", (int)pid);
    AUTO_DIR DIR *dir = opendir(path);
    int n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    return n;
}

static void a_container_serves_the_next_run_too(void **state)
{
    WORLD(w);
    serve_first(&w, "out one\nfile a.txt");
    world_expect_is(&w, "waiting", "started");
    int before = count_descriptors(w.pid);
    json_auto_t *result = world_result(world_claim(&w, "out two\nfile b.txt", NULL), "ok");
    world_expect_text(result, "runId", SECOND_ID);
    world_expect_text(result, "stdout", "two\n");
    world_expect_text(result, "output", "two\n");
    assert_int_equal(json_array_size(json_object_get(result, "files")), 1);
    world_expect_is(&w, "running", NULL);
    expect_ended(&w, true);
    tell(&w, "next");
    world_expect_is(&w, "waiting", "started");
    assert_int_equal(count_descriptors(w.pid), before); /* nothing of a run stays open */
    auto_close_fd(&w.channel);
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 1);
    assert_int_equal(fake_container->wipes, 2);
    assert_false(warm_dir_exists(&w));
}

static void it_serves_runs_in_all_languages_of_its_image(void **state)
{
    WORLD(w);
    w.items[0].protocol = w.items[1].protocol = 3;
    serve_first(&w, "out one");
    assert_string_equal(fake_container->language, "python");
    world_expect_is(&w, "waiting", "started");
    json_decref(
        world_result(world_claim(&w, "out two", json_pack("{s:s}", "language", "bash")), "ok"));
    assert_string_equal(fake_container->language, "bash");
    world_expect_is(&w, "running", NULL);
    expect_ended(&w, true);
    tell(&w, "next");
    world_expect_is(&w, "waiting", "started");
    AUTO_FD int other = world_claim(&w, "out no", json_pack("{s:s}", "language", "perl"));
    assert_null(world_hear(other)); /* the main process gives it to another */
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 1);
}

static void one_that_was_forked_for_its_run_may_be_used_again(void **state)
{
    WORLD(w);
    reuse(&w);
    json_decref(world_result(world_cold(&w, "out one", NULL), "ok"));
    world_expect_is(&w, "running", NULL);
    world_expect_is(&w, "ended", NULL);
    tell(&w, "next");
    w.run_id = SECOND_ID;
    world_expect_is(&w, "waiting", "started");
    serve_second(&w, "out two", 1);
}

static void only_an_orderly_run_leaves_a_container_for_the_next(void **state)
{
    static const struct {
        const char *code;
        bool reuse, network, single_use;
        enum run_status status;
    } cases[] = {{"out x", false, false, false, RUN_OK},
                 {"exit 3", true, false, false, RUN_ERROR},
                 {"sleep 60000", true, false, false, RUN_TIMEOUT},
                 {"flood 200", true, false, false, RUN_OUTPUT_LIMIT},
                 {"out x", true, true, false, RUN_OK},
                 {"out x", true, false, true, RUN_OK}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        WORLD(w);
        w.start.reuse = cases[i].reuse;
        w.config.limits.network = NETWORK_PUBLIC;
        w.config.limits.output_max = 100000;
        int client = world_cold(&w, cases[i].code,
                                json_pack("{s:i, s:i, s:b}", "timeoutMs", 300, "network",
                                          cases[i].network ? NETWORK_PUBLIC : NETWORK_NONE,
                                          "singleUse", cases[i].single_use));
        json_decref(world_result(client, run_status_name(cases[i].status)));
        world_expect_is(&w, "running", NULL);
        world_expect_is(&w, "ended", NULL);
        tell(&w, "next"); /* whatever the main process wants */
        auto_close_fd(&w.channel);
        world_expect_end(&w, WORLD_LONG);
        assert_int_equal(fake_container->wipes, i == 1);
    }
}

static void only_a_container_that_stays_loads_what_a_program_needs(void **state)
{
    static const struct {
        bool takes, reuse, single_use;
        const char *imports, *load;
    } cases[] = {{true, true, false, "numpy", "numpy"},
                 {true, true, false, "json", ""},
                 {false, true, false, "numpy", ""},
                 {true, false, false, "numpy", ""},
                 {true, true, true, "numpy", ""}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        WORLD(w);
        w.start.reuse = cases[i].reuse;
        w.items[0].load = cases[i].takes;
        json_decref(world_result(world_cold(&w, "out x",
                                            json_pack("{s:[s], s:b}", "imports", cases[i].imports,
                                                      "singleUse", cases[i].single_use)),
                                 "ok"));
        world_expect_is(&w, "running", NULL);
        world_expect_is(&w, "ended", NULL);
        auto_close_fd(&w.channel);
        world_expect_end(&w, WORLD_LONG);
        assert_string_equal(fake_container->load, cases[i].load);
    }
}

static void without_an_order_the_container_goes(void **state)
{
    WORLD(w);
    reuse(&w);
    json_decref(world_result(world_cold(&w, "out one", NULL), "ok"));
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->wipes, 0);
}

static void what_is_asked_late_is_answered_before_the_next_run(void **state)
{
    WORLD(w);
    reuse(&w);
    json_decref(world_result(world_cold(&w, "out one", NULL), "ok"));
    world_expect_is(&w, "running", NULL);
    world_expect_is(&w, "ended", NULL);
    int late = world_hand(&w, "get_run", NULL); /* the main process has not heard of the end yet */
    tell(&w, "next");
    json_auto_t *result = world_result(late, "ok");
    world_expect_text(result, "stdout", "one\n");
    world_expect_is(&w, "waiting", "started");
    world_expect_error(world_hand(&w, "get_run", NULL), ERR_NOT_FOUND, "no such run");
    auto_close_fd(&w.channel);
    world_expect_end(&w, WORLD_LONG);
}

static void doubt_is_told_and_the_container_gone(void **state)
{
    WORLD(w);
    fake_container->doubts = 1;
    serve_first(&w, "out one");
    world_expect_is(&w, "doubted", NULL);
    world_expect_end(&w, WORLD_LONG);
}

static void a_claim_waits_for_the_wipe_but_not_for_long(void **state)
{
    for (int slow = 0; slow <= 1; slow++) {
        WORLD(w);
        fake_container->wipe_ms = slow ? 60000 : 20;
        serve_first(&w, "out one");
        serve_second(&w, "out two", fake_container->starts + slow);
    }
}

static void a_claim_that_meets_doubt_gets_another_container(void **state)
{
    WORLD(w);
    fake_container->doubts = 1;
    fake_container->wipe_ms = 50;
    serve_first(&w, "out one");
    serve_second(&w, "out two", 2);
}

/* More files in the conversation than FILES_MAX, or none. */
#define FILES_MAX 2

static void fill(struct world *w, bool full)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct err e = ERR_INIT;

    assert_works(sandbox_open(&w->f->root, "ann", "chat", &sb, &e), e);
    for (char name[] = "0"; name[0] < '0' + FILES_MAX + 1; name[0]++) {
        AUTO_FD int fd = full ? openat(sb.fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;
        assert_true(full ? fd >= 0 : unlinkat(sb.fd, name, 0) == 0);
    }
}

static void a_refused_run_leaves_the_container_for_the_next(void **state)
{
    /* late: it was taken, and its files are too many. A run that was taken waits for a wipe only so
     * long. */
    for (int i = 0; i < 3; i++) {
        const bool wiping = i == 1, late = i == 2;
        WORLD(w);
        w.f->root.bounds.files = FILES_MAX;
        fake_container->wipe_ms = wiping ? 50 : 0;
        serve_first(&w, "out one");
        if (!wiping)
            world_expect_is(&w, "waiting", "started");
        if (late)
            fill(&w, true);
        json_t *more = json_pack("{s:i}", "timeoutMs", late ? 1000 : 99999999);
        world_expect_error(world_claim(&w, "out two", more), ERR_LIMIT, late ? "files" : "timeout");
        if (late)
            world_expect_is(&w, "running", NULL);
        expect_ended(&w, true);
        if (late)
            fill(&w, false);
        tell(&w, "next");
        world_expect_is(&w, "waiting", "started");
        serve_second(&w, "out three", fake_container->starts);
        assert_int_equal(fake_container->wipes, 1);
    }
}

static void a_refused_run_ends_a_container_that_has_served_none(void **state)
{
    WORLD(w);
    reuse(&w);
    wait_on_warm_dir(&w);
    world_expect_error(world_claim(&w, "out x", json_pack("{s:i}", "timeoutMs", 99999999)),
                       ERR_LIMIT, "timeout");
    world_expect_end(&w, WORLD_LONG);
}

static void a_run_that_wants_a_container_for_itself_gets_one(void **state)
{
    WORLD(w);
    serve_first(&w, "out one");
    world_expect_is(&w, "waiting", "started");
    json_decref(world_result(world_claim(&w, "out two", json_pack("{s:b}", "singleUse", 1)), "ok"));
    world_expect_is(&w, "running", NULL);
    expect_ended(&w, false);
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 2);
    assert_int_equal(fake_container->wipes, 1);
}

static void a_second_run_is_kept_by_its_own_id(void **state)
{
    WORLD(w);
    serve_first(&w, "out one");
    world_expect_is(&w, "waiting", "started");
    int client = world_claim(&w, "await\nout two", json_pack("{s:i}", "waitMs", 50));
    json_decref(world_result(client, "running"));
    assert_true(run_lock_reap(w.f->root.fd, SECOND_ID)); /* it is held */
    world_expect_is(&w, "running", NULL);
    int poll = world_hand(&w, "get_run", json_pack("{s:i}", "waitMs", WORLD_LONG));
    fake_container->goes++;
    json_auto_t *late = world_result(poll, "ok");
    world_expect_text(late, "runId", SECOND_ID);
    expect_ended(&w, true);
    tell(&w, "next");
    world_expect_is(&w, "waiting", "started");
    assert_false(run_lock_reap(w.f->root.fd, SECOND_ID));
    assert_true(run_lock_reap(w.f->root.fd, WORLD_RUN_ID)); /* the container's */
    json_auto_t *kept = world_record(&w);
    world_expect_text(kept, "stdout", "two\n");
    auto_close_fd(&w.channel);
    world_expect_end(&w, WORLD_LONG);
}

static void a_second_run_is_cancelled_by_its_own_id(void **state)
{
    WORLD(w);
    serve_first(&w, "out one");
    world_expect_is(&w, "waiting", "started");
    int client = world_claim(&w, "sleep 60000", NULL);
    world_expect_is(&w, "running", NULL);
    w.run_id = WORLD_RUN_ID;
    world_expect_error(world_hand(&w, "cancel_run", NULL), ERR_NOT_FOUND, "no such run");
    w.run_id = SECOND_ID;
    json_decref(world_result(world_hand(&w, "cancel_run", NULL), "cancelled"));
    json_decref(world_result(client, "cancelled"));
    expect_ended(&w, false);
    world_expect_end(&w, WORLD_LONG);
}

/* ---- the wall ---- */

static void another_run_than_the_first_ones_conversations_gets_another_container(void **state)
{
    static const char *const more[] = {"{\"tenant\":\"eve\"}", "{\"conversationId\":\"talk\"}"};

    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        WORLD(w);
        serve_first(&w, "out one");
        world_expect_is(&w, "waiting", "started");
        int starts = fake_container->starts;
        json_t *take = json_loads(more[i], 0, NULL);
        json_decref(world_result(world_claim(&w, "out two", take), "ok"));
        auto_close_fd(&w.channel);
        world_expect_end(&w, WORLD_LONG);
        assert_int_equal(fake_container->starts, starts + 1);
    }
}

/* Its body is unread: the main process gives it to another. */
static void a_run_for_a_newer_image_is_left_alone(void **state)
{
    char first;

    WORLD(w);
    serve_first(&w, "out one");
    world_expect_is(&w, "waiting", "started");
    w.image_id = "sha256:2";
    int theirs, client = world_ask("out two", NULL, &w.head, &theirs);
    AUTO_FD int kept = dup(theirs); /* as the main process keeps it */
    world_pass(&w, TAKE_PTR(w.head), theirs);
    world_expect_end(&w, WORLD_LONG);
    assert_int_equal(fake_container->starts, 1);
    assert_int_equal(recv(kept, &first, 1, MSG_PEEK | MSG_DONTWAIT), 1);
    close(client);
}

#define USE(who, chat, dev, ino, uid, gid, image)                                                  \
    {                                                                                              \
        who, chat, image,                                                                          \
        {                                                                                          \
            .st_dev = dev, .st_ino = ino, .st_uid = uid, .st_gid = gid                             \
        }                                                                                          \
    }

static void every_difference_keeps_a_run_out(void **state)
{
    char ann[] = "ann", bob[] = "bob", chat[] = "chat", talk[] = "talk";
    const struct container_use it = USE(ann, chat, 1, 2, 1000, 1001, "sha256:1");
    const struct container_use others[] = {
        USE(bob, chat, 1, 2, 1000, 1001, "sha256:1"), USE(NULL, chat, 1, 2, 1000, 1001, "sha256:1"),
        USE(ann, talk, 1, 2, 1000, 1001, "sha256:1"), USE(ann, NULL, 1, 2, 1000, 1001, "sha256:1"),
        USE(ann, chat, 9, 2, 1000, 1001, "sha256:1"), USE(ann, chat, 1, 9, 1000, 1001, "sha256:1"),
        USE(ann, chat, 1, 2, 9, 1001, "sha256:1"),    USE(ann, chat, 1, 2, 1000, 9, "sha256:1"),
        USE(ann, chat, 1, 2, 1000, 1001, "sha256:2"), USE(ann, chat, 1, 2, 1000, 1001, NULL),
    };
    struct container_use unused = it;

    (void)state;
    unused.tenant = unused.conversation = NULL;
    assert_true(container_may_serve(&it, &it));
    assert_true(container_may_serve(&unused, &it));
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_false(container_may_serve(&it, &others[i]));
        assert_int_equal(container_may_serve(&unused, &others[i]), i < 4);
    }
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

static const struct CMUnitTest tests[] = {
    with_fixture(a_run_is_served_cold),
    with_fixture(the_first_files_come_opened_if_the_caller_wants_them_so),
    with_fixture(what_passes_a_limit_is_refused_before_a_container_is_made),
    with_fixture(an_engine_that_is_away_is_told),
    with_fixture(a_body_that_never_comes_whole_is_no_run),
    with_fixture(a_waiting_container_gets_its_run),
    with_fixture(a_waiting_container_takes_no_command),
    with_fixture(a_sandbox_that_exists_meanwhile_gets_another_container),
    with_fixture(a_known_conversations_container_waits_on_its_sandbox),
    with_fixture(a_container_on_another_sandbox_does_not_serve),
    with_fixture(it_preloads_when_told),
    with_fixture(it_loads_with_a_higher_limit_and_serves_with_its_own),
    with_fixture(a_limit_is_not_raised_without_need),
    with_fixture(a_container_of_several_languages_is_told_that_of_the_run),
    with_fixture(a_claim_may_come_while_it_loads),
    with_fixture(libraries_for_a_program_have_a_higher_limit_and_it_has_its_own),
    with_fixture(a_run_that_a_limit_ends_is_asked_what_it_has_used),
    with_fixture(a_run_that_ends_while_its_libraries_are_loaded_leaves_no_container),
    with_fixture(a_container_whose_limit_is_not_known_gets_no_run),
    with_fixture(a_waiting_container_that_dies_ends_its_supervisor),
    with_fixture(while_it_starts_it_ends_with_the_main_process),
    with_fixture(a_claim_may_come_while_it_starts),
    with_fixture(a_claim_may_come_while_it_boots),
    with_fixture(a_claim_survives_a_start_that_fails),
    with_fixture(a_container_that_is_gone_at_the_claim_is_replaced_twice),
    with_fixture(a_run_is_cancelled_in_every_phase),
    with_fixture(a_cancel_counts_that_comes_with_the_hang_up),
    with_fixture(cancel_run_ends_it_for_everybody),
    with_fixture(a_caller_that_leaves_finds_the_result_later),
    with_fixture(who_waits_long_enough_is_answered_before_the_end),
    with_fixture(what_it_waited_in_the_queue_counts_as_waiting),
    with_fixture(a_background_run_is_answered_at_once),
    with_fixture(a_background_run_that_cannot_start_is_lost_with_a_reason),
    with_fixture(a_full_disk_does_not_end_the_run),
    with_fixture(a_container_serves_the_next_run_too),
    with_fixture(it_serves_runs_in_all_languages_of_its_image),
    with_fixture(one_that_was_forked_for_its_run_may_be_used_again),
    with_fixture(only_an_orderly_run_leaves_a_container_for_the_next),
    with_fixture(only_a_container_that_stays_loads_what_a_program_needs),
    with_fixture(without_an_order_the_container_goes),
    with_fixture(what_is_asked_late_is_answered_before_the_next_run),
    with_fixture(doubt_is_told_and_the_container_gone),
    with_fixture(a_claim_waits_for_the_wipe_but_not_for_long),
    with_fixture(a_claim_that_meets_doubt_gets_another_container),
    with_fixture(a_refused_run_leaves_the_container_for_the_next),
    with_fixture(a_refused_run_ends_a_container_that_has_served_none),
    with_fixture(a_run_that_wants_a_container_for_itself_gets_one),
    with_fixture(a_second_run_is_kept_by_its_own_id),
    with_fixture(a_second_run_is_cancelled_by_its_own_id),
    with_fixture(another_run_than_the_first_ones_conversations_gets_another_container),
    with_fixture(a_run_for_a_newer_image_is_left_alone),
    cmocka_unit_test(every_difference_keeps_a_run_out),
};
UNIT_TESTS(tests)
