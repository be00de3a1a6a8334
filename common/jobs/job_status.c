/* What there is to run with, and how the broker is. */
#include "config.h"

#include "common/jobs/job.h"

#include "common/base/clock.h"
#include "common/rpc/json.h"

#include <string.h>

/* "numpy=1.24.2 pandas=1.5.3" as [{name, version}]. */
static json_t *libraries_new(const char *text)
{
    json_t *list = json_array();
    while (*text) {
        size_t len = strcspn(text, " ");
        size_t name = strcspn(text, "= ");
        if (name > 0)
            json_array_append_new(
                list, json_pack("{s:o, s:o}", "name", json_from_bytes(text, name), "version",
                                name < len ? json_from_bytes(text + name + 1, len - name - 1)
                                           : json_string("")));
        text += len;
        text += strspn(text, " ");
    }
    return list;
}

static json_t *runners_new(const struct engine_runners *runners)
{
    json_t *list = json_array();
    for (size_t i = 0; i < runners->n; i++) {
        const struct engine_runner *r = &runners->items[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:i, s:o}", "language", r->language,
                                        "image", r->image, "version", r->version, "protocol",
                                        r->protocol, "libraries", libraries_new(r->libraries)));
    }
    return list;
}

json_t *job_runners(const struct job_world *world, struct err *e)
{
    if (*world->engine_trouble) {
        err_set(e, ERR_UNAVAILABLE, "%s", world->engine_trouble);
        return NULL;
    }
    return runners_new(world->runners);
}

/* ---- status ---- */

static json_t *engine_new(const char *trouble)
{
    json_t *engine = json_pack("{s:b}", "ok", *trouble == '\0');
    if (*trouble)
        json_object_set_new(engine, "trouble", json_string(trouble));
    return engine;
}

static void set_count(json_t *object, const char *name, uint64_t n)
{
    json_object_set_new(object, name, json_integer((json_int_t)n));
}

json_t *job_status(const struct job_world *world)
{
    const struct broker_limits *limits = &world->config->limits;
    json_t *status = json_object();
    json_t *claims = json_object();

    set_count(claims, "hit", world->tally.hits);
    set_count(claims, "miss", world->tally.misses);
    json_object_set_new(status, "engine", engine_new(world->engine_trouble));
    json_object_set_new(status, "runners", runners_new(world->runners));
    set_count(status, "running", admission_running(world->admission));
    set_count(status, "maxRuns", limits->max_runs);
    set_count(status, "queued", world->waiting);
    set_count(status, "queueMax", limits->queue);
    json_object_set_new(status, "claims", claims);
    json_object_set_new(status, "pool", pool_status(world->pool, world->children, clock_mono_ms()));
    return status;
}
