/* Containers that stay, on a real engine: many commands, what is told of their ends, pause, loss,
 * and what they cost beside the engine's own exec. */
#include "config.h"

#include "common/base/mem.h"
#include "tests/engine/live.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A staying container and what came from it last. */
struct staying {
    struct live_run l;
    struct engine *engine;
    struct engine_outcome outcome;
    struct buf text[3]; /* by kind - ENGINE_EVENT_OUT */
    bool failed;
};

static void begin(struct staying *s, const char *image)
{
    *s = (struct staying){.l = live(image, ""),
                          .engine = connect_engine(),
                          .text = {BUF_INIT(KEEP), BUF_INIT(KEEP), BUF_INIT(KEEP)}};
    s->l.spec.psandbox = true;
    s->l.spec.protocol = 0;
    name_run(&s->l);
    if (s->engine->ops->start(s->engine, &s->l.spec, NULL, deadline_in_ms(30000), &s->l.e) < 0) {
        note("%s", s->l.e.text);
        CHECK(false);
    }
}

static void stop(struct staying *s)
{
    s->engine->ops->finish(s->engine);
    s->engine->ops->free(s->engine);
    live_clear(&s->l);
    for (int i = 0; i < 3; i++)
        buf_clear(&s->text[i]);
    CHECK(all_gone());
}

static uint32_t send_command(struct staying *s, const struct engine_command *command)
{
    uint32_t id = 0;

    CHECK(s->engine->ops->exec(s->engine, command, &id, &s->l.e) == 0);
    return id;
}

/* The next event that is one; -1: the container is lost. */
static int next(struct staying *s, struct engine_event *event)
{
    struct deadline d = deadline_in_ms(20000);

    for (;;) {
        struct pollfd p = {.fd = s->engine->ops->fd(s->engine),
                           .events = s->engine->ops->waits(s->engine)};

        if (s->engine->ops->read(s->engine, event, &s->l.e) < 0)
            return -1;
        if (event->kind != ENGINE_EVENT_NOTHING)
            return 0;
        if (deadline_passed(d))
            return err_set(&s->l.e, ERR_TIMEOUT, "nothing came");
        poll(&p, 1, 1000);
    }
}

/* To the command's end, with its text. */
static int await(struct staying *s, uint32_t id)
{
    struct engine_event event;

    for (int i = 0; i < 3; i++)
        buf_reset(&s->text[i]);
    for (;;) {
        if (next(s, &event) < 0) {
            note("%s", s->l.e.text);
            return -1;
        }
        if (event.id != id)
            continue;
        if (event.kind >= ENGINE_EVENT_OUT && event.kind <= ENGINE_EVENT_CONTROL)
            buf_add(&s->text[event.kind - ENGINE_EVENT_OUT], event.data, event.len);
        if (event.kind != ENGINE_EVENT_ENDED && event.kind != ENGINE_EVENT_FAILED)
            continue;
        s->failed = event.kind == ENGINE_EVENT_FAILED;
        if (s->failed)
            buf_add(&s->text[0], event.data, event.len);
        s->outcome = event.outcome;
        return 0;
    }
}

static int sh(struct staying *s, const char *code)
{
    const struct engine_command command = {
        .argv = (const char *const[]){"sh", "-c", code}, .n_argv = 3, .timeout_ms = 15000};

    return await(s, send_command(s, &command));
}

static bool printed(const struct staying *s, const char *text)
{
    if (strcmp(buf_str(&s->text[0]), text) == 0)
        return true;
    note("printed: %s%s", buf_str(&s->text[0]), buf_str(&s->text[1]));
    return false;
}

static void commands_run_in_any_image(void)
{
    static const char *const images[] = {BASH, PLAIN};

    for (size_t i = 0; i < ARRAY_LEN(images); i++) {
        struct staying s;

        begin(&s, images[i]);
        CHECK(sh(&s, "pwd; id -u; echo no >&2; exit 3") == 0 && printed(&s, "/data\n1000\n"));
        CHECK(strcmp(buf_str(&s.text[1]), "no\n") == 0);
        CHECK(s.outcome.end == ENGINE_EXITED && s.outcome.exit_code == 3);
        stop(&s);
    }
}

static void what_was_left_is_there_for_the_next(void)
{
    struct staying s;

    begin(&s, BASH);
    CHECK(sh(&s, "echo x > /tmp/x; sleep 77 & echo $! > /tmp/pid") == 0);
    CHECK(sh(&s, "cat /tmp/x; kill -0 $(cat /tmp/pid) && echo lives") == 0);
    CHECK(printed(&s, "x\nlives\n"));
    stop(&s);
}

static void the_shape_holds_inside_one_that_stays(void)
{
    struct staying s;

    begin(&s, BASH);
    CHECK(
        sh(&s,
           "touch /x /sandbox/x /sandbox/entry 2>/dev/null && echo bad; ls /proc/1/fd "
           "2>/dev/null && echo bad; grep -E 'CapEff|NoNewPrivs' /proc/self/status; "
           "ls /sys/class/net; ls -l /proc/self/fd | wc -l; cat /proc/1/cmdline | tr '\\0' ' '") ==
        0);
    CHECK(printed(&s, "CapEff:\t0000000000000000\nNoNewPrivs:\t1\nlo\n5\n/sandbox/entry serve "));
    stop(&s);
}

static void a_second_place_is_the_same(void)
{
    struct staying s;

    begin(&s, BASH);
    stop(&s);
    s = (struct staying){.l = live(BASH, ""), .engine = connect_engine(), .text = {BUF_INIT(KEEP)}};
    s.l.spec.psandbox = true;
    s.l.spec.alias = "/app";
    name_run(&s.l);
    CHECK(s.engine->ops->start(s.engine, &s.l.spec, NULL, deadline_in_ms(30000), &s.l.e) == 0);
    CHECK(sh(&s, "echo same > /app/made.txt; cat /data/made.txt") == 0 && printed(&s, "same\n"));
    stop(&s);
}

static void a_paused_one_goes_on_where_it_was(void)
{
    struct staying s;
    uint32_t id;
    struct pollfd p = {.events = POLLIN};
    struct engine_event event;
    const struct engine_command command = {
        .argv = (const char *const[]){"sh", "-c", "while :; do echo tick; sleep 0.05; done"},
        .n_argv = 3};

    begin(&s, BASH);
    CHECK(sh(&s, "true") == 0);
    id = send_command(&s, &command);
    CHECK(next(&s, &event) == 0 && event.id == id && event.kind == ENGINE_EVENT_OUT);
    for (int i = 0; i < 2; i++)
        CHECK(s.engine->ops->pause(s.engine, true, &s.l.e) == 0);
    while (s.engine->ops->read(s.engine, &event, &s.l.e) == 0 && event.kind != ENGINE_EVENT_NOTHING)
        ;
    p.fd = s.engine->ops->fd(s.engine);
    poll(&p, 1, 200);
    while (s.engine->ops->read(s.engine, &event, &s.l.e) == 0 && event.kind != ENGINE_EVENT_NOTHING)
        ;
    CHECK(poll(&p, 1, 500) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(s.engine->ops->pause(s.engine, false, &s.l.e) == 0);
    CHECK(next(&s, &event) == 0 && event.id == id);
    CHECK(s.engine->ops->kill(s.engine, id, &s.l.e) == 0 && await(&s, id) == 0);
    CHECK(s.outcome.signal == SIGKILL && s.outcome.end == ENGINE_EXITED);
    /* One that is paused can be removed. */
    CHECK(s.engine->ops->pause(s.engine, true, &s.l.e) == 0);
    stop(&s);
}

static void a_command_without_memory_is_told_and_the_rest_goes_on(void)
{
    struct staying s;

    begin(&s, BASH);
    CHECK(sh(&s, "exec bash -c 'x=x; while :; do x=$x$x$x; done'") == 0);
    CHECK(s.outcome.out_of_memory && s.outcome.signal == SIGKILL);
    CHECK(sh(&s, "echo on") == 0 && printed(&s, "on\n"));
    CHECK(!s.outcome.out_of_memory);
    stop(&s);
}

static void a_fork_bomb_ends_with_its_command(void)
{
    static const char bomb[] = "b() { b | b & }; b; sleep 100";
    struct engine_command command = {
        .argv = (const char *const[]){"bash", "-c", bomb}, .n_argv = 3, .timeout_ms = 1500};
    struct staying s;

    begin(&s, BASH);
    CHECK(await(&s, send_command(&s, &command)) == 0 && s.outcome.end == ENGINE_TIMED_OUT);
    CHECK(sh(&s, "echo on") == 0);
    note("afterwards: %s", buf_str(&s.text[0]));
    stop(&s);
}

static void one_that_is_removed_by_hand_is_lost(void)
{
    struct engine *other = connect_engine();
    struct engine_event event;
    struct staying s;
    struct err e = ERR_INIT;
    uint32_t id;

    begin(&s, BASH);
    CHECK(sh(&s, "true") == 0);
    CHECK(other->ops->reap(other, instance, everything, NULL, &e) == 1);
    CHECK(next(&s, &event) == -1 && s.l.e.kind == ERR_LOST);
    note("%s", s.l.e.text);
    s.engine->ops->finish(s.engine);
    CHECK(s.engine->ops->exec(
              s.engine,
              &(struct engine_command){.argv = (const char *const[]){"true"}, .n_argv = 1}, &id,
              &s.l.e) == -1 &&
          s.l.e.kind == ERR_LOST);
    other->ops->free(other);
    stop(&s);
}

static void a_large_input_and_a_flood_arrive_whole(void)
{
    AUTO_FREE char *input = mem_alloc(4 << 20);
    AUTO_BUF struct buf streams = BUF_INIT(8 << 20);
    struct engine_command command = {.argv = (const char *const[]){"cat"}, .n_argv = 1};
    struct staying s;

    memset(input, 'x', 4 << 20);
    entry_record_add('I', 0, input, 4 << 20, &streams);
    command.streams = streams.data;
    command.streams_len = streams.len;
    begin(&s, BASH);
    CHECK(await(&s, send_command(&s, &command)) == 0);
    CHECK(s.text[0].len == 4 << 20 && s.outcome.exit_code == 0);
    stop(&s);
}

const struct live_case psandbox_cases[] = {
    {"commands run in any image", commands_run_in_any_image},
    {"what was left is there for the next", what_was_left_is_there_for_the_next},
    {"the shape holds inside one that stays", the_shape_holds_inside_one_that_stays},
    {"a second place is the same", a_second_place_is_the_same},
    {"a paused one goes on where it was", a_paused_one_goes_on_where_it_was},
    {"a command without memory is told and the rest goes on",
     a_command_without_memory_is_told_and_the_rest_goes_on},
    {"a fork bomb ends with its command", a_fork_bomb_ends_with_its_command},
    {"one that stays and is removed by hand is lost", one_that_is_removed_by_hand_is_lost},
    {"a large input and a flood arrive whole", a_large_input_and_a_flood_arrive_whole},
    {0},
};
