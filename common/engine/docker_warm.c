#include "config.h"

#include "common/engine/docker.h"

int docker_fd(struct engine *engine)
{
    const struct talk *talk = &((struct docker *)engine)->container.talk;

    return talk->stream ? docker_stream_fd(talk->stream) : -1;
}

int docker_lost(const struct docker_container *container, struct err *e)
{
    const struct buf *complaint = &container->talk.complaint;

    if (container->talk.why.kind != ERR_NONE)
        *e = container->talk.why;
    else if (complaint->len > 0)
        err_set(e, ERR_REFUSED, "the entry program of %s failed: %s", container->image,
                buf_str(complaint));
    else
        err_set(e, ERR_LOST, "the container ended before it had a program");
    return -1;
}

int docker_look(struct engine *engine, struct engine_wait *out, struct err *e)
{
    struct docker_container *container = &((struct docker *)engine)->container;

    if (!container->talk.stream)
        return err_set(e, ERR_LOST, "there is no container that waits");
    if (talk_look(&container->talk) != TALK_GOING_ON)
        return docker_lost(container, e);
    *out = (struct engine_wait){.tier = container->talk.entry.tier,
                                .memory_bytes = container->talk.entry.memory_bytes};
    return 0;
}

int docker_preload(struct engine *engine, const char *names, struct err *e)
{
    struct docker_container *container = &((struct docker *)engine)->container;

    if (!container->talk.stream)
        return err_set(e, ERR_LOST, "there is no container that waits");
    return talk_preload(&container->talk, names, e);
}
