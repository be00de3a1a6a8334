#include "config.h"

#include "common/engine/docker.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/engine/docker_container.h"
#include "common/engine/docker_talk.h"
#include "common/rpc/json.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#define WAIT_SLICE_MS                                                                              \
    500 /* how long a wait for the end of a container may overlook a cancellation */

/* One run on its way. The container's name is known before the engine has made it, so removal never
 * needs a reply. */
struct running {
    struct docker *docker;
    const struct engine_spec *spec;
    char id[65];
    struct docker_stream *stream;
    struct buf input; /* protocol 1: the envelope */
    struct talk talk;
};

/* What inspect tells about a container that has ended. */
struct ending {
    bool found;
    bool out_of_memory;
    int exit_code;
};

static int container_call(struct running *r, const char *method, const char *action, int timeout_ms,
                          struct buf *reply, struct err *e)
{
    AUTO_FREE char *path = mem_printf("/containers/%s%s", r->id, action);

    return docker_http_call(r->docker->http, method, path, NULL, timeout_ms, reply, e);
}

static int take_id(struct running *r, const struct buf *reply, struct err *e)
{
    json_auto_t *answer = json_parse(buf_str(reply), reply->len, 8, e);
    const char *id = answer ? json_get_string(answer, "Id") : NULL;

    if (!container_id_ok(id))
        return err_set(e, ERR_PROTOCOL, "the container engine did not tell the container's id");
    memcpy(r->id, id, strlen(id) + 1);
    return 0;
}

static int create(struct running *r, struct err *e)
{
    AUTO_BUF struct buf body = BUF_INIT(DOCKER_LARGE_REPLY);
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_SMALL_REPLY);
    AUTO_FREE char *path = NULL;
    int status;

    if (container_body(r->spec, &body, e) < 0 || docker_http_ready(r->docker->http, e) < 0)
        return -1;
    r->docker->leftover = mem_printf(CONTAINER_NAME_PREFIX "%s", r->spec->run_id);
    path = mem_printf("/containers/create?name=%s", r->docker->leftover);
    status = docker_http_call(r->docker->http, "POST", path, buf_str(&body), DOCKER_START_MS,
                              &reply, e);
    if (status < 0)
        return -1;
    if (status == 404)
        return err_set(e, ERR_NOT_FOUND, "runner image %s is missing", r->spec->image);
    if (status == 409) {
        /* The name belongs to another run: not ours to remove. */
        free(TAKE_PTR(r->docker->leftover));
        return docker_http_refused(status, reply.data, reply.len, e);
    }
    if (status >= 400)
        return docker_http_refused(status, reply.data, reply.len, e);
    return take_id(r, &reply, e);
}

/*
 * Podman takes no notice of the runtime in a request. A runtime is chosen for what it isolates, so
 * a container that would run without it is not started.
 */
static int check_runtime(struct running *r, struct err *e)
{
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_LARGE_REPLY);
    json_auto_t *answer = NULL;
    const char *wanted = r->spec->runtime, *got;

    if (!wanted || !*wanted)
        return 0;
    if (container_call(r, "GET", "/json", DOCKER_QUESTION_MS, &reply, e) < 0)
        return -1;
    answer = json_parse(buf_str(&reply), reply.len, JSON_MAX_DEPTH, e);
    if (!answer)
        return -1;
    got = json_get_string(json_object_get(answer, "HostConfig"), "Runtime");
    if (got && strcmp(got, wanted) == 0)
        return 0;
    return err_set(
        e, ERR_REFUSED,
        "the container engine does not use the runtime %s (SANDBOX_RUNTIME); with Podman "
        "set it in containers.conf instead",
        wanted);
}

static int attach(struct running *r, struct err *e)
{
    AUTO_FREE char *path = mem_printf("/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1",
                                      r->id);

    r->stream = docker_stream_open(r->docker->http, "POST", path, true,
                                   deadline_in_ms(DOCKER_START_MS), e);
    return r->stream ? 0 : err_wrap(e, "attach");
}

static int start(struct running *r, struct err *e)
{
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_SMALL_REPLY);
    int status = container_call(r, "POST", "/start", DOCKER_START_MS, &reply, e);

    if (status < 0)
        return -1;
    return status >= 400 ? docker_http_refused(status, reply.data, reply.len, e) : 0;
}

static int make_input(struct running *r, struct err *e)
{
    size_t size;

    if (r->spec->protocol == 0)
        return 0;
    if (entry_size(r->spec, &size, e) < 0)
        return -1;
    r->input.max = size;
    return entry_write(r->spec, &r->input, e);
}

static enum talk_end talk(struct running *r, const struct engine_sink *sink, int cancel_fd,
                          struct deadline d)
{
    const struct engine_spec *s = r->spec;

    if (s->protocol == 0)
        talk_init(&r->talk, r->stream, 0, sink, s->code, s->code_len);
    else
        talk_init(&r->talk, r->stream, s->protocol, sink, buf_str(&r->input), r->input.len);
    return talk_run(&r->talk, cancel_fd, d);
}

/* Closing comes first: the engine hangs in the removal of a container whose output nobody takes. */
static void kill_now(struct running *r)
{
    struct err e = ERR_INIT;

    docker_stream_free(TAKE_PTR(r->stream));
    if (!r->docker->leftover)
        return;
    if (docker_remove(r->docker, r->docker->leftover, &e) < 0)
        log_debug("removing a container: %s", e.text);
    else
        free(TAKE_PTR(r->docker->leftover));
}

/* Waits until the container has ended. ENGINE_EXITED when it has, or when the engine cannot tell
 * any more. */
static enum engine_end wait_end(struct running *r, int cancel_fd, struct deadline d)
{
    while (!deadline_passed(d)) {
        AUTO_BUF struct buf reply = BUF_INIT(DOCKER_SMALL_REPLY);
        struct err e = ERR_INIT;
        struct pollfd cancel = {.fd = cancel_fd, .events = POLLIN | POLLRDHUP};
        int64_t began = clock_mono_ms();

        if (poll(&cancel, 1, 0) > 0)
            return ENGINE_CANCELLED;
        if (container_call(r, "POST", "/wait", WAIT_SLICE_MS, &reply, &e) >= 0)
            return ENGINE_EXITED;
        /* No answer within the slice: it still runs. A much quicker failure: the engine is gone. */
        if (clock_mono_ms() - began < WAIT_SLICE_MS / 2)
            return ENGINE_EXITED;
    }
    return ENGINE_TIMED_OUT;
}

static void inspect(struct running *r, struct ending *out)
{
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_LARGE_REPLY);
    struct err e = ERR_INIT;
    json_auto_t *answer = NULL;
    const json_t *state;
    json_int_t code;

    *out = (struct ending){.exit_code = -1};
    if (container_call(r, "GET", "/json", DOCKER_QUESTION_MS, &reply, &e) != 200)
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

static int take_report(const struct entry_report *report, struct engine_outcome *out)
{
    out->end = report->timed_out ? ENGINE_TIMED_OUT : ENGINE_EXITED;
    out->exit_code = report->exit_code;
    out->signal = report->signal;
    out->cpu_us = report->cpu_us;
    out->peak_memory_bytes = report->peak_memory_bytes;
    /* The kernel may have killed a mere helper while the program went on to a good end. */
    out->out_of_memory = !report->timed_out && report->oom_kills > 0 &&
                         (report->signal == SIGKILL || report->exit_code > 0);
    return 0;
}

/* The stream ended without a report: the engine's own record has to tell why. */
static int take_ending(struct running *r, int cancel_fd, struct deadline d,
                       struct engine_outcome *out, struct err *e)
{
    const struct buf *complaint = &r->talk.complaint;
    struct ending ending;
    enum engine_end end = wait_end(r, cancel_fd, d);

    if (end != ENGINE_EXITED) {
        set_killed(out, end);
        return 0;
    }
    inspect(r, &ending);
    if (!ending.found) {
        set_killed(out, ENGINE_KILLED);
    } else if (ending.out_of_memory && ending.exit_code != 0) {
        set_killed(out, ENGINE_EXITED);
        out->out_of_memory = true;
    } else if (r->spec->protocol == 0) {
        /* 128 + n may as well be the program's own exit code, so no signal is claimed. */
        out->end = ENGINE_EXITED;
        out->exit_code = ending.exit_code;
    } else if (complaint->len > 0 && ending.exit_code != 128 + SIGKILL) {
        return err_set(e, ERR_REFUSED, "the entry program of %s failed: %s", r->spec->image,
                       buf_str(complaint));
    } else {
        set_killed(out, ENGINE_KILLED);
    }
    return 0;
}

static int conclude(struct running *r, enum talk_end end, int cancel_fd, struct deadline d,
                    struct engine_outcome *out, struct err *e)
{
    switch (end) {
    case TALK_REPORTED:
        return take_report(&r->talk.entry.report, out);
    case TALK_ENDED:
        return take_ending(r, cancel_fd, d, out, e);
    case TALK_DEADLINE:
        set_killed(out, ENGINE_TIMED_OUT);
        return 0;
    case TALK_CANCELLED:
        set_killed(out, ENGINE_CANCELLED);
        return 0;
    case TALK_STOPPED:
        set_killed(out, ENGINE_OUTPUT_LIMIT);
        return 0;
    case TALK_GARBLED:
    case TALK_GOING_ON:
        break;
    }
    log_debug("a container broke the protocol: %s", r->talk.why.text);
    set_killed(out, ENGINE_KILLED);
    return 0;
}

static int run_steps(struct running *r, const struct engine_sink *sink, int cancel_fd,
                     struct deadline d, struct engine_outcome *out, struct err *e)
{
    enum talk_end end;

    if (make_input(r, e) < 0 || create(r, e) < 0 || check_runtime(r, e) < 0 || attach(r, e) < 0 ||
        start(r, e) < 0)
        return -1;
    /* The program's time begins here: a slow start of the container is not its fault. */
    if (r->spec->timeout_ms > 0)
        d = deadline_min(d, deadline_in_ms((int64_t)r->spec->timeout_ms));
    out->started_us = clock_mono_us();
    end = talk(r, sink, cancel_fd, d);
    out->ended_us = clock_mono_us();
    if (conclude(r, end, cancel_fd, d, out, e) < 0)
        return -1;
    /* After a report everything inside is dead already; any other end is made sure of before the
     * files are looked at. */
    if (end != TALK_REPORTED)
        kill_now(r);
    return 0;
}

int docker_run(struct engine *engine, const struct engine_spec *spec,
               const struct engine_sink *sink, int cancel_fd, struct deadline d,
               struct engine_outcome *out, struct err *e)
{
    struct running r = {.docker = (struct docker *)engine, .spec = spec};
    int result;

    *out = (struct engine_outcome){.exit_code = -1};
    engine->ops->finish(engine);
    result = run_steps(&r, sink, cancel_fd, d, out, e);
    if (result < 0)
        kill_now(&r);
    docker_stream_free(r.stream);
    talk_clear(&r.talk);
    buf_clear(&r.input);
    return result;
}
