#include "config.h"

#include "tests/fakes/fake_container.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/engine/engine.h"
#include "common/protocol/entry_record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct fake_container *fake_container;

static struct engine *engine_new(void);
struct engine *(*fake_container_new)(void);

void fake_container_reset(void)
{
    if (!fake_container)
        fake_container = mmap(NULL, sizeof *fake_container, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *fake_container = (struct fake_container){0};
    fake_container_new = engine_new;
}

struct container {
    struct engine engine;
    bool started;
    int data_fd; /* /data, whatever it is called by now */
    int word_fd; /* readable when there is something to look at */
    enum engine_tier tier, told;
    bool wiping;
    /* The program that runs. */
    bool runs;
    int run_fd;        /* a timer: readable when it goes on */
    char *code, *rest; /* the lines that are left */
    char *input;
    struct deadline on;          /* when it goes on */
    enum engine_event_kind load; /* its next event about libraries; NOTHING: none */
    bool held, endless, killed;
    struct buf output; /* what it has printed, */
    enum engine_stream stream;
    size_t piece, read; /* how much of that is sent at once, and was */
};

static void container_clear(struct container *b)
{
    if (b->started)
        fake_container->alive--;
    b->started = b->runs = false;
    auto_close_fd(&b->data_fd);
    auto_close_fd(&b->word_fd);
    auto_close_fd(&b->run_fd);
    free(TAKE_PTR(b->code));
    free(TAKE_PTR(b->input));
    buf_clear(&b->output);
}

/* Attends for that long; false: cancelled. */
static bool pass(int ms, const struct engine_attend *attend)
{
    struct deadline end = deadline_in_ms(ms);

    for (;;) {
        struct pollfd p = {.fd = attend ? attend->fd : -1, .events = POLLIN};

        poll(&p, 1, deadline_poll_ms(end));
        if (p.revents && !attend->tick(attend->ctx))
            return false;
        if (deadline_passed(end))
            return true;
    }
}

static int open_word(void)
{
    if (fake_container->dies_after_ms == 0)
        return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct itimerspec when = {
        .it_value = {.tv_sec = fake_container->dies_after_ms / 1000,
                     .tv_nsec = fake_container->dies_after_ms % 1000 * 1000000L}};
    timerfd_settime(fd, 0, &when, NULL);
    return fd;
}

static int container_start(struct engine *engine, const struct engine_spec *spec,
                           const struct engine_attend *attend, struct deadline d, struct err *e)
{
    struct container *b = (struct container *)engine;

    (void)d;
    container_clear(b);
    fake_container->starts++;
    bool wanted = pass(fake_container->start_ms, attend);
    if (!wanted)
        return err_set(e, ERR_CANCELLED, "the caller went away");
    if (fake_container->failing > 0) {
        fake_container->failing--;
        return err_set(e, ERR_UNAVAILABLE, "the engine is away");
    }
    fake_container->cpu_milli = spec->limits.cpu_milli;
    snprintf(fake_container->data_path, sizeof fake_container->data_path, "%s", spec->data_path);
    b->data_fd = open(spec->data_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    b->word_fd = open_word();
    b->tier = fake_container->boots ? ENGINE_TIER_NONE : ENGINE_TIER_STARTED;
    b->told = ENGINE_TIER_NONE;
    b->started = true;
    fake_container->alive++;
    return b->data_fd < 0 ? err_errno(e, "%s", spec->data_path) : 0;
}

static int container_fd(struct engine *engine)
{
    const struct container *b = (struct container *)engine;

    return b->runs ? b->run_fd : b->word_fd;
}

static short container_waits(struct engine *engine)
{
    (void)engine;
    return POLLIN;
}

/* What it says while it waits. */
static int read_word(struct container *b, struct engine_event *out, struct err *e)
{
    uint64_t n;
    bool word = read(b->word_fd, &n, sizeof n) > 0;

    if (word && b->wiping && fake_container->doubts > 0) {
        fake_container->doubts--;
        return err_set(e, ERR_REFUSED, "a process is left");
    }
    if (word && fake_container->dies_after_ms && !b->wiping)
        return err_set(e, ERR_LOST, "the container ended before it got a program");
    if (word)
        b->tier = b->wiping ? ENGINE_TIER_STARTED : ENGINE_TIER_PRELOADED;
    b->wiping = b->wiping && !word;
    if (b->tier == b->told)
        return 0;
    b->told = b->tier;
    *out = (struct engine_event){.kind = ENGINE_EVENT_TIER,
                                 .wait = {.tier = b->tier, .memory_bytes = FAKE_CONTAINER_MEMORY}};
    return 0;
}

static int container_preload(struct engine *engine, const char *names, struct err *e)
{
    const uint64_t one = 1;

    (void)names;
    fake_container->preloads++;
    fake_container->load_cpu_milli = fake_container->cpu_milli;
    if (!fake_container->loads &&
        write(((struct container *)engine)->word_fd, &one, sizeof one) < 0)
        return err_errno(e, "preload");
    return 0;
}

static int container_next(struct engine *engine, struct err *e)
{
    struct container *b = (struct container *)engine;
    const struct itimerspec when = {
        .it_value = {.tv_sec = fake_container->wipe_ms / 1000,
                     .tv_nsec = fake_container->wipe_ms % 1000 * 1000000L + 1}};

    if (!b->started)
        return err_set(e, ERR_LOST, "there is no container that a run has left");
    fake_container->wipes++;
    auto_close_fd(&b->word_fd);
    b->word_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    timerfd_settime(b->word_fd, 0, &when, NULL);
    b->tier = b->told = ENGINE_TIER_NONE;
    b->wiping = true;
    return 0;
}

static int container_limit_cpu(struct engine *engine, uint64_t cpu_milli, struct err *e)
{
    (void)engine;
    if (fake_container->paces)
        return err_set(e, ERR_NOT_FOUND, "page not found");
    fake_container->cpu_milli = cpu_milli;
    if (fake_container->failing_limits == 0)
        return 0;
    fake_container->failing_limits--;
    return err_set(e, ERR_UNAVAILABLE, "the engine is silent");
}

/* ---- programs ---- */

/* Its next look is at that time. */
static void go_on_at(struct container *b, struct deadline on)
{
    const struct itimerspec when = {
        .it_value = {.tv_sec = on.at_ms / 1000, .tv_nsec = on.at_ms % 1000 * 1000000L + 1}};

    b->on = on;
    timerfd_settime(b->run_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void print(struct container *b, enum engine_stream stream, const char *data, size_t len)
{
    buf_add(&b->output, data, len);
    b->stream = stream;
    b->piece = len;
}

static void print_line(struct container *b, enum engine_stream stream, const char *text)
{
    AUTO_FREE char *line = mem_printf("%s\n", text);

    print(b, stream, line, strlen(line));
}

static void do_out(struct container *b, const char *text)
{
    print_line(b, ENGINE_STDOUT, text);
}

static void do_err(struct container *b, const char *text)
{
    print_line(b, ENGINE_STDERR, text);
}

static void do_raw(struct container *b, const char *text)
{
    print(b, ENGINE_STDOUT, text, strlen(text));
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void do_bytes(struct container *b, const char *hex)
{
    for (; hex[0] && hex[1]; hex += 2) {
        char c = (char)(digit(hex[0]) * 16 + digit(hex[1]));
        print(b, ENGINE_STDOUT, &c, 1);
    }
}

static int number(const char *text)
{
    int n = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        n = 10 * n + (*text - '0');
    return n;
}

static void do_flood(struct container *b, const char *text)
{
    char block[1024];

    for (size_t i = 0; i < sizeof block; i++)
        block[i] = i % 64 == 63 ? '\n' : 'y';
    for (int i = number(text); i > 0; i--)
        print(b, ENGINE_STDOUT, block, sizeof block);
}

static void do_sleep(struct container *b, const char *text)
{
    go_on_at(b, deadline_in_ms(number(text)));
}

/* Is the next line until it may go on. */
static void do_await(struct container *b, const char *text)
{
    if (fake_container->goes > 0) {
        fake_container->goes--;
        return;
    }
    if (b->rest)
        b->rest[-1] = '\n';
    b->rest = b->code + (text - b->code) - strlen("await");
    go_on_at(b, deadline_in_ms(5));
}

static void do_file(struct container *b, const char *name)
{
    AUTO_FD int fd = openat(b->data_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, "x", 1) != 1)
        abort();
}

static void do_stdin(struct container *b, const char *text)
{
    (void)text;
    print(b, ENGINE_STDOUT, b->input, strlen(b->input));
}

static void do_load(struct container *b, const char *text)
{
    b->load = ENGINE_EVENT_LOADING;
    b->endless = strcmp(text, " forever") == 0;
}

static const struct {
    const char *name;
    void (*act)(struct container *b, const char *rest);
} words[] = {{"out ", do_out},     {"err ", do_err},     {"raw ", do_raw},   {"bytes ", do_bytes},
             {"flood ", do_flood}, {"sleep ", do_sleep}, {"file ", do_file}, {"stdin", do_stdin},
             {"load", do_load},    {"await", do_await}};

static void act(struct container *b, const char *line)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strncmp(line, words[i].name, strlen(words[i].name)) == 0)
            words[i].act(b, line + strlen(words[i].name));
}

static char *text_of(const struct engine_command *program, char tag)
{
    AUTO_BUF struct buf text = BUF_INIT(64 << 20);

    entry_records_join(program->streams, program->streams_len, tag, &text);
    return buf_take(&text);
}

static int container_exec(struct engine *engine, const struct engine_command *program,
                          uint32_t *out_id, struct err *e)
{
    struct container *b = (struct container *)engine;

    if (!b->started || fake_container->gone_at_run > 0) {
        fake_container->gone_at_run--;
        container_clear(b);
        return err_set(e, ERR_LOST, "the container was gone");
    }
    fake_container->runs++;
    fake_container->run_cpu_milli = fake_container->cpu_milli;
    snprintf(fake_container->load, sizeof fake_container->load, "%s",
             program->load ? program->load : "");
    snprintf(fake_container->language, sizeof fake_container->language, "%s",
             program->language ? program->language : "");
    free(b->code);
    free(b->input);
    b->code = b->rest = text_of(program, 'C');
    b->input = text_of(program, 'I');
    b->output = BUF_INIT(64 << 20);
    b->read = 0;
    auto_close_fd(&b->run_fd);
    b->run_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    b->runs = true;
    b->load = ENGINE_EVENT_NOTHING;
    b->held = b->killed = false;
    *out_id = 1;
    go_on_at(b, deadline_in_ms(0));
    return 0;
}

/* How much of what it has printed is sent next. */
static size_t next_piece(struct container *b)
{
    size_t left = b->output.len - b->read;

    if (left == 0) {
        buf_reset(&b->output);
        b->read = 0;
    }
    return left < b->piece ? left : b->piece;
}

/* What it says of the libraries that its program needs. */
static void read_load(struct container *b, struct engine_event *out)
{
    *out = (struct engine_event){.kind = b->load, .id = 1};
    if (b->load == ENGINE_EVENT_LOADED)
        fake_container->load_cpu_milli = fake_container->cpu_milli;
    b->held = b->endless || b->load == ENGINE_EVENT_LOADED;
    b->load = b->held ? ENGINE_EVENT_NOTHING : ENGINE_EVENT_LOADED;
}

static int container_go(struct engine *engine, uint32_t id, struct err *e)
{
    struct container *b = (struct container *)engine;

    if (!b->runs || !b->held || id != 1)
        return err_set(e, ERR_LOST, "there is no run that is held");
    b->held = false;
    fake_container->run_cpu_milli = fake_container->cpu_milli;
    go_on_at(b, deadline_in_ms(0));
    return 0;
}

/* The report of a killed program comes next, whatever it was about to do. */
static int container_kill(struct engine *engine, uint32_t id, struct err *e)
{
    struct container *b = (struct container *)engine;

    (void)e;
    b->killed = b->runs && id == 1;
    go_on_at(b, deadline_in_ms(0));
    return 0;
}

static void read_report(struct container *b, struct engine_event *out)
{
    b->runs = b->held = b->killed = false;
    *out = (struct engine_event){.kind = ENGINE_EVENT_ENDED,
                                 .outcome = {.exit_code = -1,
                                             .signal = SIGKILL,
                                             .cpu_us = FAKE_KILLED_CPU_US,
                                             .peak_memory_bytes = FAKE_KILLED_MEMORY}};
}

/* What the program does next. */
static void read_program(struct container *b, struct engine_event *out)
{
    char *line = NULL;
    size_t len = next_piece(b);

    while (len == 0 && b->load == ENGINE_EVENT_NOTHING && deadline_passed(b->on) &&
           (line = strsep(&b->rest, "\n")) && strncmp(line, "exit ", 5) != 0) {
        act(b, line);
        len = next_piece(b);
    }
    if (b->load != ENGINE_EVENT_NOTHING)
        read_load(b, out);
    if (out->kind != ENGINE_EVENT_NOTHING || (len == 0 && !deadline_passed(b->on)))
        return;
    if (len == 0) {
        b->runs = false;
        *out = (struct engine_event){.kind = ENGINE_EVENT_ENDED,
                                     .outcome = {.exit_code = line ? number(line + 5) : 0}};
        return;
    }
    *out = (struct engine_event){.kind = b->stream == ENGINE_STDOUT ? ENGINE_EVENT_OUT
                                                                    : ENGINE_EVENT_ERR,
                                 .data = b->output.data + b->read,
                                 .len = len};
    b->read += len;
}

static int container_read(struct engine *engine, struct engine_event *out, struct err *e)
{
    struct container *b = (struct container *)engine;
    uint64_t n;

    *out = (struct engine_event){.kind = ENGINE_EVENT_NOTHING};
    if (!b->started)
        return err_set(e, ERR_LOST, "there is no container");
    if (!b->runs)
        return read_word(b, out, e);
    if (read(b->run_fd, &n, sizeof n) < 0 && errno != EAGAIN)
        abort();
    if (b->killed)
        read_report(b, out);
    else if (!b->held)
        read_program(b, out);
    return 0;
}

static uint64_t container_cpu_us(struct engine *engine)
{
    (void)engine;
    return 0;
}

static void container_finish(struct engine *engine)
{
    container_clear((struct container *)engine);
}

static void container_free(struct engine *engine)
{
    container_clear((struct container *)engine);
    free(engine);
}

static const struct engine_ops container_ops = {
    .start = container_start,
    .fd = container_fd,
    .waits = container_waits,
    .exec = container_exec,
    .go = container_go,
    .kill = container_kill,
    .read = container_read,
    .preload = container_preload,
    .limit_cpu = container_limit_cpu,
    .next = container_next,
    .cpu_us = container_cpu_us,
    .finish = container_finish,
    .free = container_free,
};

void docker_engine_set_up(void)
{
}

static struct engine *engine_new(void)
{
    struct container *b = mem_alloc(sizeof *b);

    *b = (struct container){
        .engine.ops = &container_ops, .data_fd = -1, .word_fd = -1, .run_fd = -1};
    return &b->engine;
}

struct engine *docker_engine_new(const struct engine_address *address, struct err *e)
{
    (void)address;
    (void)e;
    return fake_container_new();
}
