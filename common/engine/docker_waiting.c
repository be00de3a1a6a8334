#include "config.h"

#include "common/engine/docker.h"

int docker_fd(struct engine *engine)
{
    const struct talk *talk = &((struct docker *)engine)->box.talk;

    return talk->stream ? docker_stream_fd(talk->stream) : -1;
}

int docker_lost(const struct docker_box *box, struct err *e)
{
    const struct buf *complaint = &box->talk.complaint;

    if (box->talk.why.kind != ERR_NONE)
        *e = box->talk.why;
    else if (complaint->len > 0)
        err_set(e, ERR_REFUSED, "the entry program of %s failed: %s", box->image,
                buf_str(complaint));
    else
        err_set(e, ERR_LOST, "the container ended before it had a program");
    return -1;
}

int docker_look(struct engine *engine, struct engine_wait *out, struct err *e)
{
    struct docker_box *box = &((struct docker *)engine)->box;

    if (!box->talk.stream)
        return err_set(e, ERR_LOST, "there is no container that waits");
    if (talk_look(&box->talk) != TALK_GOING_ON)
        return docker_lost(box, e);
    *out = (struct engine_wait){.tier = box->talk.entry.tier,
                                .memory_bytes = box->talk.entry.memory_bytes};
    return 0;
}

int docker_preload(struct engine *engine, const char *names, struct err *e)
{
    struct docker_box *box = &((struct docker *)engine)->box;

    if (!box->talk.stream)
        return err_set(e, ERR_LOST, "there is no container that waits");
    return talk_preload(&box->talk, names, e);
}
