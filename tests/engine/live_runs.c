/* Runs on a real engine: what programs print and how they end, and that their containers hold. */
#include "config.h"

#include "common/base/mem.h"
#include "common/engine/docker_config.h"
#include "common/engine/docker_http.h"
#include "tests/engine/live.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has(const struct live_run *l, const char *words)
{
    return strstr(buf_str(&l->text[0]), words) != NULL;
}

/* Memory that this process had at its peak, KiB. */
static uint64_t peak_kib(void)
{
    struct rusage usage = {0};

    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss;
}

static int open_fds(void)
{
    AUTO_DIR DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (d && readdir(d))
        n++;
    return n;
}

static void runs_bash(void)
{
    struct live_run l = live(BASH, "echo hi; echo oops >&2; echo x > made.txt");
    AUTO_FREE char *made = mem_printf("%s/made.txt", data_path);

    go(&l);
    CHECK(l.returned == 0 && l.out.end == ENGINE_EXITED && l.out.exit_code == 0);
    CHECK(strcmp(buf_str(&l.text[0]), "hi\n") == 0);
    CHECK(strcmp(buf_str(&l.text[1]), "oops\n") == 0);
    CHECK(l.out.cpu_us > 0 && l.out.peak_memory_bytes > 0);
    CHECK(access(made, R_OK) == 0);
    note("whole %d ms, program %d ms", (int)l.whole_ms,
         (int)((l.out.ended_us - l.out.started_us) / 1000));
    live_clear(&l);
}

static void runs_python(void)
{
    struct live_run l = live(PYTHON, "import sys\nprint(sum(range(10)))\nsys.exit(3)\n");

    go(&l);
    if (l.returned < 0 && l.e.kind == ERR_NOT_FOUND)
        return;
    CHECK(l.out.exit_code == 3 && strcmp(buf_str(&l.text[0]), "45\n") == 0);
    live_clear(&l);
}

static void input_arguments_and_environment_arrive(void)
{
    static const char *const args[] = {"one", "two words", ""};
    static const char *const env[] = {"A=b c", "FILE_BASE_URL=https://x/"};
    struct live_run l = live(BASH, "cat; echo \"[$#|$1|$2|$3|$A|$FILE_BASE_URL]\"");

    live_input(&l, "from stdin;");
    l.program.argv = args;
    l.program.n_argv = 3;
    l.program.env = env;
    l.program.n_env = 2;
    go(&l);
    CHECK(has(&l, "from stdin;[3|one|two words||b c|https://x/]\n"));
    live_clear(&l);
}

static void own_exit_codes_are_exit_codes(void)
{
    static const int codes[] = {1, 124, 125, 126, 127, 137, 143, 255};
    static const char *const images[] = {BASH, PLAIN};

    for (size_t i = 0; i < ARRAY_LEN(codes) * 2; i++) {
        int code = codes[i / 2];
        AUTO_FREE char *text = mem_printf("exit %d", code);
        struct live_run l = live(images[i % 2], text);

        go(&l);
        CHECK(l.returned == 0 && l.out.end == ENGINE_EXITED && l.out.signal == 0);
        CHECK(l.out.exit_code == code && !l.out.out_of_memory);
        live_clear(&l);
    }
}

static void a_signal_is_told(void)
{
    struct live_run l = live(BASH, "kill -SEGV $$");

    go(&l);
    CHECK(l.out.end == ENGINE_EXITED && l.out.signal == SIGSEGV && l.out.exit_code == -1);
    live_clear(&l);
}

static void a_timeout_ends_everything(void)
{
    static const char *const images[] = {BASH, PLAIN};

    for (size_t i = 0; i < 2; i++) {
        struct live_run l = live(
            images[i], "trap '' TERM INT HUP\necho begun\n(trap '' TERM; setsid sleep 1000) &\n"
                       "while :; do sleep 1; done\n");

        l.program.timeout_ms = 1500;
        go(&l);
        CHECK(l.returned == 0 && l.out.end == ENGINE_TIMED_OUT);
        CHECK(has(&l, "begun"));
        CHECK(l.out.ended_us - l.out.started_us < 2000 * 1000);
        CHECK(l.whole_ms < 1500 + 3000);
        live_clear(&l);
    }
}

/* A child that closes its end of the pipe after ms, as a worker that loses its client does. */
static int hang_up_after(int ms)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        abort();
    if (fork() == 0) {
        close(p[0]);
        usleep((useconds_t)ms * 1000);
        _exit(0);
    }
    close(p[1]);
    return p[0];
}

static void cancelling_ends_the_run(void)
{
    struct live_run l = live(BASH, "sleep 1000");

    l.cancel_fd = hang_up_after(1000);
    go(&l);
    CHECK(l.returned == 0 && l.out.end == ENGINE_CANCELLED && l.whole_ms < 4000);
    close(l.cancel_fd);
    wait(NULL);
    live_clear(&l);
}

static void a_flood_is_cut_with_flat_memory(void)
{
    static const char *const images[] = {BASH, PLAIN};
    uint64_t before;

    for (size_t i = 0; i < 2; i++) {
        struct live_run l = live(images[i], "yes 0123456789012345678901234567890123456789");

        buf_add(&l.text[0], buf_reserve(&l.text[0], KEEP), KEEP);
        before = peak_kib();
        l.stop_at = 200u << 20;
        go(&l);
        CHECK(l.returned == 0 && l.out.end == ENGINE_OUTPUT_LIMIT && l.total >= 200u << 20);
        CHECK(l.whole_ms < 15000);
#ifndef WITH_SANITIZER /* AddressSanitizer keeps what was freed */
        CHECK(peak_kib() - before < 4096);
#endif
        note("200 MB in %d ms, memory +%d KiB", (int)l.whole_ms, (int)(peak_kib() - before));
        live_clear(&l);
    }
}

static void out_of_memory_is_told(void)
{
    static const char *const images[] = {BASH, PLAIN};

    for (size_t i = 0; i < 2; i++) {
        /* exec, so that the one that is killed is the program itself */
        struct live_run l = live(images[i], "exec tail /dev/zero");

        l.spec.limits.memory_bytes = 32u << 20;
        go(&l);
        CHECK(l.returned == 0 && l.out.end == ENGINE_EXITED);
        if (podman && l.spec.protocol == 0)
            CHECK(l.out.exit_code == 137);
        else
            CHECK(l.out.out_of_memory && l.out.signal == SIGKILL && l.out.exit_code == -1);
        live_clear(&l);
    }
}

static void a_fork_bomb_is_contained(void)
{
    static const char *const images[] = {BASH, PLAIN};

    for (size_t i = 0; i < 2; i++) {
        struct live_run l = live(images[i], "bomb() { bomb | bomb & }; bomb; sleep 100");

        l.program.timeout_ms = 2000;
        go(&l);
        CHECK(l.returned == 0 && l.whole_ms < 8000);
        live_clear(&l);
    }
}

static void output_of_a_quick_end_is_complete(void)
{
    static const char *const images[] = {BASH, PLAIN};

    for (size_t i = 0; i < 10; i++) {
        struct live_run l = live(images[i % 2], "head -c 1000000 /dev/zero; exit 5");

        go(&l);
        CHECK(l.total == 1000000 && l.out.exit_code == 5);
        live_clear(&l);
    }
}

/* A plain program that prints much before it has read all its code must not stop us from writing,
 * nor we it. */
static void printing_before_reading_does_not_lock_up(void)
{
    AUTO_BUF struct buf code = BUF_INIT(2u << 20);
    struct live_run l;

    buf_add_str(&code, "head -c 3000000 /dev/zero\n");
    for (int i = 0; i < 20000; i++)
        buf_add_str(&code, "# a comment that has to be read before the end comes\n");
    buf_add_str(&code, "echo end\n");
    l = live(PLAIN, buf_str(&code));
    go(&l);
    CHECK(l.returned == 0 && l.out.exit_code == 0 && l.total == 3000004);
    live_clear(&l);
}

static void the_shape_holds_inside(void)
{
    static const char code[] =
        "id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status\n"
        "ls /sys/class/net | tr '\\n' ' '; echo\n"
        "touch /x 2>&1; touch /etc/x 2>&1; echo t > /tmp/t && echo tmp ok; pwd; ulimit -c\n"
        "ulimit -n; head -c 20000000 /dev/zero > /tmp/big 2>&1 || echo tmp bounded\n";
    struct live_run l = live(BASH, code);

    go(&l);
    CHECK(has(&l, "1000\nCapBnd:\t0000000000000000") || has(&l, "CapBnd:\t0000000000000000"));
    CHECK(has(&l, "CapEff:\t0000000000000000"));
    CHECK(has(&l, "NoNewPrivs:\t1"));
    CHECK(has(&l, "Seccomp:\t2"));
    CHECK(has(&l, "\nlo \n"));
    CHECK(has(&l, "'/x': Read-only") && has(&l, "'/etc/x': Read-only"));
    CHECK(has(&l, "tmp ok\n/data\n0\n256\n") && has(&l, "tmp bounded"));
    live_clear(&l);
}

static void network_is_there_only_when_asked_for(void)
{
    struct live_run l = live(BASH, "ls /sys/class/net | tr '\\n' ' '");

    l.spec.network = NETWORK_LAN;
    go(&l);
    CHECK(has(&l, "eth0"));
    live_clear(&l);
}

static void a_plain_image_gets_its_environment(void)
{
    static const char *const env[] = {"FILE_BASE_URL=https://x/"};
    struct live_run l = live(PLAIN, "echo \"$FILE_BASE_URL\"; echo no >&2; pwd; id -u");

    l.program.env = env;
    l.program.n_env = 1;
    go(&l);
    CHECK(l.returned == 0 && strcmp(buf_str(&l.text[0]), "https://x/\n/data\n1000\n") == 0);
    CHECK(strcmp(buf_str(&l.text[1]), "no\n") == 0);
    live_clear(&l);
}

static void a_missing_image_is_named(void)
{
    struct live_run l = live(BASH, "x");

    l.spec.image = "sandcgi-runner-nowhere:1";
    go(&l);
    CHECK(l.returned == -1 && l.e.kind == ERR_NOT_FOUND);
    CHECK(strcmp(l.e.text, "the image sandcgi-runner-nowhere:1 is missing on the server") == 0);
    live_clear(&l);
}

static void a_missing_directory_is_an_error_and_is_not_made(void)
{
    struct live_run l = live(BASH, "x");
    char missing[sizeof data_path + 16];

    snprintf(missing, sizeof missing, "%s/missing", data_path);
    l.spec.data_path = missing;
    go(&l);
    if (!podman) { /* its compatible API makes the directory */
        CHECK(l.returned == -1 && l.e.kind == ERR_NOT_FOUND);
        CHECK(access(missing, F_OK) < 0);
    }
    live_clear(&l);
}

static void a_refused_start_gives_the_engines_words(void)
{
    struct live_run l = live(BASH, "x");

    l.spec.runtime = "no-such-runtime";
    go(&l);
    CHECK(l.returned == -1 && strstr(l.e.text, "no-such-runtime"));
    live_clear(&l);
}

static void a_runtime_is_used_or_refused(void)
{
    struct live_run l = live(BASH, "true");

    l.spec.runtime = "runc";
    go(&l);
    CHECK(podman ? l.returned == -1 && strstr(l.e.text, "SANDBOX_RUNTIME")
                 : l.returned == 0 && l.out.exit_code == 0);
    live_clear(&l);
}

static void an_operator_who_removes_it_has_killed_it(void)
{
    static const char *const images[] = {BASH, PLAIN};

    for (size_t i = 0; i < 2; i++) {
        struct live_run l = live(images[i], "sleep 1000");
        pid_t pid = fork();

        if (pid == 0) {
            struct engine *engine = connect_engine();
            struct err e = ERR_INIT;

            usleep(1500 * 1000);
            engine->ops->reap(engine, instance, everything, NULL, &e);
            _exit(0);
        }
        go(&l);
        CHECK(l.returned == 0 && l.out.end != ENGINE_TIMED_OUT && l.whole_ms < 6000);
        CHECK(l.spec.protocol == 0 || l.out.end == ENGINE_KILLED || l.out.signal == SIGKILL);
        waitpid(pid, NULL, 0);
        live_clear(&l);
    }
}

static bool long_ago(void *ctx, const char *run_id, int64_t deadline)
{
    ++*(size_t *)ctx;
    return deadline < 1000 && strcmp(run_id, "spare") != 0;
}

static void make_container(struct docker_http *h, const char *of, const char *run_id)
{
    AUTO_BUF struct buf body = BUF_INIT(65536), reply = BUF_INIT(65536);
    AUTO_FREE char *path = mem_printf("/containers/create?name=live%d-%s-%s", (int)getpid(), of,
                                      run_id);
    struct live_run l = live(BASH, "");
    struct err e = ERR_INIT;

    CHECK(docker_http_ready(h, &e) == 0);
    l.spec.instance = of;
    l.spec.run_id = run_id;
    l.spec.deadline_unix = 5;
    CHECK(container_body(&l.spec, docker_http_facts(h), &body, &e) == 0);
    CHECK(docker_http_call(h, "POST", path, buf_str(&body), 30000, &reply, &e) == 201);
    live_clear(&l);
}

static void the_reaper_takes_only_what_is_ours_and_chosen(void)
{
    AUTO_FREE char *other = mem_printf("%sx", instance);
    struct engine *engine = connect_engine();
    struct err e = ERR_INIT;
    struct docker_http *h = docker_http_new(&address, &e);
    size_t seen = 0;

    make_container(h, instance, "due");
    make_container(h, instance, "spare");
    make_container(h, other, "due");
    CHECK(engine->ops->reap(engine, instance, long_ago, &seen, &e) == 1 && seen == 2);
    CHECK(left_over(other) == 1 && left_over(instance) == 1);
    CHECK(engine->ops->reap(engine, instance, everything, NULL, &e) == 1);
    CHECK(engine->ops->reap(engine, other, everything, NULL, &e) == 1);
    docker_http_free(h);
    engine->ops->free(engine);
}

static void runners_are_found_and_changes_are_seen(void)
{
    struct engine *engine = connect_engine();
    struct err e = ERR_INIT;
    struct docker_http *h = docker_http_new(&address, &e);
    AUTO_BUF struct buf reply = BUF_INIT(65536);
    struct engine_runners r = {0};
    struct pollfd p = {.events = POLLIN};

    CHECK(engine->ops->runners(engine, "engine-live-*", &r, &e) == 0 && r.n == 1);
    CHECK(r.n == 1 && strcmp(r.items[0].language, "live-plain") == 0 && r.items[0].protocol == 0);
    engine_runners_clear(&r);
    CHECK(engine->ops->runners(engine, "engine-other", &r, &e) == 0 && r.n == 0);
    engine_runners_clear(&r);

    p.fd = engine->ops->watch(engine, &e);
    CHECK(p.fd >= 0);
    while (poll(&p, 1, 200) > 0 && engine->ops->watch_drain(engine))
        ;
    CHECK(docker_http_call(h, "POST",
                           "/images/engine-live-plain:test/tag?repo=engine-live-plain&tag=b", NULL,
                           5000, &reply, &e) == 201);
    CHECK(poll(&p, 1, 3000) == 1);
    CHECK(engine->ops->watch_drain(engine));
    CHECK(docker_http_call(h, "DELETE", "/images/engine-live-plain:b", NULL, 5000, &reply, &e) ==
          200);
    docker_http_free(h);
    engine->ops->free(engine);
}

static void descriptors_do_not_leak(void)
{
    int before = open_fds();

    for (int i = 0; i < 3; i++) {
        struct live_run l = live(BASH, "true");

        go(&l);
        live_clear(&l);
    }
    CHECK(open_fds() == before);
}

const struct live_case run_cases[] = {
    {"runs bash", runs_bash},
    {"runs python", runs_python},
    {"input, arguments and environment arrive", input_arguments_and_environment_arrive},
    {"own exit codes are exit codes", own_exit_codes_are_exit_codes},
    {"a signal is told", a_signal_is_told},
    {"a timeout ends everything", a_timeout_ends_everything},
    {"cancelling ends the run", cancelling_ends_the_run},
    {"a flood is cut with flat memory", a_flood_is_cut_with_flat_memory},
    {"out of memory is told", out_of_memory_is_told},
    {"a fork bomb is contained", a_fork_bomb_is_contained},
    {"output of a quick end is complete", output_of_a_quick_end_is_complete},
    {"printing before reading does not lock up", printing_before_reading_does_not_lock_up},
    {"the shape holds inside", the_shape_holds_inside},
    {"network is there only when asked for", network_is_there_only_when_asked_for},
    {"a plain image gets its environment", a_plain_image_gets_its_environment},
    {"a missing image is named", a_missing_image_is_named},
    {"a missing directory is an error and is not made",
     a_missing_directory_is_an_error_and_is_not_made},
    {"a refused start gives the engine's words", a_refused_start_gives_the_engines_words},
    {"a runtime is used or refused", a_runtime_is_used_or_refused},
    {"an operator who removes it has killed it", an_operator_who_removes_it_has_killed_it},
    {"the reaper takes only what is ours and chosen",
     the_reaper_takes_only_what_is_ours_and_chosen},
    {"runners are found and changes are seen", runners_are_found_and_changes_are_seen},
    {"descriptors do not leak", descriptors_do_not_leak},
    {0},
};
