#include "config.h"

#include "tests/fakes/fake_container.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/engine/engine.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct fake_container *fake_container;

void fake_container_reset(void)
{
    if (!fake_container)
        fake_container = mmap(NULL, sizeof *fake_container, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *fake_container = (struct fake_container){0};
}

struct container {
    struct engine engine;
    bool started;
    int data_fd; /* /data, whatever it is called by now */
    int word_fd; /* readable when there is something to look at */
    enum engine_tier tier;
    bool wiping;
    const struct engine_command *program;
    const struct engine_sink *sink;
    const struct engine_attend *attend;
    struct deadline deadline;
};

static void container_clear(struct container *b)
{
    if (b->started)
        fake_container->alive--;
    b->started = false;
    auto_close_fd(&b->data_fd);
    auto_close_fd(&b->word_fd);
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
    b->started = true;
    fake_container->alive++;
    return b->data_fd < 0 ? err_errno(e, "%s", spec->data_path) : 0;
}

static int container_fd(struct engine *engine)
{
    return ((struct container *)engine)->word_fd;
}

static int container_look(struct engine *engine, struct engine_wait *out, struct err *e)
{
    struct container *b = (struct container *)engine;
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
    *out = (struct engine_wait){.tier = b->tier, .memory_bytes = FAKE_CONTAINER_MEMORY};
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
    b->tier = ENGINE_TIER_NONE;
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

static bool print(struct container *b, enum engine_stream stream, const char *data, size_t len)
{
    return b->sink->output(b->sink->ctx, stream, data, len);
}

static bool print_line(struct container *b, enum engine_stream stream, const char *text)
{
    AUTO_FREE char *line = mem_printf("%s\n", text);

    return print(b, stream, line, strlen(line));
}

static bool do_out(struct container *b, const char *text, struct engine_outcome *out)
{
    (void)out;
    return print_line(b, ENGINE_STDOUT, text);
}

static bool do_err(struct container *b, const char *text, struct engine_outcome *out)
{
    (void)out;
    return print_line(b, ENGINE_STDERR, text);
}

static bool do_raw(struct container *b, const char *text, struct engine_outcome *out)
{
    (void)out;
    return print(b, ENGINE_STDOUT, text, strlen(text));
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static bool do_bytes(struct container *b, const char *hex, struct engine_outcome *out)
{
    (void)out;
    for (; hex[0] && hex[1]; hex += 2) {
        char c = (char)(digit(hex[0]) * 16 + digit(hex[1]));
        if (!print(b, ENGINE_STDOUT, &c, 1))
            return false;
    }
    return true;
}

static int number(const char *text)
{
    int n = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        n = 10 * n + (*text - '0');
    return n;
}

static bool do_flood(struct container *b, const char *text, struct engine_outcome *out)
{
    char block[1024];

    (void)out;
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = i % 64 == 63 ? '\n' : 'y';
    for (int i = number(text); i > 0; i--)
        if (!print(b, ENGINE_STDOUT, block, sizeof block) || !pass(0, b->attend))
            return false;
    return true;
}

static bool do_sleep(struct container *b, const char *text, struct engine_outcome *out)
{
    int ms = number(text);
    int left = deadline_poll_ms(b->deadline);

    if (left < ms) {
        bool wanted = pass(left, b->attend);
        out->end = wanted ? ENGINE_TIMED_OUT : ENGINE_CANCELLED;
        return false;
    }
    if (pass(ms, b->attend))
        return true;
    out->end = ENGINE_CANCELLED;
    return false;
}

static bool do_exit(struct container *b, const char *text, struct engine_outcome *out)
{
    (void)b;
    out->end = ENGINE_EXITED;
    out->exit_code = number(text);
    return false;
}

static bool do_file(struct container *b, const char *name, struct engine_outcome *out)
{
    AUTO_FD int fd = openat(b->data_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    (void)out;
    return fd >= 0 && write(fd, "x", 1) == 1;
}

static bool do_stdin(struct container *b, const char *text, struct engine_outcome *out)
{
    (void)text;
    (void)out;
    return print(b, ENGINE_STDOUT, b->program->input, b->program->input_len);
}

static const struct {
    const char *name;
    bool (*act)(struct container *b, const char *rest, struct engine_outcome *out);
} words[] = {{"out ", do_out},     {"err ", do_err},     {"raw ", do_raw},
             {"bytes ", do_bytes}, {"flood ", do_flood}, {"sleep ", do_sleep},
             {"exit ", do_exit},   {"file ", do_file},   {"stdin", do_stdin}};

static bool act(struct container *b, const char *line, struct engine_outcome *out)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strncmp(line, words[i].name, strlen(words[i].name)) == 0)
            return words[i].act(b, line + strlen(words[i].name), out);
    return true;
}

static int container_run(struct engine *engine, const struct engine_command *program,
                         const struct engine_sink *sink, const struct engine_attend *attend,
                         struct deadline d, struct engine_outcome *out, struct err *e)
{
    struct container *b = (struct container *)engine;
    AUTO_FREE char *code = mem_strndup(program->code, program->code_len);
    char *rest = code;

    if (!b->started || fake_container->gone_at_run > 0) {
        fake_container->gone_at_run--;
        container_clear(b);
        return err_set(e, ERR_LOST, "the container was gone");
    }
    fake_container->runs++;
    fake_container->run_cpu_milli = fake_container->cpu_milli;
    b->program = program;
    b->sink = sink;
    b->attend = attend;
    b->deadline = deadline_min(d, deadline_in_ms((int64_t)program->timeout_ms));
    *out = (struct engine_outcome){
        .end = ENGINE_OUTPUT_LIMIT, .exit_code = -1, .started_us = clock_mono_us()};
    bool going = true;
    for (char *line; going && (line = strsep(&rest, "\n"));)
        going = act(b, line, out);
    if (going)
        do_exit(b, "0", out);
    if (out->end != ENGINE_EXITED)
        container_clear(b);
    out->ended_us = clock_mono_us();
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
    .look = container_look,
    .preload = container_preload,
    .limit_cpu = container_limit_cpu,
    .run = container_run,
    .next = container_next,
    .finish = container_finish,
    .free = container_free,
};

void docker_engine_set_up(void)
{
}

struct engine *docker_engine_new(const struct engine_address *address, struct err *e)
{
    struct container *b = mem_alloc(sizeof *b);

    (void)address;
    (void)e;
    *b = (struct container){.engine.ops = &container_ops, .data_fd = -1, .word_fd = -1};
    return &b->engine;
}
