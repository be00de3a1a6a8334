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

json_t *job_runners(const struct runners *runners, struct err *e)
{
    if (*runners->engine_error) {
        err_set(e, ERR_UNAVAILABLE, "%s", runners->engine_error);
        return NULL;
    }
    return runners_new(&runners->list);
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
    const struct run_tally tally = run_queue_tally(world->queue);

    set_count(claims, "hit", tally.hits);
    set_count(claims, "miss", tally.misses);
    json_object_set_new(status, "engine", engine_new(world->runners->engine_error));
    json_object_set_new(status, "runners", runners_new(&world->runners->list));
    set_count(status, "running", run_queue_running(world->queue));
    set_count(status, "maxRuns", limits->max_runs);
    set_count(status, "queued", run_queue_length(world->queue));
    set_count(status, "queueMax", limits->queue);
    json_object_set_new(status, "claims", claims);
    json_object_set_new(status, "pool", pool_status(world->pool, world->children, clock_mono_ms()));
    return status;
}
