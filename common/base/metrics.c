#include "config.h"

#include "common/base/metrics.h"

#include "common/base/auto.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SERIES_MAX 512 /* of one part */
#define LABELS_MAX 120
#define VALUE_MAX  40 /* bytes of a label's value */
#define PREFIX     "sandcgi_"

static const struct family {
    const char *name, *type, *help;
    double unit;       /* of the number that is counted */
    size_t max_series; /* beyond: other */
    const char *other;
} families[METRIC_COUNT] = {
    [METRIC_RUNS] = {"runs_total", "counter", "Runs that ended, by language and status.", 1, 300,
                     "language=\"other\",status=\"other\""},
    [METRIC_TENANT_RUNS] = {"tenant_runs_total", "counter",
                            "Runs that ended, by tenant (a hash of its name).", 1, 50,
                            "tenant=\"other\""},
    [METRIC_CONTAINERS] = {"run_containers_total", "counter",
                           "Containers that served a run: cold, warm, or warm and used before by "
                           "its conversation.",
                           1, 4, "kind=\"other\""},
    [METRIC_CPU] = {"cpu_seconds_total", "counter",
                    "Processor time of containers and of the server's processes, by purpose.", 1e-6,
                    20, "purpose=\"other\""},
    [METRIC_ENGINE_CALLS] = {"engine_calls_total", "counter",
                             "Calls of the container engine's API, by result.", 1, 8,
                             "result=\"other\""},
    [METRIC_LOG_LINES] =
        {"log_lines_total", "counter",
         "Lines of the log of the master, the broker and their children, by level.", 1, 8,
         "level=\"other\""},
    [METRIC_STARTED] = {"start_time_seconds", "gauge", "When the server was started, Unix time.", 1,
                        1, ""},
    [METRIC_STARTED_BOOT] = {NULL, NULL, NULL, 1, 1, ""}, /* by the status, as the next */
    [METRIC_DISK_USED] = {NULL, NULL, NULL, 1, 1, ""},
    [METRIC_CONVERSATIONS] = {NULL, NULL, NULL, 1, 1, ""},
    [METRIC_STORE_FILES] = {"store_files_total", "counter", "Files copied to the store.", 1, 1, ""},
    [METRIC_STORE_BYTES] = {"store_bytes_total", "counter", "Bytes copied to the store.", 1, 1, ""},
    [METRIC_STORE_ERRORS] = {"store_errors_total", "counter",
                             "Conversations that could not be copied to the store, each time.", 1,
                             1, ""},
    [METRIC_STORE_LOADS] = {"store_loads_total", "counter",
                            "Conversations looked for in the store, by result.", 1, 8,
                            "result=\"other\""},
    [METRIC_REQUESTS] = {"requests_total", "counter", "Requests answered, by route and outcome.", 1,
                         60, "route=\"other\",outcome=\"other\""},
    [METRIC_BYTES_RECEIVED] = {"request_bytes_total", "counter",
                               "Bytes of requests' bodies, by route.", 1, 20, "route=\"other\""},
    [METRIC_BYTES_SENT] = {"response_bytes_total", "counter", "Bytes of answers, by route.", 1, 20,
                           "route=\"other\""},
    [METRIC_STREAMS] = {"open_streams", "gauge", "Open event streams of the hub.", 1, 1, ""},
};

static const struct {
    const char *name, *help;
} times_names[METRIC_TIMES] = {
    [METRIC_QUEUE] = {"run_queue_seconds", "Time that runs waited for a place and a container."},
    [METRIC_START] = {"run_start_seconds", "Time from the container's claim to the program's "
                                           "start."},
    [METRIC_RUN] = {"run_duration_seconds", "Time of the program itself."},
    [METRIC_TOTAL] = {"run_total_seconds", "Time from a run's arrival to its result."},
};

static const int64_t bounds_ms[] = {5,    10,   25,   50,    100,   250,   500,
                                    1000, 2500, 5000, 10000, 30000, 60000, 300000};
#define BOUNDS (sizeof bounds_ms / sizeof bounds_ms[0])

/* FREE, then one process has it, then its labels can be read. */
enum slot_state { SLOT_FREE, SLOT_TAKEN, SLOT_READY };

struct series {
    _Atomic uint32_t state;
    uint32_t metric;
    _Atomic uint64_t value;
    char labels[LABELS_MAX];
};

struct histogram {
    _Atomic uint64_t in[BOUNDS + 1]; /* not cumulated; the last: above all bounds */
    _Atomic uint64_t sum_ms;
};

struct part {
    struct series series[SERIES_MAX];
    struct histogram times[METRIC_TIMES];
};

static struct part *parts[METRICS_PARTS];
static struct part *own; /* where this process counts; NULL: nowhere */
static int memory_fd = -1;

/* ---- the memory: a page that says what is counted, and the parts behind it ---- */

#define PAGE      ((size_t)65536) /* of any machine */
#define PART_SIZE ((sizeof(struct part) + PAGE - 1) / PAGE * PAGE)

/* Of what is counted and how: another version may count something else. */
static uint64_t layout(void)
{
    uint64_t hash = sizeof(struct part);

    for (int i = 0; i < METRIC_COUNT; i++)
        for (const char *c = families[i].name ? families[i].name : "-"; *c; c++)
            hash = hash * 31 + (unsigned char)*c;
    return hash * 31 + sizeof bounds_ms;
}

static bool is_ours(int fd)
{
    uint64_t theirs;

    return fd >= 0 && pread(fd, &theirs, sizeof theirs, 0) == sizeof theirs && theirs == layout();
}

static int memory_new(void)
{
    const uint64_t ours = layout();
    AUTO_FD int fd = memfd_create("metrics", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)(PAGE + METRICS_PARTS * PART_SIZE)) < 0 ||
        pwrite(fd, &ours, sizeof ours, 0) != sizeof ours)
        return -1;
    return TAKE_FD(fd);
}

/* Without a file in memory the numbers end with the program. */
static struct part *map_part(int i)
{
    void *p = memory_fd < 0 ? MAP_FAILED
                            : mmap(NULL, PART_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd,
                                   (off_t)(PAGE + (size_t)i * PART_SIZE));

    return p == MAP_FAILED ? mem_shared(PART_SIZE) : p;
}

void metrics_open(int take_fd)
{
    if (own)
        return;
    memory_fd = take_fd;
    if (!is_ours(memory_fd)) {
        metrics_close_fd();
        memory_fd = memory_new();
    }
    for (int i = 0; i < METRICS_PARTS; i++)
        parts[i] = map_part(i);
    own = parts[METRICS_BACK];
    /* Of a series that begins with its first event, rate() does not see that event. */
    metrics_add(METRIC_LOG_LINES, "level=\"warn\"", 0);
    metrics_add(METRIC_LOG_LINES, "level=\"error\"", 0);
}

int metrics_fd(void)
{
    return memory_fd;
}

void metrics_close_fd(void)
{
    auto_close_fd(&memory_fd);
}

void metrics_enter(enum metrics_part part)
{
    own = parts[part];
    for (int i = 0; i < METRICS_PARTS; i++)
        if (parts[i] && i != (int)part) {
            munmap(parts[i], PART_SIZE);
            parts[i] = NULL;
        }
}

void metrics_read_only(void)
{
    own = NULL;
    for (int i = 0; i < METRICS_PARTS; i++)
        if (parts[i])
            mprotect(parts[i], PART_SIZE, PROT_READ);
}

bool metrics_are_counted(void)
{
    return own != NULL;
}

/* ---- series ---- */

static bool is_series(const struct series *s, enum metric metric, const char *labels)
{
    return atomic_load_explicit(&s->state, memory_order_acquire) == SLOT_READY &&
           s->metric == (uint32_t)metric && strcmp(s->labels, labels) == 0;
}

/* Is there room for another one of the metric? */
static bool has_room(const struct part *part, enum metric metric)
{
    size_t n = 0;

    for (size_t i = 0; i < SERIES_MAX; i++)
        n += atomic_load_explicit(&part->series[i].state, memory_order_acquire) == SLOT_READY &&
             part->series[i].metric == (uint32_t)metric;
    return n < families[metric].max_series;
}

/* Two processes may make the same at once; they are added up when they are written. NULL: none is
 * free. */
static struct series *find_series(struct part *part, enum metric metric, const char *labels,
                                  bool make)
{
    for (size_t i = 0; i < SERIES_MAX; i++) {
        struct series *s = &part->series[i];
        uint32_t unused = SLOT_FREE;
        if (is_series(s, metric, labels))
            return s;
        if (!make || !atomic_compare_exchange_strong(&s->state, &unused, SLOT_TAKEN))
            continue;
        s->metric = (uint32_t)metric;
        snprintf(s->labels, sizeof s->labels, "%s", labels);
        atomic_store_explicit(&s->state, SLOT_READY, memory_order_release);
        return s;
    }
    return NULL;
}

static struct series *series_for(enum metric metric, const char *labels)
{
    struct series *s = own ? find_series(own, metric, labels, false) : NULL;

    if (s || !own)
        return s;
    if (strlen(labels) >= LABELS_MAX || !has_room(own, metric))
        labels = families[metric].other;
    return find_series(own, metric, labels, true);
}

void metrics_add(enum metric metric, const char *labels, uint64_t n)
{
    struct series *s = series_for(metric, labels);

    if (s)
        atomic_fetch_add_explicit(&s->value, n, memory_order_relaxed);
}

void metrics_set(enum metric metric, uint64_t value)
{
    struct series *s = series_for(metric, "");

    if (s)
        atomic_store_explicit(&s->value, value, memory_order_relaxed);
}

uint64_t metrics_get(enum metric metric)
{
    const struct series *s = own ? find_series(own, metric, "", false) : NULL;

    return s ? atomic_load_explicit(&s->value, memory_order_relaxed) : 0;
}

void metrics_observe(enum metric_times times, int64_t ms)
{
    size_t i = 0;

    if (!own)
        return;
    ms = ms < 0 ? 0 : ms;
    while (i < BOUNDS && ms > bounds_ms[i])
        i++;
    atomic_fetch_add_explicit(&own->times[times].in[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&own->times[times].sum_ms, (uint64_t)ms, memory_order_relaxed);
}

/* ---- labels ---- */

static bool is_plain(char c)
{
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

void metrics_label(struct buf *out, const char *name, const char *value)
{
    buf_addf(out, "%s%s=\"", out->len > 0 ? "," : "", name);
    for (size_t i = 0; value[i] && i < VALUE_MAX; i++)
        buf_add_char(out, is_plain(value[i]) ? value[i] : '_');
    buf_add_char(out, '"');
}

/* As metrics_label makes them: name="value" pairs, of characters that end nothing. */
static bool labels_ok(const char *labels)
{
    for (const char *c = labels; *c;) {
        size_t name = strspn(c, "abcdefghijklmnopqrstuvwxyz_");
        if (name == 0 || c[name] != '=' || c[name + 1] != '"')
            return false;
        for (c += name + 2; *c != '"'; c++)
            if (!is_plain(*c))
                return false;
        c++;
        if (*c == ',' && c[1])
            c++;
        else if (*c)
            return false;
    }
    return true;
}

/* ---- text ---- */

void metrics_write_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_addf(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

/* A copy: another process may change what is read. */
struct sample {
    char labels[LABELS_MAX];
    uint64_t value;
};

static size_t collect(enum metric metric, struct sample *out, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < METRICS_PARTS * SERIES_MAX && n < max; i++) {
        const struct part *part = parts[i / SERIES_MAX];
        const struct series *s = part ? &part->series[i % SERIES_MAX] : NULL;
        size_t at = 0;

        if (!s || atomic_load_explicit(&s->state, memory_order_acquire) != SLOT_READY ||
            s->metric != (uint32_t)metric)
            continue;
        memcpy(out[n].labels, s->labels, LABELS_MAX);
        out[n].labels[LABELS_MAX - 1] = '\0';
        out[n].value = atomic_load_explicit(&s->value, memory_order_relaxed);
        if (!labels_ok(out[n].labels))
            continue;
        while (at < n && strcmp(out[at].labels, out[n].labels) != 0)
            at++;
        if (at < n)
            out[at].value += out[n].value;
        else
            n++;
    }
    return n;
}

static void add_number(struct buf *out, double value)
{
    buf_addf(out, value == (double)(uint64_t)value ? " %.0f\n" : " %.6f\n", value);
}

void metrics_write_number(struct buf *out, const char *name, const char *labels, double value)
{
    bool labelled = *labels;

    buf_addf(out, PREFIX "%s%s%s%s", name, labelled ? "{" : "", labels, labelled ? "}" : "");
    add_number(out, value);
}

static void add_family(enum metric metric, struct buf *out)
{
    const struct family *f = &families[metric];
    AUTO_FREE struct sample *samples = mem_array(f->max_series + 1, sizeof *samples);
    size_t n = collect(metric, samples, f->max_series + 1);

    metrics_write_head(out, f->name, f->type, f->help);
    for (size_t i = 0; i < n; i++)
        metrics_write_number(out, f->name, samples[i].labels, (double)samples[i].value * f->unit);
}

static void add_times(enum metric_times times, struct buf *out)
{
    const char *name = times_names[times].name;
    const struct part *back = parts[METRICS_BACK];
    uint64_t n = 0, sum_ms = 0;

    metrics_write_head(out, name, "histogram", times_names[times].help);
    for (size_t i = 0; i <= BOUNDS; i++) {
        n += back ? atomic_load_explicit(&back->times[times].in[i], memory_order_relaxed) : 0;
        if (i < BOUNDS)
            buf_addf(out, PREFIX "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name,
                     (double)bounds_ms[i] / 1000, n);
    }
    if (back)
        sum_ms = atomic_load_explicit(&back->times[times].sum_ms, memory_order_relaxed);
    buf_addf(out, PREFIX "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n" PREFIX "%s_sum", name, n, name);
    add_number(out, (double)sum_ms / 1000);
    buf_addf(out, PREFIX "%s_count %" PRIu64 "\n", name, n);
}

void metrics_write_one(struct buf *out, const char *name, const char *type, const char *help,
                       double value)
{
    metrics_write_head(out, name, type, help);
    metrics_write_number(out, name, "", value);
}

void metrics_write(struct buf *out)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (families[i].name)
            add_family((enum metric)i, out);
    for (int i = 0; i < METRIC_TIMES; i++)
        add_times((enum metric_times)i, out);
}
