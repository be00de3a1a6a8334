#include "config.h"

#include "common/tools/tools_app.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"

#include <stdlib.h>
#include <string.h>

struct tools_cache {
    bool asked;
    int64_t asked_at_ms;
    json_t *list;          /* NULL: the last question failed */
    struct err last_error; /* why */
    uint64_t version;
};

void tools_app_init(struct tools_app *app)
{
    app->cache = mem_alloc(sizeof *app->cache);
}

void tools_app_clear(struct tools_app *app)
{
    if (app->cache)
        json_decref(app->cache->list);
    free(app->cache);
    app->cache = NULL;
}

struct broker_client tools_client(const struct tools_app *app, int cancel_fd)
{
    return (struct broker_client){.path = app->broker_path, .cancel_fd = cancel_fd, .leave_fd = -1};
}

static void runners_ask(const struct tools_app *app)
{
    struct tools_cache *c = app->cache;
    struct broker_client client = tools_client(app, -1);
    struct err e = ERR_INIT;
    json_t *list = broker_runners(&client, &e);

    if ((list || c->list) && !(list && c->list && json_equal(list, c->list)))
        c->version++;
    json_decref(c->list);
    c->list = list;
    c->last_error = e;
    c->asked = true;
    c->asked_at_ms = clock_mono_ms();
}

const json_t *runners_get(const struct tools_app *app, int64_t max_age_ms, struct err *e)
{
    struct tools_cache *c = app->cache;

    if (!c->asked || max_age_ms <= 0 || clock_mono_ms() - c->asked_at_ms > max_age_ms)
        runners_ask(app);
    if (!c->list)
        *e = c->last_error;
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
    /* A language in the kept list needs no request: the broker refuses it if it was removed. */
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

static void runner_describe(const json_t *runner, struct buf *out)
{
    const json_t *libraries = json_object_get(runner, "libraries");
    const char *language = json_get_string(runner, "language");
    const char *version = json_get_string(runner, "version");
    size_t i;
    json_t *library;

    buf_addf(out, "\n- %s", language ? language : "?");
    if (version && *version)
        buf_addf(out, " (%s)", version);
    json_array_foreach(libraries, i, library)
    {
        const char *name = json_get_string(library, "name");
        const char *at = json_get_string(library, "version");
        buf_addf(out, "%s%s%s%s", i ? ", " : ": ", name ? name : "?", at && *at ? " " : "",
                 at ? at : "");
    }
}

/* In the broker's order, which is sorted: the same images give the same text. */
void runners_describe(const struct tools_app *app, struct buf *out)
{
    struct err e = ERR_INIT;
    const json_t *runners = runners_get(app, RUNNERS_FRESH_MS, &e);
    size_t i;
    json_t *runner;

    if (json_array_size(runners) == 0)
        return;
    buf_add_str(out, "\n\nLanguages and the libraries that can be imported:");
    json_array_foreach(runners, i, runner) runner_describe(runner, out);
}

/* ---- completion ---- */

json_t *complete_language(const struct tools_app *app, const char *value)
{
    json_auto_t *languages = runners_languages(app, NULL);
    json_t *found = json_array();
    size_t i;
    json_t *language;

    json_array_foreach(languages, i, language)
    {
        if (json_array_size(found) < COMPLETE_MAX &&
            strncmp(json_string_value(language), value, strlen(value)) == 0)
            json_array_append(found, language);
    }
    return found;
}

json_t *complete_conversation(const struct tools_app *app, const char *tenant, const char *value)
{
    struct broker_client client = tools_client(app, -1);
    struct err e = ERR_INIT;

    return broker_names(&client, tenant, NULL, value, COMPLETE_MAX, &e);
}

json_t *complete_file(const struct tools_app *app, const char *tenant, const char *conversation,
                      const char *value)
{
    struct broker_client client = tools_client(app, -1);
    struct err e = ERR_INIT;

    return conversation ? broker_names(&client, tenant, conversation, value, COMPLETE_MAX, &e)
                        : NULL;
}
