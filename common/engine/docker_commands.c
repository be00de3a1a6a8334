#include "config.h"

#include "common/engine/docker_self.h"

#include "common/base/log.h"
#include "common/protocol/entry_record.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <signal.h>

/* How long the engine may take to notice that a container whose stream is over has ended. */
#define NOTICE_MS 5000

static struct talk *command_talk(struct engine *engine, struct err *e)
{
    struct talk *talk = &((struct docker *)engine)->container.talk;

    if (talk->stream)
        return talk;
    err_set(e, ERR_LOST, "there is no container");
    return NULL;
}

int docker_exec(struct engine *engine, const struct engine_command *command, uint32_t *out_id,
                struct err *e)
{
    struct talk *talk = command_talk(engine, e);

    if (!talk || talk_command(talk, command, e) < 0)
        return -1;
    *out_id = talk->last_id;
    talk_send(talk);
    return 0;
}

/* Appends records about a command that may have ended. */
static int command_send(struct engine *engine, char tag, uint32_t id, const char *data, size_t len,
                        struct err *e)
{
    struct talk *talk = command_talk(engine, e);

    if (!talk)
        return -1;
    if (talk_find(talk, id) == talk->n_ids)
        return 0;
    if (len > talk->input.max / 2 || talk->input.len > talk->input.max / 4)
        return err_set(e, ERR_LIMIT, "the container does not take its input: too much is pending");
    entry_record_add(tag, id, data, len, &talk->input);
    talk_send(talk);
    return 0;
}

int docker_control(struct engine *engine, uint32_t id, const char *data, size_t len, struct err *e)
{
    return len == 0 ? 0 : command_send(engine, 'K', id, data, len, e);
}

int docker_go(struct engine *engine, uint32_t id, struct err *e)
{
    return talk_go(&((struct docker *)engine)->container.talk, id, e);
}

int docker_kill(struct engine *engine, uint32_t id, struct err *e)
{
    return command_send(engine, 'Z', id, "", 0, e);
}

/* ---- events ---- */

static void set_killed(struct engine_outcome *out, enum engine_end end)
{
    out->end = end;
    out->exit_code = -1;
    out->signal = SIGKILL;
}

/* The stream of a run ended without a report: the engine knows how the container ended. */
static int take_ending(struct docker *d, struct engine_outcome *out, struct err *e)
{
    const struct talk *talk = &d->container.talk;
    struct docker_ending ending = {0};
    enum engine_end end;

    docker_attend_begin(docker_http_attend(d->http), d->attend);
    end = docker_wait_end(d, talk->run_by);
    if (end == ENGINE_EXITED)
        docker_inspect_end(d, &ending);
    docker_attend_end(docker_http_attend(d->http));
    if (end != ENGINE_EXITED) {
        set_killed(out, end);
    } else if (!ending.found) {
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

/* The talk with a container that has a run is over: so is the run, unless it has not begun. The
 * container is removed before the files are read. */
static int run_over(struct docker *d, enum talk_end end, struct engine_event *out, struct err *e)
{
    const struct talk *talk = &d->container.talk;
    int result = 0;

    *out = (struct engine_event){
        .kind = ENGINE_EVENT_ENDED, .id = talk->run_id, .outcome = {.exit_code = -1}};
    if (talk->lost) {
        result = docker_lost(&d->container, e);
    } else if (end == TALK_GARBLED) {
        log_debug("a container broke the protocol: %s", talk->why.text);
        set_killed(&out->outcome, ENGINE_KILLED);
    } else {
        result = take_ending(d, &out->outcome, e);
    }
    docker_container_remove(d, DOCKER_PATIENCE_MS);
    return result;
}

/* The stream of a persistent sandbox is over; e says why. Returns -1. */
static int psandbox_lost(struct docker *d, struct err *e)
{
    struct docker_ending ending;

    docker_wait_end(d, deadline_in_ms(NOTICE_MS));
    docker_inspect_end(d, &ending);
    if (ending.found && ending.out_of_memory) {
        err_set(e, ERR_LOST, "the container ran out of memory and ended");
        e->sys = ENOMEM;
        return -1;
    }
    if (ending.found)
        return err_set(e, ERR_LOST, "the container was ended from outside, with status %d",
                       ending.exit_code);
    return err_set(e, ERR_LOST, "the container was ended from outside");
}

int docker_read(struct engine *engine, struct engine_event *out, struct err *e)
{
    struct docker *d = (struct docker *)engine;
    struct talk *talk = command_talk(engine, e);
    enum talk_end end;

    *out = (struct engine_event){.kind = ENGINE_EVENT_NOTHING};
    if (!talk)
        return -1;
    end = talk_read(talk, out);
    if (end == TALK_GOING_ON)
        return 0;
    if (talk->run_id != 0)
        return run_over(d, end, out, e);
    return d->container.psandbox && talk->why.kind == ERR_NONE && talk->complaint.len == 0
               ? psandbox_lost(d, e)
               : docker_lost(&d->container, e);
}

short docker_waits(struct engine *engine)
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

int docker_pause(struct engine *engine, bool pause, struct err *e)
{
    struct docker *d = (struct docker *)engine;
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_SMALL_REPLY);
    int status;

    if (!command_talk(engine, e))
        return -1;
    status = docker_container_call(d, "POST", pause ? "/pause" : "/unpause", DOCKER_QUESTION_MS,
                                   &reply, e);
    if (status >= 400 && is_paused(d, pause))
        return 0;
    return docker_http_check(status, reply.data, reply.len, e);
}
