/* What the parts of the Docker engine share; nobody else includes this. The interface is engine.h.
 */
#ifndef SANDCGI_ENGINE_DOCKER_H
#define SANDCGI_ENGINE_DOCKER_H

#include "common/engine/docker_http.h"
#include "common/engine/docker_stream.h"
#include "common/engine/engine.h"

#define DOCKER_SMALL_REPLY ((size_t)64 * 1024)
#define DOCKER_LARGE_REPLY ((size_t)8 * 1024 * 1024) /* an inspect or a list */
#define DOCKER_START_MS    30000 /* create, attach, start: an engine under load takes seconds */
#define DOCKER_QUESTION_MS 10000
#define DOCKER_REMOVE_MS   15000

struct docker {
    struct engine engine; /* first: ops hand us a pointer to it */
    struct docker_http *http;
    char *leftover; /* name of the container that finish has to remove; NULL: none */
    struct docker_stream *events;
};

/* engine_ops.run, .reap and .runners */
int docker_run(struct engine *engine, const struct engine_spec *spec,
               const struct engine_sink *sink, int cancel_fd, struct deadline d,
               struct engine_outcome *out, struct err *e);
int docker_reap(struct engine *engine, const char *instance,
                bool (*orphan)(void *ctx, const char *run_id, int64_t deadline_unix), void *ctx,
                size_t *seen, struct err *e);
int docker_runners(struct engine *engine, const char *allow, struct engine_runners *out,
                   struct err *e);

/* Kills and removes a container by name or id, with its anonymous volumes. One that is gone or
 * going already is fine. */
int docker_remove(struct docker *d, const char *container, struct err *e);

#endif
