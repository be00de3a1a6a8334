#include "config.h"

#include "tests/fakes/fake_box.h"

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

struct fake_box *fake_box;

void fake_box_reset(void)
{
    if (!fake_box)
        fake_box = mmap(NULL, sizeof *fake_box, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0);
    *fake_box = (struct fake_box){0};
}

struct box {
    struct engine engine;
    bool started;
    int data_fd; /* /data, whatever it is called by now */
    int word_fd; /* readable when there is something to look at */
    enum engine_tier tier;
    const struct engine_program *program;
    const struct engine_sink *sink;
    const struct engine_attend *attend;
    struct deadline deadline;
};

static void box_clear(struct box *b)
{
    if (b->started)
        fake_box->alive--;
    b->started = false;
    auto_close_fd(&b->data_fd);
    auto_close_fd(&b->word_fd);
}

/* Hears whoever attends for that long; false: cancelled. */
static bool pass(int ms, const struct engine_attend *attend)
{
    struct deadline end = deadline_in_ms(ms);

    for (;;) {
        struct pollfd p = {.fd = attend ? attend->fd : -1, .events = POLLIN};

        poll(&p, 1, deadline_poll_ms(end));
        if (p.revents && !attend->turn(attend->ctx))
            return false;
        if (deadline_passed(end))
            return true;
    }
}

static int open_word(void)
{
    if (fake_box->dies_after_ms == 0)
        return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct itimerspec when = {.it_value = {.tv_sec = fake_box->dies_after_ms / 1000,
                                           .tv_nsec = fake_box->dies_after_ms % 1000 * 1000000L}};
    timerfd_settime(fd, 0, &when, NULL);
    return fd;
}

static int box_start(struct engine *engine, const struct engine_spec *spec,
                     const struct engine_attend *attend, struct deadline d, struct err *e)
{
    struct box *b = (struct box *)engine;

    (void)d;
    box_clear(b);
    fake_box->starts++;
    bool wanted = pass(fake_box->start_ms, attend);
    if (!wanted)
        return err_set(e, ERR_CANCELLED, "the asker went away");
    if (fake_box->failing > 0) {
        fake_box->failing--;
        return err_set(e, ERR_UNAVAILABLE, "the engine is away");
    }
    snprintf(fake_box->data_path, sizeof fake_box->data_path, "%s", spec->data_path);
    b->data_fd = open(spec->data_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    b->word_fd = open_word();
    b->tier = fake_box->boots ? ENGINE_TIER_NONE : ENGINE_TIER_LIGHT;
    b->started = true;
    fake_box->alive++;
    return b->data_fd < 0 ? err_errno(e, "%s", spec->data_path) : 0;
}

static int box_fd(struct engine *engine)
{
    return ((struct box *)engine)->word_fd;
}

static int box_look(struct engine *engine, struct engine_wait *out, struct err *e)
{
    struct box *b = (struct box *)engine;
    uint64_t n;
    bool word = read(b->word_fd, &n, sizeof n) > 0;

    if (word && fake_box->dies_after_ms)
        return err_set(e, ERR_LOST, "the container ended before it had a program");
    if (word)
        b->tier = ENGINE_TIER_FULL;
    *out = (struct engine_wait){.tier = b->tier, .memory_bytes = FAKE_BOX_MEMORY};
    return 0;
}

static int box_preload(struct engine *engine, const char *names, struct err *e)
{
    const uint64_t one = 1;

    (void)names;
    fake_box->preloads++;
    if (write(((struct box *)engine)->word_fd, &one, sizeof one) < 0)
        return err_errno(e, "preload");
    return 0;
}

/* ---- programs ---- */

static bool print(struct box *b, enum engine_stream stream, const char *data, size_t len)
{
    return b->sink->output(b->sink->ctx, stream, data, len);
}

static bool print_line(struct box *b, enum engine_stream stream, const char *text)
{
    AUTO_FREE char *line = mem_printf("%s\n", text);

    return print(b, stream, line, strlen(line));
}

static bool do_out(struct box *b, const char *text, struct engine_outcome *out)
{
    (void)out;
    return print_line(b, ENGINE_STDOUT, text);
}

static bool do_err(struct box *b, const char *text, struct engine_outcome *out)
{
    (void)out;
    return print_line(b, ENGINE_STDERR, text);
}

static bool do_raw(struct box *b, const char *text, struct engine_outcome *out)
{
    (void)out;
    return print(b, ENGINE_STDOUT, text, strlen(text));
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static bool do_bytes(struct box *b, const char *hex, struct engine_outcome *out)
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

static bool do_flood(struct box *b, const char *text, struct engine_outcome *out)
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

static bool do_sleep(struct box *b, const char *text, struct engine_outcome *out)
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

static bool do_exit(struct box *b, const char *text, struct engine_outcome *out)
{
    (void)b;
    out->end = ENGINE_EXITED;
    out->exit_code = number(text);
    return false;
}

static bool do_file(struct box *b, const char *name, struct engine_outcome *out)
{
    AUTO_FD int fd = openat(b->data_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    (void)out;
    return fd >= 0 && write(fd, "x", 1) == 1;
}

static bool do_stdin(struct box *b, const char *text, struct engine_outcome *out)
{
    (void)text;
    (void)out;
    return print(b, ENGINE_STDOUT, b->program->input, b->program->input_len);
}

static const struct {
    const char *name;
    bool (*act)(struct box *b, const char *rest, struct engine_outcome *out);
} words[] = {{"out ", do_out},     {"err ", do_err},     {"raw ", do_raw},
             {"bytes ", do_bytes}, {"flood ", do_flood}, {"sleep ", do_sleep},
             {"exit ", do_exit},   {"file ", do_file},   {"stdin", do_stdin}};

static bool act(struct box *b, const char *line, struct engine_outcome *out)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strncmp(line, words[i].name, strlen(words[i].name)) == 0)
            return words[i].act(b, line + strlen(words[i].name), out);
    return true;
}

static int box_run(struct engine *engine, const struct engine_program *program,
                   const struct engine_sink *sink, const struct engine_attend *attend,
                   struct deadline d, struct engine_outcome *out, struct err *e)
{
    struct box *b = (struct box *)engine;
    AUTO_FREE char *code = mem_strndup(program->code, program->code_len);
    char *rest = code;

    if (!b->started || fake_box->gone_at_run > 0) {
        fake_box->gone_at_run--;
        box_clear(b);
        return err_set(e, ERR_LOST, "the container was gone");
    }
    fake_box->runs++;
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
        box_clear(b);
    out->ended_us = clock_mono_us();
    return 0;
}

static void box_finish(struct engine *engine)
{
    box_clear((struct box *)engine);
}

static void box_free(struct engine *engine)
{
    box_clear((struct box *)engine);
    free(engine);
}

static const struct engine_ops box_ops = {
    .start = box_start,
    .fd = box_fd,
    .look = box_look,
    .preload = box_preload,
    .run = box_run,
    .finish = box_finish,
    .free = box_free,
};

void docker_engine_set_up(void)
{
}

struct engine *docker_engine_new(const struct engine_address *address, struct err *e)
{
    struct box *b = mem_alloc(sizeof *b);

    (void)address;
    (void)e;
    *b = (struct box){.engine.ops = &box_ops, .data_fd = -1, .word_fd = -1};
    return &b->engine;
}
