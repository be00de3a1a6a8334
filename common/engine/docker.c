#include "config.h"

#include "common/engine/docker_self.h"

#include "common/base/log.h"
#include "common/base/mem.h"

#include <signal.h>
#include <stdlib.h>

static int docker_fd(struct engine *engine)
{
    const struct talk *talk = &((struct docker *)engine)->container.talk;

    return talk->stream ? docker_stream_fd(talk->stream) : -1;
}

static int docker_look(struct engine *engine, struct engine_wait *out, struct err *e)
{
    struct docker_container *container = &((struct docker *)engine)->container;

    if (!container->talk.stream)
        return err_set(e, ERR_LOST, "there is no warm container");
    if (talk_look(&container->talk) != TALK_GOING_ON)
        return docker_lost(container, e);
    *out = container->talk.wait;
    return 0;
}

static int docker_preload(struct engine *engine, const char *names, struct err *e)
{
    struct docker_container *container = &((struct docker *)engine)->container;

    if (!container->talk.stream)
        return err_set(e, ERR_LOST, "there is no warm container");
    if (entry_write_preload(names, &container->talk.input, e) < 0)
        return -1;
    talk_send(&container->talk);
    return 0;
}

static void set_killed(struct engine_outcome *out, enum engine_end end)
{
    out->end = end;
    out->exit_code = -1;
    out->signal = SIGKILL;
}

/* The stream ended without a report: the engine knows how the container ended. */
static int take_ending(struct docker *d, struct deadline deadline, struct engine_outcome *out,
                       struct err *e)
{
    const struct talk *talk = &d->container.talk;
    struct docker_ending ending;
    enum engine_end end = docker_wait_end(d, deadline);

    if (end != ENGINE_EXITED) {
        set_killed(out, end);
        return 0;
    }
    docker_inspect_end(d, &ending);
    if (!ending.found) {
        set_killed(out, ENGINE_KILLED);
    } else if (ending.out_of_memory && ending.exit_code != 0) {
        set_killed(out, ENGINE_EXITED);
        out->out_of_memory = true;
    } else if (talk->protocol == 0) {
        /* 128 + n may as well be the program's own exit code, so no signal is claimed. */
        out->end = ENGINE_EXITED;
        out->exit_code = ending.exit_code;
    } else if (talk->complaint.len > 0 && ending.exit_code != 128 + SIGKILL) {
        return docker_lost(&d->container, e);
    } else {
        set_killed(out, ENGINE_KILLED);
    }
    return 0;
}

static int run_conclude(struct docker *d, enum talk_end end, struct deadline deadline,
                        struct engine_outcome *out, struct err *e)
{
    static const enum engine_end killed[] = {
        [TALK_DEADLINE] = ENGINE_TIMED_OUT,
        [TALK_CANCELLED] = ENGINE_CANCELLED,
        [TALK_STOPPED] = ENGINE_OUTPUT_LIMIT,
        [TALK_GARBLED] = ENGINE_KILLED,
    };

    *out = d->container.talk.outcome;
    if (end == TALK_REPORTED)
        return 0;
    if (end == TALK_ENDED)
        return take_ending(d, deadline, out, e);
    if (end == TALK_LOST)
        return docker_lost(&d->container, e);
    if (end == TALK_GARBLED)
        log_debug("a container broke the protocol: %s", d->container.talk.why.text);
    set_killed(out, killed[end]);
    return 0;
}

static int run_steps(struct docker *d, const struct engine_command *run,
                     const struct engine_sink *sink, struct deadline deadline,
                     struct engine_outcome *out, struct err *e)
{
    struct talk *talk = &d->container.talk;
    enum talk_end end;

    /* If it has ended by now, another container may still take its place. */
    if (talk_look(talk) != TALK_GOING_ON)
        return docker_lost(&d->container, e);
    if (talk_run(talk, run, sink, docker_http_attend(d->http), deadline, &end, e) < 0 ||
        run_conclude(d, end, deadline, out, e) < 0)
        return -1;
    /* After a report everything inside is dead. Otherwise the container is removed before the
     * files are read. */
    if (end != TALK_REPORTED)
        docker_container_remove(d);
    return 0;
}

static int docker_run(struct engine *engine, const struct engine_command *run,
                      const struct engine_sink *sink, const struct engine_attend *attend,
                      struct deadline d, struct engine_outcome *out, struct err *e)
{
    struct docker *docker = (struct docker *)engine;
    int result;

    *out = (struct engine_outcome){.exit_code = -1};
    if (!docker->container.talk.stream)
        return err_set(e, ERR_LOST, "there is no warm container");
    docker_attend_begin(docker_http_attend(docker->http), attend);
    result = run_steps(docker, run, sink, d, out, e);
    docker_attend_end(docker_http_attend(docker->http));
    /* Else the connection stays: hanging up would make the engine remove the container while the
     * answer is sent. */
    if (result < 0)
        docker_container_remove(docker);
    return result;
}

static int docker_next(struct engine *engine, struct err *e)
{
    return talk_next(&((struct docker *)engine)->container.talk, e);
}

static void docker_finish(struct engine *engine)
{
    docker_container_remove((struct docker *)engine);
}

static int docker_watch(struct engine *engine, struct err *e)
{
    /* filters={"type":["image"]} */
    static const char path[] = "/events?filters=%7B%22type%22%3A%5B%22image%22%5D%7D";
    struct docker *d = (struct docker *)engine;

    docker_stream_free(TAKE_PTR(d->events));
    d->events = docker_stream_open(d->http, "GET", path, false, deadline_in_ms(5000), e);
    return d->events ? docker_stream_fd(d->events) : -1;
}

static bool docker_watch_drain(struct engine *engine)
{
    struct docker *d = (struct docker *)engine;
    enum stream_got got = STREAM_END;
    char waste[4096];
    size_t len;

    if (!d->events)
        return false;
    do
        got = docker_stream_recv(d->events, waste, sizeof waste, &len);
    while (got == STREAM_DATA);
    if (got == STREAM_NOTHING_NOW)
        return true;
    docker_stream_free(TAKE_PTR(d->events));
    return false;
}

static const char *docker_version(struct engine *engine)
{
    return docker_http_version(((struct docker *)engine)->http);
}

static void docker_free(struct engine *engine)
{
    struct docker *d = (struct docker *)engine;

    if (!d)
        return;
    docker_stream_free(d->events);
    docker_container_clear(&d->container);
    free(d->container.name);
    docker_http_free(d->http);
    free(d);
}

static const struct engine_ops docker_ops = {
    .start = docker_start,
    .fd = docker_fd,
    .look = docker_look,
    .preload = docker_preload,
    .limit_cpu = docker_limit_cpu,
    .run = docker_run,
    .next = docker_next,
    .finish = docker_finish,
    .version = docker_version,
    .exec = docker_exec,
    .read = docker_read,
    .control = docker_control,
    .kill = docker_kill,
    .waits = docker_waits,
    .pause = docker_pause,
    .runners = docker_runners,
    .reap = docker_reap,
    .watch = docker_watch,
    .watch_drain = docker_watch_drain,
    .free = docker_free,
};

void docker_engine_set_up(void)
{
    docker_http_set_up(); /* docker_http_new reports a failure */
}

struct engine *docker_engine_new(const struct engine_address *address, struct err *e)
{
    struct docker *d = mem_alloc(sizeof *d);

    d->engine.ops = &docker_ops;
    d->http = docker_http_new(address, e);
    if (!d->http) {
        docker_free(&d->engine);
        return NULL;
    }
    return &d->engine;
}
