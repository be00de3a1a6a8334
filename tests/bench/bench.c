/*
 * What our own parts cost. Started by run.sh, which prepares the two front doors and the
 * environment; nothing is asserted, the goals stand beside the figures.
 *
 *   bench load FRONT ROUNDS SECONDS    tools/list against a static file of the same size
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
#include "tests/bench/load.h"
#include "tests/bench/stack.h"
#include "tests/bench/stats.h"
#include "tests/bench/streams.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define STATIC_PATH "/static.json"

static unsigned random_below(unsigned n)
{
    unsigned value;

    if (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value))
        bench_die("no randomness");
    return value % n;
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
    } modes[] = {{"load", 3, bench_load}, {"list", 1, bench_list}, {"streams", 5, bench_streams}};

    for (size_t i = 0; i < ARRAY_LEN(modes); i++)
        if (argc == modes[i].n_args + 2 && strcmp(argv[1], modes[i].name) == 0)
            return modes[i].run(argv + 2);
    bench_die("usage: see run.sh");
}
