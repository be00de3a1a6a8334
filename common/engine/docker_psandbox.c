#include "config.h"

#include "common/engine/docker_self.h"

#include "common/engine/psandbox_frame.h"
#include "common/rpc/json.h"

#include <string.h>

/* Memory that is kept for input when all has been sent. */
#define PENDING_KEPT ((size_t)128 * 1024)
/* How long the engine may take to notice that a container whose stream is over has ended. */
#define NOTICE_MS 5000

static struct docker_container *psandbox_container(struct engine *engine, struct err *e)
{
    struct docker_container *container = &((struct docker *)engine)->container;

    if (container->talk.stream && container->talk.raw)
        return container;
    err_set(e, ERR_LOST, "there is no persistent sandbox");
    return NULL;
}

/* Where the command is in ids; n_ids when it has ended. */
static size_t find_id(const struct docker_psandbox *psandbox, uint32_t id)
{
    size_t i = 0;

    while (i < psandbox->n_ids && psandbox->ids[i] != id)
        i++;
    return i;
}

/* Sends what the connection takes, and frees the memory when that is all. */
static void send_pending(struct talk *t)
{
    talk_send(t);
    if (t->sent < t->input.len)
        return;
    if (t->input.cap > PENDING_KEPT)
        buf_clear(&t->input);
    else
        buf_reset(&t->input);
    t->sent = 0;
}

int docker_psandbox_exec(struct engine *engine, const struct engine_command *command,
                         uint32_t *out_id, struct err *e)
{
    struct docker_container *container = psandbox_container(engine, e);
    struct docker_psandbox *psandbox;

    if (!container)
        return -1;
    psandbox = &container->psandbox;
    if (psandbox->n_ids == ENGINE_PSANDBOX_COMMANDS)
        return err_set(e, ERR_LIMIT, "%d commands run in this container already",
                       ENGINE_PSANDBOX_COMMANDS);
    if (psandbox_write_command(psandbox->last_id + 1, command, &container->talk.input, e) < 0)
        return -1;
    *out_id = psandbox->ids[psandbox->n_ids++] = ++psandbox->last_id;
    send_pending(&container->talk);
    return 0;
}

/* Appends records about a command that may have ended. */
static int psandbox_send(struct engine *engine, char tag, uint32_t id, const char *data, size_t len,
                         struct err *e)
{
    struct docker_container *container = psandbox_container(engine, e);
    struct buf *out = container ? &container->talk.input : NULL;

    if (!container)
        return -1;
    if (find_id(&container->psandbox, id) == container->psandbox.n_ids)
        return 0;
    if (len > out->max / 2 || out->len > out->max / 4)
        return err_set(e, ERR_LIMIT, "the container does not take its input: too much is pending");
    psandbox_write(tag, id, data, len, out);
    send_pending(&container->talk);
    return 0;
}

int docker_psandbox_control(struct engine *engine, uint32_t id, const char *data, size_t len,
                            struct err *e)
{
    return len == 0 ? 0 : psandbox_send(engine, 'K', id, data, len, e);
}

int docker_psandbox_kill(struct engine *engine, uint32_t id, struct err *e)
{
    return psandbox_send(engine, 'Z', id, "", 0, e);
}

/* The container's stream is over; e says why. Returns -1. */
static int psandbox_lost(struct docker *d, struct err *e)
{
    struct docker_ending ending;

    if (d->container.talk.why.kind != ERR_NONE || d->container.talk.complaint.len > 0)
        return docker_lost(&d->container, e);
    docker_wait_end(d, deadline_in_ms(NOTICE_MS));
    docker_inspect_end(d, &ending);
    if (ending.found && ending.out_of_memory)
        return err_set(e, ERR_LOST, "the container ran out of memory and ended");
    if (ending.found)
        return err_set(e, ERR_LOST, "the container was ended from outside, with status %d",
                       ending.exit_code);
    return err_set(e, ERR_LOST, "the container was ended from outside");
}

/* Checks that the event is about a command that runs. */
static int check_event(struct docker_container *container,
                       const struct engine_psandbox_event *event)
{
    struct docker_psandbox *psandbox = &container->psandbox;
    size_t at = find_id(psandbox, event->id);

    if (event->kind == ENGINE_PSANDBOX_UP && event->id == 0 && !psandbox->up) {
        psandbox->up = true;
        return 0;
    }
    if (event->kind == ENGINE_PSANDBOX_UP || at == psandbox->n_ids)
        return err_set(&container->talk.why, ERR_PROTOCOL,
                       "the container sent a frame of a command that does not run");
    if (event->kind == ENGINE_PSANDBOX_ENDED || event->kind == ENGINE_PSANDBOX_FAILED)
        psandbox->ids[at] = psandbox->ids[--psandbox->n_ids];
    return 0;
}

/* The next event of what has been received: 1, or 0: more bytes are needed, -1: talk.why. */
static int next_event(struct docker_container *container, struct engine_psandbox_event *out)
{
    struct docker_psandbox *psandbox = &container->psandbox;
    ssize_t n = psandbox_frame_take(buf_str(&psandbox->in) + psandbox->taken,
                                    psandbox->in.len - psandbox->taken, out, &container->talk.why);

    if (n > 0) {
        psandbox->taken += (size_t)n;
        return check_event(container, out) < 0 ? -1 : 1;
    }
    buf_drop_front(&psandbox->in, psandbox->taken);
    psandbox->taken = 0;
    return (int)n;
}

int docker_psandbox_read(struct engine *engine, struct engine_psandbox_event *out, struct err *e)
{
    struct docker *d = (struct docker *)engine;
    struct docker_container *container = psandbox_container(engine, e);
    enum talk_end end = TALK_GOING_ON;
    bool more = true;
    int r;

    *out = (struct engine_psandbox_event){.kind = ENGINE_PSANDBOX_NOTHING};
    if (!container)
        return -1;
    send_pending(&container->talk);
    while ((r = next_event(container, out)) == 0 && end == TALK_GOING_ON && more)
        end = talk_receive(&container->talk, &more);
    if (r < 0 || (r == 0 && end != TALK_GOING_ON))
        return psandbox_lost(d, e);
    return 0;
}

short docker_psandbox_waits(struct engine *engine)
{
    const struct talk *t = &((struct docker *)engine)->container.talk;

    return t->sent < t->input.len ? POLLIN | POLLOUT : POLLIN;
}

/* Whether it is as wanted already; engines refuse the request then, with different words. */
static bool is_paused(struct docker *d, bool wanted)
{
    struct err e = ERR_INIT;
    json_auto_t *answer = docker_container_inspect(d, DOCKER_QUESTION_MS, &e);

    return answer &&
           json_get_bool(json_object_get(answer, "State"), "Paused", !wanted) == (int)wanted;
}

int docker_psandbox_pause(struct engine *engine, bool pause, struct err *e)
{
    struct docker *d = (struct docker *)engine;
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_SMALL_REPLY);
    int status;

    if (!psandbox_container(engine, e))
        return -1;
    status = docker_container_call(d, "POST", pause ? "/pause" : "/unpause", DOCKER_QUESTION_MS,
                                   &reply, e);
    if (status >= 400 && is_paused(d, pause))
        return 0;
    return docker_http_check(status, reply.data, reply.len, e);
}
