/*
 * What our own parts cost. Started by run.sh, which prepares the two front doors and the
 * environment; nothing is asserted, the goals stand beside the figures.
 *
 *   bench runs ENV_FILE IMAGE DATA_DIR FRONT ROUNDS    cold runs: bare client, the whole stack, and
 * for orientation the interpreter alone and the engine's own command line bench load FRONT ROUNDS
 * SECONDS                    tools/list against a static file of the same size
 *   bench streams FRONT ROUNDS MILLISECONDS STREAMS HUB_PID    three calls with and without streams
 * that wait
 *
 * FRONT is 127.0.0.1:PORT; the token comes in BENCH_TOKEN. What is compared is measured next to
 * each other in every round, either one first by chance.
 */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "fcgi/settings.h"
#include "tests/bench/floor.h"
#include "tests/bench/load.h"
#include "tests/bench/stack.h"
#include "tests/bench/stats.h"
#include "tests/bench/streams.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#define CODE        "print(1)"
#define WARM_UP     2
#define SETTLE_MS   250 /* removing the last container keeps the engine busy for a while */
#define STATIC_PATH "/static.json"

extern char **environ;

struct runs {
    struct floor floor;
    struct stack stack;
    const char *image;
};

struct run_case {
    const char *title;
    int64_t (*measure)(struct runs *r); /* microseconds; -1: cannot be measured here */
    struct samples ms;
};

static int64_t measure_floor(struct runs *r)
{
    return floor_run(&r->floor);
}

static int64_t measure_stack(struct runs *r)
{
    return stack_run_code(&r->stack, "python", CODE);
}

static int64_t run_command(const char *const argv[])
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;

    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd <= 2; fd++)
        posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    int64_t began = clock_mono_us();
    int error = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error || waitpid(pid, &status, 0) < 0)
        return -1;
    int64_t ended = clock_mono_us();
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ended - began : -1;
}

static int64_t measure_bare(struct runs *r)
{
    /* The system's own, as in the image: a version manager's wrapper takes ten times as long. */
    const char *const argv[] = {"/usr/bin/python3", "-c", CODE, NULL};

    (void)r;
    return run_command(argv);
}

static int64_t measure_docker(struct runs *r)
{
    const char *const argv[] = {"docker",  "run",    "--rm", "--network", "none", "--entrypoint",
                                "python3", r->image, "-c",   CODE,        NULL};

    return run_command(argv);
}

static struct run_case run_cases[] = {
    {"engine floor (bare client, same REST calls)", measure_floor, {0}},
    {"run_code, cold (nginx, worker, broker, engine)", measure_stack, {0}},
    {"python3 -c, no container", measure_bare, {0}},
    {"docker run --rm, command line", measure_docker, {0}},
};

static void sleep_ms(unsigned ms)
{
    usleep(ms * 1000);
}

static unsigned random_below(unsigned n)
{
    unsigned value;

    if (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value))
        bench_die("no randomness");
    return value % n;
}

static void measure(struct runs *r, struct run_case *c, bool count)
{
    if (!c->measure)
        return;
    int64_t us = c->measure(r);
    if (us < 0) {
        c->measure = NULL;
        printf("  (left out: %s does not work here)\n", c->title);
    } else if (count) {
        samples_add(&c->ms, (double)us / 1000.0);
    }
    sleep_ms(SETTLE_MS);
}

/* The pair that is compared stands together, either one first, so that a machine's moods meet both;
 * the rest comes after. */
static void run_round(struct runs *r, bool count)
{
    unsigned first = random_below(2);

    measure(r, &run_cases[first], count);
    measure(r, &run_cases[1 - first], count);
    for (size_t i = 2; i < ARRAY_LEN(run_cases); i++)
        measure(r, &run_cases[i], count);
}

static void print_row(const char *title, const struct samples *s, double base, const char *goal)
{
    double median = samples_quantile(s, 0.5);

    printf("  %-48s %8.2f %8.2f %8.2f", title, samples_quantile(s, 0), median,
           samples_quantile(s, 0.95));
    if (base > 0)
        printf(" %7.2fx", median / base);
    else
        printf(" %8s", "");
    printf("  %s\n", goal);
}

static void print_runs(void)
{
    const struct samples *floor_ms = &run_cases[0].ms, *stack_ms = &run_cases[1].ms;
    double base = samples_quantile(floor_ms, 0.5);
    struct samples share = {0};

    for (size_t i = 0; i < floor_ms->n && i < stack_ms->n; i++)
        samples_add(&share, stack_ms->v[i] - floor_ms->v[i]);
    printf("  %-48s %8s %8s %8s %8s\n", "ms", "min", "median", "p95", "x floor");
    for (size_t i = 0; i < ARRAY_LEN(run_cases); i++)
        if (run_cases[i].ms.n)
            print_row(run_cases[i].title, &run_cases[i].ms, base, "");
    print_row("the stack's own share (pair by pair)", &share, 0, "goal: median <= 5 ms");
    printf("  %-48s %8s %8.2f\n", "the same as difference of the medians", "",
           samples_quantile(stack_ms, 0.5) - base);
    samples_clear(&share);
}

static uint64_t number(const char *text, uint64_t max)
{
    uint64_t n;

    if (parse_u64(text, 1, max, &n) < 0)
        bench_die("not a number from 1 to %ju: %s", (uintmax_t)max, text);
    return n;
}

static const char *token(void)
{
    const char *t = getenv("BENCH_TOKEN");

    if (!t || !*t)
        bench_die("BENCH_TOKEN is missing");
    return t;
}

/* The spec as the broker makes it of the same settings. */
static struct engine_spec make_spec(const struct settings *s, const char *image,
                                    const char *data_dir)
{
    return (struct engine_spec){
        .image = image,
        .protocol = 1,
        .data_path = data_dir,
        .user = s->sandbox_user,
        .instance = "bench",
        .runtime = s->runtime,
        .limits = {.cpu_milli = s->cpu_milli,
                   .memory_bytes = s->memory,
                   .pids = s->pids,
                   .tmp_bytes = s->tmp_size,
                   .nofile = s->nofile,
                   .fsize_bytes = s->fsize},
    };
}

static const char *engine_socket(const struct settings *s)
{
    if (!*s->docker_host)
        return "/var/run/docker.sock";
    if (strncmp(s->docker_host, "unix://", 7) != 0)
        bench_die("the floor is measured over a Unix socket only, not %s", s->docker_host);
    return s->docker_host + 7;
}

static int bench_runs(char **arg)
{
    struct settings settings;
    struct runs r = {.image = arg[1]};
    struct err e;
    uint64_t rounds = number(arg[4], 10000);

    if (settings_load(&settings, arg[0], &e) < 0)
        bench_die("%s", e.text);
    struct engine_spec spec = make_spec(&settings, arg[1], arg[2]);
    struct engine_program program = {
        .code = CODE, .code_len = strlen(CODE), .timeout_ms = settings.timeout_ms};
    floor_open(&r.floor, engine_socket(&settings), &spec, &program);
    stack_open(&r.stack, arg[3], token());
    for (uint64_t i = 0; i < WARM_UP + rounds; i++)
        run_round(&r, i >= WARM_UP);
    printf("Cold runs of \"%s\" in python, %ju rounds\n", CODE, (uintmax_t)rounds);
    print_runs();
    for (size_t i = 0; i < ARRAY_LEN(run_cases); i++)
        samples_clear(&run_cases[i].ms);
    stack_close(&r.stack);
    floor_close(&r.floor);
    settings_clear(&settings);
    return 0;
}

struct contest {
    struct load tools, file;
    struct samples tools_ms, file_ms;     /* of single requests */
    struct samples tools_rate, file_rate; /* of rounds */
    struct samples ratio;
};

static void contest_round(struct contest *c)
{
    double tools, file;

    if (random_below(2)) {
        tools = load_run(&c->tools, &c->tools_ms);
        file = load_run(&c->file, &c->file_ms);
    } else {
        file = load_run(&c->file, &c->file_ms);
        tools = load_run(&c->tools, &c->tools_ms);
    }
    samples_add(&c->tools_rate, tools);
    samples_add(&c->file_rate, file);
    samples_add(&c->ratio, tools / file);
}

static void print_contest(const struct contest *c)
{
    printf("  %2d connection%s  tools/list %8.0f/s (%.2f ms, p95 %.2f)   static file %8.0f/s "
           "(%.2f ms, p95 %.2f)   ratio %.2f (%.2f to %.2f)  goal: >= 0.3\n",
           c->tools.connections, c->tools.connections == 1 ? " " : "s",
           samples_quantile(&c->tools_rate, 0.5), samples_quantile(&c->tools_ms, 0.5),
           samples_quantile(&c->tools_ms, 0.95), samples_quantile(&c->file_rate, 0.5),
           samples_quantile(&c->file_ms, 0.5), samples_quantile(&c->file_ms, 0.95),
           samples_quantile(&c->ratio, 0.5), samples_quantile(&c->ratio, 0),
           samples_quantile(&c->ratio, 1));
}

static void contest_clear(struct contest *c)
{
    samples_clear(&c->tools_ms);
    samples_clear(&c->file_ms);
    samples_clear(&c->tools_rate);
    samples_clear(&c->file_rate);
    samples_clear(&c->ratio);
}

static int bench_load(char **arg)
{
    static const int connections[] = {1, 16};
    AUTO_BUF struct buf call = BUF_INIT(1 << 16);
    AUTO_BUF struct buf get = BUF_INIT(1 << 16);
    AUTO_BUF struct buf list = BUF_INIT(WIRE_REPLY_MAX);
    struct contest contests[ARRAY_LEN(connections)] = {0};
    uint64_t rounds = number(arg[1], 1000), seconds = number(arg[2], 3600);
    struct stack s;

    stack_request(token(), "tools/list", NULL, &call);
    wire_request(&get, "GET", STATIC_PATH, "", NULL, 0);
    stack_open(&s, arg[0], token());
    stack_list_tools(&s, &list);
    stack_close(&s);
    for (size_t i = 0; i < ARRAY_LEN(connections); i++) {
        struct load l = {.address = arg[0],
                         .request = &call,
                         .connections = connections[i],
                         .duration_ms = (int)seconds * 1000};
        contests[i].tools = l;
        l.request = &get;
        contests[i].file = l;
    }
    for (uint64_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < ARRAY_LEN(contests); i++)
            contest_round(&contests[i]);
    printf("tools/list (%zu bytes) against a static file of that size, medians of %ju rounds of "
           "%ju s\n",
           list.len, (uintmax_t)rounds, (uintmax_t)seconds);
    for (size_t i = 0; i < ARRAY_LEN(contests); i++) {
        print_contest(&contests[i]);
        contest_clear(&contests[i]);
    }
    return 0;
}

static int bench_streams(char **arg)
{
    const struct streams_bench b = {.address = arg[0],
                                    .token = token(),
                                    .rounds = number(arg[1], 1000),
                                    .duration_ms = number(arg[2], 60000),
                                    .streams = number(arg[3], 100000),
                                    .hub = (pid_t)number(arg[4], INT32_MAX)};

    streams_bench_run(&b);
    return 0;
}

/* Prints the body of tools/list, from which run.sh makes the static file. */
static int bench_list(char **arg)
{
    AUTO_BUF struct buf list = BUF_INIT(WIRE_REPLY_MAX);
    struct stack s;

    stack_open(&s, arg[0], token());
    stack_list_tools(&s, &list);
    stack_close(&s);
    return fwrite(buf_str(&list), 1, list.len, stdout) == list.len ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int n_args;
        int (*run)(char **arg);
    } modes[] = {{"runs", 5, bench_runs},
                 {"load", 3, bench_load},
                 {"list", 1, bench_list},
                 {"streams", 5, bench_streams}};

    for (size_t i = 0; i < ARRAY_LEN(modes); i++)
        if (argc == modes[i].n_args + 2 && strcmp(argv[1], modes[i].name) == 0)
            return modes[i].run(argv + 2);
    bench_die("usage: see run.sh");
}
