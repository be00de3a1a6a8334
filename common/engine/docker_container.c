#include "config.h"

#include "common/engine/docker.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/engine/docker_config.h"
#include "common/rpc/json.h"

#include <string.h>

int docker_container_call(struct docker *d, const char *method, const char *action, int timeout_ms,
                          struct buf *reply, struct err *e)
{
    AUTO_FREE char *path = mem_printf("/containers/%s%s", d->container.id, action);

    return docker_http_call(d->http, method, path, NULL, timeout_ms, reply, e);
}

/* Hanging up comes first: the engine hangs in the removal of a container whose output nobody takes.
 */
void docker_container_remove(struct docker *d)
{
    struct docker_container *container = &d->container;
    struct err e = ERR_INIT;

    talk_clear(&container->talk);
    docker_psandbox_clear(&container->psandbox);
    docker_stream_free(TAKE_PTR(container->spent));
    free(TAKE_PTR(container->image));
    if (!container->name)
        return;
    if (docker_remove(d, container->name, &e) < 0)
        log_debug("removing a container: %s", e.text);
    else
        free(TAKE_PTR(container->name));
}

static int take_id(struct docker_container *container, const struct buf *reply, struct err *e)
{
    json_auto_t *answer = json_parse(buf_str(reply), reply->len, 8, e);
    const char *id = answer ? json_get_string(answer, "Id") : NULL;

    if (!container_id_ok(id))
        return err_set(e, ERR_PROTOCOL, "the container engine did not tell the container's id");
    memcpy(container->id, id, strlen(id) + 1);
    return 0;
}

/* How long an answer may take. */
static int time_left(struct deadline d)
{
    return deadline_poll_ms(deadline_min(d, deadline_in_ms(DOCKER_START_MS)));
}

static int agree(struct docker *d, const struct engine_spec *spec, struct deadline deadline,
                 struct err *e)
{
    (void)spec;
    (void)deadline;
    return docker_http_ready(d->http, e);
}

/* Its answer is awaited whatever happens: an unanswered create may make a container that nobody
 * knows of. */
static int create(struct docker *d, const struct engine_spec *spec, struct deadline deadline,
                  struct err *e)
{
    AUTO_BUF struct buf body = BUF_INIT(DOCKER_LARGE_REPLY);
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_SMALL_REPLY);
    AUTO_FREE char *path = NULL;
    int status;

    (void)deadline;
    if (container_body(spec, &body, e) < 0)
        return -1;
    d->container.image = mem_strdup(spec->image_name ? spec->image_name : spec->image);
    d->container.name = mem_printf(CONTAINER_NAME_PREFIX "%s", spec->run_id);
    path = mem_printf("/containers/create?name=%s", d->container.name);
    status = docker_http_call(d->http, "POST", path, buf_str(&body), DOCKER_START_MS, &reply, e);
    if (status < 0)
        return -1;
    if (status == 404)
        return err_set(e, ERR_NOT_FOUND, "the image %s is missing on the server",
                       d->container.image);
    if (status == 409) {
        /* The name belongs to another run: not ours to remove. */
        free(TAKE_PTR(d->container.name));
        return docker_http_refused(status, reply.data, reply.len, e);
    }
    if (status == 400 && strstr(buf_str(&reply), "bind source path does not exist"))
        return err_set(e, ERR_NOT_FOUND,
                       "the sandbox directory does not exist on the container engine's host "
                       "(SANDBOX_HOST_PATH)");
    if (status >= 400)
        return docker_http_refused(status, reply.data, reply.len, e);
    return take_id(&d->container, &reply, e);
}

/*
 * Podman takes no notice of the runtime in a request, and another engine may do so too. A runtime
 * is chosen for what it isolates, so a container that would run without it is not started.
 */
static int check_runtime(struct docker *d, const struct engine_spec *spec, struct deadline deadline,
                         struct err *e)
{
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_LARGE_REPLY);
    json_auto_t *answer = NULL;
    const char *wanted = spec->runtime, *got;

    if (!wanted || !*wanted)
        return 0;
    if (docker_container_call(d, "GET", "/json", time_left(deadline), &reply, e) < 0)
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

static int attach(struct docker *d, const struct engine_spec *spec, struct deadline deadline,
                  struct err *e)
{
    AUTO_FREE char *path = mem_printf("/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1",
                                      d->container.id);
    struct docker_stream *stream = docker_stream_open(d->http, "POST", path, true,
                                                      deadline_in_ms(time_left(deadline)), e);

    if (!stream)
        return err_wrap(e, "attach");
    talk_init(&d->container.talk, stream, spec->psandbox ? 1 : spec->protocol);
    if (spec->psandbox)
        docker_psandbox_begin(&d->container);
    return 0;
}

static int start(struct docker *d, const struct engine_spec *spec, struct deadline deadline,
                 struct err *e)
{
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_SMALL_REPLY);
    int status = docker_container_call(d, "POST", "/start", time_left(deadline), &reply, e);

    (void)spec;
    if (status < 0)
        return -1;
    return status >= 400 ? docker_http_refused(status, reply.data, reply.len, e) : 0;
}

static int start_steps(struct docker *d, const struct engine_spec *spec, struct deadline deadline,
                       struct err *e)
{
    static int (*const steps[])(struct docker *, const struct engine_spec *, struct deadline,
                                struct err *) = {agree, create, check_runtime, attach, start};

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        int result = steps[i](d, spec, deadline, e);

        if (docker_http_attend(d->http)->cancelled)
            return err_set(e, ERR_CANCELLED, "the caller went away");
        if (result < 0)
            return -1;
        if (deadline_passed(deadline))
            return err_set(e, ERR_TIMEOUT, "the container engine takes too long to start one");
    }
    return 0;
}

int docker_start(struct engine *engine, const struct engine_spec *spec,
                 const struct engine_attend *attend, struct deadline d, struct err *e)
{
    struct docker *docker = (struct docker *)engine;
    int result;

    docker_container_remove(docker);
    docker_attend_begin(docker_http_attend(docker->http), attend);
    result = start_steps(docker, spec, d, e);
    docker_attend_end(docker_http_attend(docker->http));
    if (result < 0)
        docker_container_remove(docker);
    return result;
}
