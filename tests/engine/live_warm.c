/* Containers that wait on a real engine: they take their program, they are lost in time, and
 * nothing is left of them whenever their start is cancelled or their owner ends. */
#include "config.h"

#include "common/base/mem.h"
#include "common/engine/docker_http.h"
#include "tests/engine/live.h"
#include "tests/fakes/engine_run.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANCELS   40
#define CANCEL_MS 250 /* a start takes less, mostly */

static int start(struct engine *engine, struct live_run *l, const struct engine_attend *attend)
{
    name_run(l);
    return engine->ops->start(engine, &l->spec, attend, deadline_in_ms(30000), &l->e);
}

static int run(struct engine *engine, struct live_run *l, const struct engine_attend *attend)
{
    const struct engine_run program = {&l->program, live_take, l, attend, deadline_in_ms(30000)};

    return engine_run_to_end(engine, &program, &l->out, &l->e);
}

static void stop(struct engine *engine, struct live_run *l)
{
    engine->ops->finish(engine);
    engine->ops->free(engine);
    live_clear(l);
    CHECK(all_gone());
}

/* Looks until it is as far as tier; -1 when it is lost or takes too long. */
static int look_until(struct engine *engine, enum engine_tier tier, struct err *e)
{
    struct pollfd p = {.fd = engine->ops->fd(engine), .events = POLLIN};
    struct deadline d = deadline_in_ms(60000);
    struct engine_event ev = {0};

    while (ev.wait.tier < tier && !deadline_passed(d)) {
        if (engine->ops->read(engine, &ev, e) < 0)
            return -1;
        if (ev.kind == ENGINE_EVENT_NOTHING)
            poll(&p, 1, deadline_poll_ms(d));
    }
    return ev.wait.tier < tier ? -1 : 0;
}

/* What the image of that language can preload; its strings live until the end. */
static const struct engine_runner *find_runner(const char *language)
{
    static struct engine_runners runners;
    struct engine *engine = connect_engine();
    struct err e = ERR_INIT;

    engine_runners_clear(&runners);
    CHECK(engine->ops->runners(engine, "sandcgi-runner-*", &runners, &e) == 0);
    engine->ops->free(engine);
    for (size_t i = 0; i < runners.n; i++) {
        if (strcmp(runners.items[i].language, language) == 0)
            return &runners.items[i];
    }
    return NULL;
}

static void one_that_waited_takes_its_program(void)
{
    const struct engine_runner *runner = find_runner("bash");
    struct engine *engine = connect_engine();
    struct live_run l = live(BASH, "echo \"hi $1 $A\"; cat; exit 4");
    int64_t began;

    live_input(&l, "in");
    l.program.argv = (const char *const[]){"one"};
    l.program.n_argv = 1;
    l.program.env = (const char *const[]){"A=b"};
    l.program.n_env = 1;
    CHECK(start(engine, &l, NULL) == 0);
    if (runner && runner->warm)
        CHECK(look_until(engine, ENGINE_TIER_STARTED, &l.e) == 0);
    else
        usleep(300 * 1000);
    began = clock_mono_us();
    CHECK(run(engine, &l, NULL) == 0);
    note("from the claim to the report %d us", (int)(clock_mono_us() - began));
    CHECK(l.out.end == ENGINE_EXITED && l.out.exit_code == 4);
    CHECK(strcmp(buf_str(&l.text[0]), "hi one b\nin") == 0);
    stop(engine, &l);
}

static void what_is_preloaded_is_there(void)
{
    const struct engine_runner *runner = find_runner("python");
    struct engine *engine;
    struct live_run l;

    if (!runner || !runner->warm || !*runner->preload)
        return;
    engine = connect_engine();
    l = live(PYTHON, "import sys\nprint('numpy' in sys.modules)\n");
    l.spec.limits.memory_bytes = 256u << 20;
    CHECK(start(engine, &l, NULL) == 0);
    CHECK(look_until(engine, ENGINE_TIER_STARTED, &l.e) == 0);
    CHECK(engine->ops->preload(engine, runner->preload, &l.e) == 0);
    CHECK(look_until(engine, ENGINE_TIER_PRELOADED, &l.e) == 0);
    CHECK(run(engine, &l, NULL) == 0);
    CHECK(l.out.warm && l.out.exit_code == 0);
    stop(engine, &l);
}

static void one_that_is_removed_by_hand_is_lost_at_once(void)
{
    for (int with_look = 0; with_look < 2; with_look++) {
        struct engine *engine = connect_engine(), *other = connect_engine();
        struct live_run l = live(BASH, "echo hi");
        struct err e = ERR_INIT;

        CHECK(start(engine, &l, NULL) == 0);
        CHECK(other->ops->reap(other, instance, everything, NULL, &e) == 1);
        other->ops->free(other);
        if (with_look)
            CHECK(look_until(engine, ENGINE_TIER_PRELOADED, &l.e) == -1);
        else
            usleep(500 * 1000);
        CHECK(run(engine, &l, NULL) == -1 && l.e.kind == ERR_LOST);
        CHECK(l.total == 0);
        stop(engine, &l);
    }
}

static bool leave(void *ctx)
{
    (void)ctx;
    return false;
}

static int timer_in_us(long us)
{
    const struct itimerspec at = {
        .it_value = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

    if (fd < 0 || timerfd_settime(fd, 0, &at, NULL) < 0)
        abort();
    return fd;
}

/* From before the create to after the program's end; sometimes there is nothing left to cancel. */
static void cancelled_at_any_moment_nothing_is_left(void)
{
    int early = 0, late = 0;

    for (int i = 0; i < CANCELS; i++) {
        AUTO_FD int timer = timer_in_us(1 + i * 98765L % (CANCEL_MS * 1000));
        const struct engine_attend attend = {.fd = timer, .tick = leave};
        struct engine *engine = connect_engine();
        struct live_run l = live(BASH, "sleep 1000");

        if (start(engine, &l, &attend) < 0) {
            CHECK(l.e.kind == ERR_CANCELLED);
            early++;
        } else {
            CHECK(run(engine, &l, &attend) == 0 && l.out.end == ENGINE_CANCELLED);
            late++;
        }
        /* Without finish: nothing is left for it. */
        engine->ops->free(engine);
        live_clear(&l);
    }
    CHECK(all_gone());
    note("cancelled: %d starts, %d runs", early, late);
}

static void one_whose_owner_ended_ends_too(void)
{
    AUTO_BUF struct buf reply = BUF_INIT(1 << 20);
    struct live_run l = live(BASH, "");
    struct err e = ERR_INIT;
    struct docker_http *h = docker_http_new(&address, &e);
    struct deadline d = deadline_in_ms(10000);
    struct engine *engine;
    bool runs = true;
    pid_t pid;

    name_run(&l);
    pid = fork();
    if (pid == 0) {
        engine = connect_engine();
        _exit(engine->ops->start(engine, &l.spec, NULL, deadline_in_ms(30000), &e) < 0);
    }
    waitpid(pid, NULL, 0);
    AUTO_FREE char *path = mem_printf(
        "/containers/json?filters=%%7B%%22label%%22:%%5B%%22sandbox.run=%s%%22%%5D%%7D", l.run_id);
    while (runs && !deadline_passed(d)) {
        usleep(20 * 1000);
        CHECK(docker_http_call(h, "GET", path, NULL, 10000, &reply, &e) > 0);
        runs = strstr(buf_str(&reply), l.run_id) != NULL;
    }
    CHECK(!runs);
    docker_http_free(h);
    engine = connect_engine();
    CHECK(engine->ops->reap(engine, instance, everything, NULL, &e) >= 0);
    stop(engine, &l);
}

const struct live_case waiting_cases[] = {
    {"one that waited takes its program", one_that_waited_takes_its_program},
    {"what is preloaded is there", what_is_preloaded_is_there},
    {"one that is removed by hand is lost at once", one_that_is_removed_by_hand_is_lost_at_once},
    {"cancelled at any moment nothing is left", cancelled_at_any_moment_nothing_is_left},
    {"one whose owner ended ends too", one_whose_owner_ended_ends_too},
    {0},
};
