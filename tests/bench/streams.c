#include "config.h"

#include "tests/bench/streams.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "tests/bench/load.h"
#include "tests/bench/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define REQUEST_MAX (1 << 16)
#define WAITING     "notifications/subscriptions/acknowledged"
#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"

static const struct {
    const char *method, *name; /* name: of the tool; NULL: none */
    const char *params;        /* besides _meta */
} calls[] = {
    {"tools/list", NULL, ""},
    {"server/discover", NULL, ""},
    {"tools/call", "list_runners", "\"name\":\"list_runners\",\"arguments\":{},"},
};

static const int connections[] = {1, 16, 64, 256};

/* One line of the table: [0] without streams, [1] with them. */
struct cell {
    struct samples rate[2], ms[2], ratio;
};

static void add_request(struct buf *out, const char *token, const char *method, const char *name,
                        const char *params)
{
    AUTO_FREE char *headers = mem_printf(
        "Authorization: Bearer %s\r\nAccept: application/json, text/event-stream\r\n"
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n%s%s%s",
        token, method, name ? "Mcp-Name: " : "", name ? name : "", name ? "\r\n" : "");
    AUTO_FREE char *body = mem_printf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":"
                                      "{%s" META "}}",
                                      method, params);

    wire_request(out, "POST", "/mcp", headers, body, strlen(body));
}

static void raise_limit(uint64_t streams)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)streams + LOAD_CONNECTIONS_MAX + 64;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (limit.rlim_cur < wanted || setrlimit(RLIMIT_NOFILE, &limit) < 0)
        bench_die("%" PRIu64 " streams need more open files than ulimit -n allows", streams);
}

static struct wire *open_streams(const struct streams_bench *b)
{
    struct wire *all = mem_array((size_t)b->streams, sizeof *all);
    AUTO_BUF struct buf request = BUF_INIT(REQUEST_MAX);

    add_request(&request, b->token, "subscriptions/listen", NULL,
                "\"notifications\":{\"resourcesListChanged\":true},");
    for (uint64_t i = 0; i < b->streams; i++) {
        wire_open(&all[i], b->address);
        wire_send(&all[i], request.data, request.len);
    }
    for (uint64_t i = 0; i < b->streams; i++) {
        while (!strstr(buf_str(&all[i].in), WAITING))
            if (!wire_receive(&all[i]) || memmem(buf_str(&all[i].in), 16, " 429 ", 5))
                bench_die("stream %" PRIu64 " was not opened", i + 1);
        buf_clear(&all[i].in);
    }
    return all;
}

static void close_streams(const struct streams_bench *b, struct wire *all)
{
    for (uint64_t i = 0; i < b->streams; i++)
        wire_close(&all[i]);
    free(all);
}

/* Private memory in kB; 0 when it cannot be looked at. */
static uint64_t private_memory(pid_t pid)
{
    char path[64], line[256];
    uint64_t sum = 0;

    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = pid > 0 ? fopen(path, "re") : NULL;
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "Private_", 8) != 0)
            continue;
        uint64_t kb = 0;
        for (const char *s = colon + 1 + strspn(colon + 1, " "); *s >= '0' && *s <= '9'; s++)
            kb = kb * 10 + (uint64_t)(*s - '0');
        sum += kb;
    }
    if (file)
        fclose(file);
    return sum;
}

static void measure(const struct streams_bench *b, struct cell cells[][ARRAY_LEN(connections)],
                    size_t which)
{
    for (size_t c = 0; c < ARRAY_LEN(calls); c++) {
        AUTO_BUF struct buf request = BUF_INIT(REQUEST_MAX);
        add_request(&request, b->token, calls[c].method, calls[c].name, calls[c].params);
        for (size_t n = 0; n < ARRAY_LEN(connections); n++) {
            const struct load load = {.address = b->address,
                                      .request = &request,
                                      .connections = connections[n],
                                      .duration_ms = (int)b->duration_ms};
            struct cell *cell = &cells[c][n];
            samples_add(&cell->rate[which], load_run(&load, &cell->ms[which]));
        }
    }
}

static void measure_with_streams(const struct streams_bench *b,
                                 struct cell cells[][ARRAY_LEN(connections)])
{
    struct wire *all = open_streams(b);

    measure(b, cells, 1);
    close_streams(b, all);
}

static void print_cells(struct cell cells[][ARRAY_LEN(connections)])
{
    for (size_t c = 0; c < ARRAY_LEN(calls); c++)
        for (size_t n = 0; n < ARRAY_LEN(connections); n++) {
            struct cell *x = &cells[c][n];
            for (size_t i = 0; i < x->rate[0].n; i++)
                samples_add(&x->ratio, x->rate[1].v[i] / x->rate[0].v[i]);
            printf("  %-16s %3d connections  without %7.0f/s p95 %6.2f ms   with %7.0f/s p95 %6.2f "
                   "ms   ratio %.2f (%.2f to %.2f)  goal: >= 0.9\n",
                   calls[c].method, connections[n], samples_quantile(&x->rate[0], 0.5),
                   samples_quantile(&x->ms[0], 0.95), samples_quantile(&x->rate[1], 0.5),
                   samples_quantile(&x->ms[1], 0.95), samples_quantile(&x->ratio, 0.5),
                   samples_quantile(&x->ratio, 0), samples_quantile(&x->ratio, 1));
            for (int i = 0; i < 2; i++) {
                samples_clear(&x->rate[i]);
                samples_clear(&x->ms[i]);
            }
            samples_clear(&x->ratio);
        }
}

static void print_memory(const struct streams_bench *b)
{
    uint64_t before = private_memory(b->hub);
    struct wire *all = open_streams(b);
    uint64_t after = private_memory(b->hub);

    close_streams(b, all);
    if (before == 0)
        printf("  the hub's memory cannot be looked at (another account)\n");
    else
        printf("  the hub's private memory: %.2f MB idle, %.2f MB with %" PRIu64
               " streams, %.1f kB for each   goal: <= 32 kB\n",
               (double)before / 1024, (double)after / 1024, b->streams,
               (double)(after > before ? after - before : 0) / (double)b->streams);
}

void streams_bench_run(const struct streams_bench *b)
{
    struct cell cells[ARRAY_LEN(calls)][ARRAY_LEN(connections)] = {0};

    raise_limit(b->streams);
    printf("%" PRIu64 " streams that wait, medians of %" PRIu64 " rounds\n", b->streams, b->rounds);
    print_memory(b);
    for (uint64_t round = 0; round < b->rounds; round++) {
        if (round % 2 == 0)
            measure(b, cells, 0);
        measure_with_streams(b, cells);
        if (round % 2 == 1)
            measure(b, cells, 0);
    }
    print_cells(cells);
}
