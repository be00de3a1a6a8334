#include "config.h"

#include "common/engine/docker.h"

#include "common/base/log.h"
#include "common/rpc/json.h"

#include <signal.h>

#define WAIT_SLICE_MS                                                                              \
    500 /* how long a wait for the end of a container may overlook a cancellation */

enum engine_end docker_wait_end(struct docker *d, struct deadline deadline)
{
    while (!deadline_passed(deadline)) {
        AUTO_BUF struct buf reply = BUF_INIT(DOCKER_SMALL_REPLY);
        struct err e = ERR_INIT;
        int64_t began = clock_mono_ms();

        if (docker_container_call(d, "POST", "/wait", WAIT_SLICE_MS, &reply, &e) >= 0)
            return ENGINE_EXITED;
        if (docker_http_attend(d->http)->cancelled)
            return ENGINE_CANCELLED;
        /* No answer within the slice: it still runs. A much quicker failure: the engine is gone. */
        if (clock_mono_ms() - began < WAIT_SLICE_MS / 2)
            return ENGINE_EXITED;
    }
    return ENGINE_TIMED_OUT;
}

void docker_inspect_end(struct docker *d, struct docker_ending *out)
{
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_LARGE_REPLY);
    struct err e = ERR_INIT;
    json_auto_t *answer = NULL;
    const json_t *state;
    json_int_t code;

    *out = (struct docker_ending){.exit_code = -1};
    if (docker_container_call(d, "GET", "/json", DOCKER_QUESTION_MS, &reply, &e) != 200)
        return;
    answer = json_parse(buf_str(&reply), reply.len, JSON_MAX_DEPTH, &e);
    state = answer ? json_object_get(answer, "State") : NULL;
    code = json_get_integer(state, "ExitCode", -1);
    /* Removed under our hands, or ended while the engine was away: then nobody knows how. */
    if (code < 0 || code > 255 || json_get_bool(state, "Running", 0))
        return;
    out->found = true;
    out->exit_code = (int)code;
    out->out_of_memory = json_get_bool(state, "OOMKilled", 0) != 0;
}

static void set_killed(struct engine_outcome *out, enum engine_end end)
{
    out->end = end;
    out->exit_code = -1;
    out->signal = SIGKILL;
}

/* The stream ended without a report: the engine's own record has to tell why. */
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

static int conclude(struct docker *d, enum talk_end end, struct deadline deadline,
                    struct engine_outcome *out, struct err *e)
{
    static const enum engine_end killed[] = {
        [TALK_DEADLINE] = ENGINE_TIMED_OUT,
        [TALK_CANCELLED] = ENGINE_CANCELLED,
        [TALK_STOPPED] = ENGINE_OUTPUT_LIMIT,
        [TALK_GARBLED] = ENGINE_KILLED,
    };

    out->ahead = d->container.talk.entry.ahead;
    if (end == TALK_REPORTED) {
        entry_report_outcome(&d->container.talk.entry.report, out);
        return 0;
    }
    if (end == TALK_ENDED)
        return take_ending(d, deadline, out, e);
    if (end == TALK_LOST)
        return docker_lost(&d->container, e);
    if (end == TALK_GARBLED)
        log_debug("a container broke the protocol: %s", d->container.talk.why.text);
    set_killed(out, killed[end]);
    return 0;
}

static int run_steps(struct docker *d, const struct engine_program *program,
                     const struct engine_sink *sink, struct deadline deadline,
                     struct engine_outcome *out, struct err *e)
{
    struct talk *talk = &d->container.talk;
    enum talk_end end;

    /* Whether it is still there is looked at while another one may take its place. */
    if (talk_look(talk) != TALK_GOING_ON)
        return docker_lost(&d->container, e);
    if (talk_hand_over(talk, program, sink, e) < 0)
        return -1;
    /* The program's time begins here: a slow start of the container is not its fault. */
    if (program->timeout_ms > 0)
        deadline = deadline_min(deadline, deadline_in_ms((int64_t)program->timeout_ms));
    out->started_us = clock_mono_us();
    end = talk_run(talk, docker_http_attend(d->http), deadline);
    out->ended_us = clock_mono_us();
    if (conclude(d, end, deadline, out, e) < 0)
        return -1;
    /* After a report everything inside is dead already; any other end is made sure of before the
     * files are looked at. */
    if (end != TALK_REPORTED)
        docker_container_remove(d);
    return 0;
}

int docker_run(struct engine *engine, const struct engine_program *program,
               const struct engine_sink *sink, const struct engine_attend *attend,
               struct deadline d, struct engine_outcome *out, struct err *e)
{
    struct docker *docker = (struct docker *)engine;
    int result;

    *out = (struct engine_outcome){.exit_code = -1};
    if (!docker->container.talk.stream)
        return err_set(e, ERR_LOST, "there is no container that waits");
    docker_attend_begin(docker_http_attend(docker->http), attend);
    result = run_steps(docker, program, sink, d, out, e);
    docker_attend_end(docker_http_attend(docker->http));
    if (result < 0) {
        docker_container_remove(docker);
    } else {
        /* Hanging up would have the engine take the container down while the answer is given. */
        docker->container.spent = TAKE_PTR(docker->container.talk.stream);
        talk_clear(&docker->container.talk);
    }
    return result;
}
