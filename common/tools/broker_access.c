#include "config.h"

#include "common/tools/broker_access.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"

#include <stdlib.h>
#include <string.h>

struct tools_cache {
    bool asked;
    int64_t asked_at_ms;
    json_t *list;       /* NULL: the last question failed */
    struct err problem; /* why */
    uint64_t version;
};

struct tools_cache *runners_cache_new(void)
{
    return mem_alloc(sizeof(struct tools_cache));
}

void runners_cache_free(struct tools_cache *c)
{
    if (c)
        json_decref(c->list);
    free(c);
}

struct broker_client tools_client(const struct tools_app *app, int cancel_fd)
{
    return (struct broker_client){.path = app->broker_path, .cancel_fd = cancel_fd, .leave_fd = -1};
}

static bool is_fresh(const struct tools_cache *c, int64_t max_age_ms)
{
    return c->asked && max_age_ms > 0 && clock_mono_ms() - c->asked_at_ms <= max_age_ms;
}

static bool same_list(const json_t *a, const json_t *b)
{
    return (!a && !b) || (a && b && json_equal(a, b));
}

static void ask(const struct tools_app *app)
{
    struct tools_cache *c = app->cache;
    struct broker_client client = tools_client(app, -1);
    struct err e = ERR_INIT;
    json_t *list = broker_runners(&client, &e);

    if (!same_list(list, c->list))
        c->version++;
    json_decref(c->list);
    c->list = list;
    c->problem = e;
    c->asked = true;
    c->asked_at_ms = clock_mono_ms();
}

const json_t *runners_get(const struct tools_app *app, int64_t max_age_ms, struct err *e)
{
    struct tools_cache *c = app->cache;

    if (!is_fresh(c, max_age_ms))
        ask(app);
    if (!c->list)
        *e = c->problem;
    return c->list;
}

uint64_t runners_version(void *app)
{
    const struct tools_app *a = app;
    struct err e = ERR_INIT;

    runners_get(a, RUNNERS_FRESH_MS, &e);
    return a->cache->version;
}

static bool list_has(const json_t *list, const char *language)
{
    size_t i;
    json_t *runner;

    json_array_foreach(list, i, runner)
    {
        const char *name = json_get_string(runner, "language");
        if (name && strcmp(name, language) == 0)
            return true;
    }
    return false;
}

bool runners_have(const struct tools_app *app, const char *language)
{
    struct err e = ERR_INIT;

    return list_has(runners_get(app, RUNNERS_FRESH_MS, &e), language);
}

json_t *runners_languages(const struct tools_app *app, const char *wanted)
{
    struct err e = ERR_INIT;
    /* A language that was there last time is not asked for again: the broker refuses it if it has
     * gone, and a call costs one question less. */
    const json_t *list = wanted && list_has(app->cache->list, wanted)
                             ? app->cache->list
                             : runners_get(app, wanted ? 0 : RUNNERS_FRESH_MS, &e);
    json_t *names;
    size_t i;
    json_t *runner;

    if (!list)
        return NULL;
    names = json_array();
    json_array_foreach(list, i, runner) if (json_is_string(json_object_get(runner, "language")))
        json_array_append(names, json_object_get(runner, "language"));
    return names;
}
