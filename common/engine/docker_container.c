#include "config.h"

#include "common/engine/docker_self.h"

#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/engine/docker_config.h"
#include "common/rpc/json.h"

#include <string.h>
#include <time.h>

/* How long a wait for the end of a container may overlook a cancellation. */
#define WAIT_SLICE_MS 500

/* Podman refuses while it starts the container or takes note of its end. */
#define REMOVE_PAUSE_NS (100 * 1000 * 1000)
#define NAME_BYTES      8

int docker_remove(struct docker *d, const char *container, int patience_ms, struct err *e)
{
    AUTO_FREE char *path = mem_printf("/containers/%s?force=1&v=1", container);
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_SMALL_REPLY);
    struct deadline end = deadline_in_ms(patience_ms);
    int status;

    for (;;) {
        status = docker_http_call(d->http, "DELETE", path, NULL, DOCKER_REMOVE_MS, &reply, e);
        if (status < 500 || deadline_passed(end))
            break;
        nanosleep(&(struct timespec){.tv_nsec = REMOVE_PAUSE_NS}, NULL);
    }
    /* 404: gone already; 409: its removal is in progress. */
    if (status == 404 || status == 409)
        return 0;
    return docker_http_check(status, reply.data, reply.len, e) < 0 ? -1 : 1;
}

int docker_container_call(struct docker *d, const char *method, const char *action, int timeout_ms,
                          struct buf *reply, struct err *e)
{
    AUTO_FREE char *path = mem_printf("/containers/%s%s", d->container.id, action);

    return docker_http_call(d->http, method, path, NULL, timeout_ms, reply, e);
}

json_t *docker_container_inspect(struct docker *d, int timeout_ms, struct err *e)
{
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_LARGE_REPLY);
    int status = docker_container_call(d, "GET", "/json", timeout_ms, &reply, e);

    if (docker_http_check(status, reply.data, reply.len, e) < 0)
        return NULL;
    return json_parse(buf_str(&reply), reply.len, JSON_MAX_DEPTH, e);
}

void docker_container_clear(struct docker_container *container)
{
    talk_clear(&container->talk);
    if (container->cpu_fd > 0)
        auto_close_fd(&container->cpu_fd);
    container->cpu_fd = 0;
    free(TAKE_PTR(container->image));
}

/* Hanging up comes first: the engine hangs in the removal of a container whose output is not read.
 */
void docker_container_remove(struct docker *d, int patience_ms)
{
    struct docker_container *container = &d->container;
    struct err e = ERR_INIT;

    docker_container_clear(container);
    if (container->name && docker_remove(d, container->name, patience_ms, &e) < 0)
        log_debug("removing a container: %s", e.text);
    else
        free(TAKE_PTR(container->name));
}

static int container_take_id(struct docker_container *container, const struct buf *reply,
                             struct err *e)
{
    json_auto_t *answer = json_parse(buf_str(reply), reply->len, 8, e);
    const char *id = answer ? json_get_string(answer, "Id") : NULL;

    if (!container_id_ok(id))
        return err_set(e, ERR_PROTOCOL, "the container engine sent no id for the container");
    memcpy(container->id, id, strlen(id) + 1);
    return 0;
}

/* How long an answer may take. */
static int time_left(struct deadline d)
{
    return deadline_poll_ms(deadline_min(d, deadline_in_ms(DOCKER_START_MS)));
}

/* Its answer is awaited even after a cancellation: an unanswered create may make a container that
 * we do not know. */
static int container_create(struct docker *d, const struct engine_spec *spec, struct err *e)
{
    AUTO_BUF struct buf body = BUF_INIT(DOCKER_LARGE_REPLY);
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_SMALL_REPLY);
    AUTO_FREE char *path = NULL;
    char name[2 * NAME_BYTES + 1];
    int status;

    if (container_body(spec, docker_http_facts(d->http), &body, e) < 0)
        return -1;
    d->container.image = mem_strdup(spec->image_name ? spec->image_name : spec->image);
    crypto_random_hex(NAME_BYTES, name);
    d->container.name = mem_printf(CONTAINER_NAME_PREFIX "%s", name);
    path = mem_printf("/containers/create?name=%s", d->container.name);
    status = docker_http_call(d->http, "POST", path, buf_str(&body), DOCKER_START_MS, &reply, e);
    if (status == 404)
        return err_set(e, ERR_NOT_FOUND, "the image %s is missing on the server",
                       d->container.image);
    if (status == 409) /* the name belongs to another container, which must not be removed */
        free(TAKE_PTR(d->container.name));
    if (status == 400 && strstr(buf_str(&reply), "bind source path does not exist"))
        return err_set(e, ERR_NOT_FOUND,
                       "the sandbox directory does not exist on the container engine's host "
                       "(SANDBOX_HOST_PATH)");
    if (docker_http_check(status, reply.data, reply.len, e) < 0)
        return -1;
    return container_take_id(&d->container, &reply, e);
}

/*
 * Podman ignores the runtime in a request, and other engines may, too. A runtime is chosen for its
 * isolation, so a container that would run without it is not started.
 */
static int container_check_runtime(struct docker *d, const struct engine_spec *spec,
                                   struct deadline deadline, struct err *e)
{
    json_auto_t *answer = NULL;
    const char *wanted = spec->runtime, *got;

    if (!wanted || !*wanted)
        return 0;
    answer = docker_container_inspect(d, time_left(deadline), e);
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

static int container_attach(struct docker *d, const struct engine_spec *spec,
                            struct deadline deadline, struct err *e)
{
    AUTO_FREE char *path = mem_printf("/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1",
                                      d->container.id);
    struct docker_stream *stream = docker_stream_open(d->http, "POST", path, true,
                                                      deadline_in_ms(time_left(deadline)), e);

    if (!stream)
        return err_wrap(e, "attach");
    talk_begin(&d->container.talk, stream, spec->psandbox ? 2 : spec->protocol);
    d->container.psandbox = spec->psandbox;
    return 0;
}

static int container_start(struct docker *d, struct deadline deadline, struct err *e)
{
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_SMALL_REPLY);
    int status = docker_container_call(d, "POST", "/start", time_left(deadline), &reply, e);

    return docker_http_check(status, reply.data, reply.len, e);
}

/* A step is over: may the next one be taken? */
static int step_done(struct docker *d, struct deadline deadline, int result, struct err *e)
{
    if (docker_http_attend(d->http)->cancelled)
        return err_set(e, ERR_CANCELLED, "the caller went away");
    if (result == 0 && deadline_passed(deadline))
        return err_set(e, ERR_TIMEOUT, "the container engine takes too long to start one");
    return result;
}

int docker_start(struct engine *engine, const struct engine_spec *spec,
                 const struct engine_attend *attend, struct deadline d, struct err *e)
{
    struct docker *docker = (struct docker *)engine;
    int result;

    docker_container_remove(docker, DOCKER_PATIENCE_MS);
    docker->attend = attend;
    docker_attend_begin(docker_http_attend(docker->http), attend);
    result = step_done(docker, d, docker_http_ready(docker->http, e), e);
    if (result == 0 && spec->network != NETWORK_NONE)
        result = step_done(docker, d, docker_network(docker, spec->network, e), e);
    if (result == 0)
        result = step_done(docker, d, container_create(docker, spec, e), e);
    if (result == 0)
        result = step_done(docker, d, container_check_runtime(docker, spec, d, e), e);
    if (result == 0)
        result = step_done(docker, d, container_attach(docker, spec, d, e), e);
    if (result == 0)
        result = step_done(docker, d, container_start(docker, d, e), e);
    docker_attend_end(docker_http_attend(docker->http));
    if (result < 0)
        docker_container_remove(docker, DOCKER_PATIENCE_MS);
    return result;
}

/* ---- while it waits ---- */

/* Does the engine say that the container has these settings? */
static int check_settings(struct docker *d, json_t *wanted, struct err *e)
{
    json_auto_t *answer = docker_container_inspect(d, DOCKER_QUESTION_MS, e);
    json_t *got = json_object_get(answer, "HostConfig");

    if (!answer) {
        e->kind = ERR_LOST; /* it has them, or it does not */
        return -1;
    }
    json_auto_t *changed = json_copy(got);
    json_object_update(changed, wanted);
    if (!json_equal(got, changed))
        return err_set(e, ERR_REFUSED, "the container engine does not change the CPU limit");
    return 0;
}

int docker_limit_cpu(struct engine *engine, uint64_t cpu_milli, struct err *e)
{
    struct docker *d = (struct docker *)engine;
    AUTO_BUF struct buf body = BUF_INIT(DOCKER_SMALL_REPLY), reply = BUF_INIT(DOCKER_SMALL_REPLY);
    json_auto_t *settings = json_object();

    if (!d->container.talk.stream)
        return err_set(e, ERR_LOST, "there is no container");
    container_add_cpu(settings, cpu_milli);
    if (json_write(settings, &body) < 0)
        return err_set(e, ERR_INTERNAL, "the container's limit is too large");
    AUTO_FREE char *path = mem_printf("/containers/%s/update", d->container.id);
    int status = docker_http_call(d->http, "POST", path, buf_str(&body), DOCKER_QUESTION_MS, &reply,
                                  e);
    if (docker_http_check(status, reply.data, reply.len, e) < 0)
        return -1;
    return check_settings(d, settings, e);
}

/* ---- its end ---- */

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
    struct err e = ERR_INIT;
    json_auto_t *answer = docker_container_inspect(d, DOCKER_QUESTION_MS, &e);
    const json_t *state;
    json_int_t code;

    *out = (struct docker_ending){.exit_code = -1};
    state = answer ? json_object_get(answer, "State") : NULL;
    code = json_get_integer(state, "ExitCode", -1);
    /* Removed meanwhile, or ended while the engine was away: its end is not known. */
    if (code < 0 || code > 255 || json_get_bool(state, "Running", 0))
        return;
    out->found = true;
    out->exit_code = (int)code;
    out->out_of_memory = json_get_bool(state, "OOMKilled", 0) != 0;
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
        err_set(e, ERR_LOST, "the container ended before it got a program");
    return -1;
}
