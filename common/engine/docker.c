#include "config.h"

#include "common/engine/docker_self.h"

#include "common/base/mem.h"
#include "common/engine/cgroup.h"

#include <stdlib.h>

static int docker_fd(struct engine *engine)
{
    const struct talk *talk = &((struct docker *)engine)->container.talk;

    return talk->stream ? docker_stream_fd(talk->stream) : -1;
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

static int docker_next(struct engine *engine, struct err *e)
{
    return talk_next(&((struct docker *)engine)->container.talk, e);
}

static uint64_t docker_cpu_us(struct engine *engine)
{
    struct docker_container *container = &((struct docker *)engine)->container;
    uint64_t us = 0;

    if (!container->talk.stream)
        return 0;
    if (container->cpu_fd == 0)
        container->cpu_fd = cgroup_open(CGROUP_ROOT, CGROUP_CPU_US, container->id);
    return container->cpu_fd > 0 && cgroup_read(container->cpu_fd, CGROUP_CPU_US, &us) ? us : 0;
}

static void docker_finish(struct engine *engine)
{
    /* No caller waits, and this is the last try. On a busy machine an engine refuses for seconds.
     */
    docker_container_remove((struct docker *)engine, DOCKER_REMOVE_MS);
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

static const struct engine_facts *docker_facts(struct engine *engine)
{
    return docker_http_facts(((struct docker *)engine)->http);
}

static void docker_free(struct engine *engine)
{
    struct docker *d = (struct docker *)engine;

    if (!d)
        return;
    docker_stream_free(d->events);
    docker_finish(engine); /* what did not start, too */
    free(d->container.name);
    docker_http_free(d->http);
    free(d);
}

static const struct engine_ops docker_ops = {
    .start = docker_start,
    .fd = docker_fd,
    .preload = docker_preload,
    .limit_cpu = docker_limit_cpu,
    .next = docker_next,
    .cpu_us = docker_cpu_us,
    .finish = docker_finish,
    .facts = docker_facts,
    .exec = docker_exec,
    .read = docker_read,
    .control = docker_control,
    .go = docker_go,
    .kill = docker_kill,
    .waits = docker_waits,
    .pause = docker_pause,
    .runners = docker_runners,
    .reap = docker_reap,
    .memory = docker_memory,
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
