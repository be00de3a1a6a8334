/*
 * A main process without processes: rows, a pool and a clock that only moves when a test says so.
 * Actions are carried out as warm_pool.c does it; the test plays the engine.
 */
#pragma once

#include "tests/unit/unit.h"

#include "common/base/mem.h"
#include "common/scheduler/children.h"
#include "common/scheduler/pool.h"
#include "common/scheduler/pool_books.h"

#define WORLD_MIB (1024ull * 1024)

struct world {
    struct pool_settings settings;
    struct pool *pool;
    struct children *children;
    struct engine_runner items[4]; /* bash, perl, python, typescript */
    struct engine_runners runners;
    bool engine_ok, idle;
    int64_t now, again;
    size_t running; /* programs under way */
    size_t waiting; /* as in struct pool_now */
    int made;       /* for names */
};

/* Two Python, whose image has Perl, one TypeScript, one bash, 1 GiB, 4 starts at once. */
static inline void world_open(struct world *w)
{
    static char bash[] = "bash", perl[] = "perl", python[] = "python", typescript[] = "typescript";
    static char bash_id[] = "sha256:b1", both_id[] = "sha256:p1", typescript_id[] = "sha256:t1";
    static char bash_image[] = "b:latest", both[] = "p:latest", typescript_image[] = "t:latest";
    static char libraries[] = "numpy pandas matplotlib.pyplot", none[] = "";
    const struct engine_runner items[4] = {
        {.language = bash, .image = bash_image, .image_id = bash_id, .preload = none},
        {.language = perl, .image = both, .image_id = both_id, .preload = none},
        {.language = python, .image = both, .image_id = both_id, .preload = libraries},
        {.language = typescript,
         .image = typescript_image,
         .image_id = typescript_id,
         .preload = none},
    };
    *w = (struct world){
        .settings = {.items = {{"python", 2}, {"typescript", 1}, {"bash", 1}},
                     .n = 3,
                     .memory_bytes = 1024 * WORLD_MIB,
                     .idle_ms = 1800000,
                     .starts_max = 4},
        .engine_ok = true,
        .idle = true,
        .now = 1000000,
    };
    memcpy(w->items, items, sizeof(items));
    for (size_t i = 0; i < ARRAY_LEN(items); i++)
        w->items[i].warm = true;
    w->runners = (struct engine_runners){.items = w->items, .n = ARRAY_LEN(items)};
}

static inline void world_begin(struct world *w)
{
    w->pool = pool_new(&w->settings, &w->runners);
    w->children = children_new();
}

static inline void world_close(struct world *w)
{
    pool_free(w->pool);
    children_free(w->children);
}

static inline const struct engine_runner *world_runner(const struct world *w, const char *language)
{
    for (size_t i = 0; i < w->runners.n; i++)
        if (strcmp(w->runners.items[i].language, language) == 0)
            return &w->runners.items[i];
    fail_msg("no runner for %s", language);
    return NULL;
}

/* A supervisor's row; sandbox_dir NULL: on a warm directory. */
static inline struct child *world_child(struct world *w, const struct engine_runner *runner,
                                        const char *sandbox_dir, enum child_state state)
{
    struct child *c = children_add(w->children, CHILD_SUPERVISOR);

    c->born_ms = c->since_ms = w->now;
    c->state = state;
    c->tier = state == CHILD_WAITING ? ENGINE_TIER_STARTED : ENGINE_TIER_NONE;
    c->image_id = mem_strdup(runner->image_id);
    snprintf(c->language, sizeof(c->language), "%s", runner->language);
    snprintf(c->run_id, sizeof(c->run_id), "%024d", ++w->made);
    memcpy(c->container_id, c->run_id, sizeof(c->container_id));
    if (sandbox_dir)
        snprintf(c->sandbox_dir, sizeof(c->sandbox_dir), "%s", sandbox_dir);
    else
        snprintf(c->warm_dir, sizeof(c->warm_dir), "%024d", w->made);
    return c;
}

static inline bool world_ask(struct world *w, struct pool_action *out)
{
    const struct pool_now now = {.now_ms = w->now,
                                 .engine_ok = w->engine_ok,
                                 .machine_idle = w->idle,
                                 .waiting_callers = w->waiting};

    return pool_next(w->pool, w->children, &now, out, &w->again);
}

static inline void world_do(struct world *w, const struct pool_action *action)
{
    switch (action->what) {
    case POOL_START_ON_WARM_DIR:
        world_child(w, action->runner, NULL, CHILD_STARTING);
        break;
    case POOL_START_ON_SANDBOX:
        world_child(w, action->runner, action->sandbox_dir, CHILD_STARTING);
        break;
    case POOL_PRELOAD:
        action->child->preload_asked = true;
        break;
    case POOL_END:
        action->child->state = CHILD_ENDED;
        break;
    }
}

/* Carries out all actions; returns how many there were. */
static inline int world_settle(struct world *w)
{
    struct pool_action action;
    int n = 0;

    for (; world_ask(w, &action); n++) {
        assert_true(n < 10000);
        world_do(w, &action);
    }
    return n;
}

/* The containers that are being made come up, the libraries are loaded, and who was told to go is
 * gone. Returns how many changed. */
static inline int world_catch_up(struct world *w)
{
    struct child *next;
    int n = 0;

    for (struct child *c = children_next(w->children, NULL); c; c = next) {
        next = children_next(w->children, c);
        if (c->state == CHILD_ENDED) {
            children_remove(w->children, c);
            n++;
        } else if ((c->state == CHILD_STARTING || c->state == CHILD_WIPING) && !c->claimed) {
            c->state = CHILD_WAITING;
            c->since_ms = w->now;
            if (c->tier == ENGINE_TIER_NONE)
                c->tier = ENGINE_TIER_STARTED;
            n++;
        } else if (c->preload_asked && c->tier != ENGINE_TIER_PRELOADED && !c->claimed) {
            c->tier = ENGINE_TIER_PRELOADED;
            n++;
        }
    }
    return n;
}

/* Until nothing is to be done any more. */
static inline void world_rest(struct world *w)
{
    for (int i = 0; world_settle(w) + world_catch_up(w) > 0; i++)
        assert_true(i < 1000);
}

struct world_filter {
    const char *language;    /* of their image; NULL: any */
    const char *sandbox_dir; /* NULL: any; "": on warm directories */
    int state;               /* -1: waits or is being made */
    int tier;                /* -1: any */
};

#define WORLD_ANY                                                                                  \
    {                                                                                              \
        .state = -1, .tier = -1                                                                    \
    }

/* Unclaimed supervisors of that kind. */
static inline int world_count(const struct world *w, struct world_filter f)
{
    int n = 0;

    for (struct child *c = NULL; (c = children_next(w->children, c));)
        n += c->kind == CHILD_SUPERVISOR && !c->claimed &&
             (f.state < 0 ? c->state == CHILD_STARTING || c->state == CHILD_WAITING ||
                                c->state == CHILD_WIPING
                          : (int)c->state == f.state) &&
             (f.tier < 0 || (int)c->tier == f.tier) &&
             (!f.language ||
              pool_image_of(w->pool, c->language) == pool_image_of(w->pool, f.language)) &&
             (!f.sandbox_dir || strcmp(c->sandbox_dir, f.sandbox_dir) == 0);
    return n;
}

static inline int world_on_warm_dirs(const struct world *w, const char *language)
{
    return world_count(
        w, (struct world_filter){.language = language, .sandbox_dir = "", .state = -1, .tier = -1});
}

static inline int world_on(const struct world *w, const char *sandbox_dir)
{
    return world_count(w,
                       (struct world_filter){.sandbox_dir = sandbox_dir, .state = -1, .tier = -1});
}

static inline struct pool_want world_want(const struct world *w, const char *language,
                                          const char *sandbox_dir, bool known)
{
    return (struct pool_want){
        .runner = world_runner(w, language), .sandbox_dir = sandbox_dir, .known = known};
}

/* A run takes the chosen one, or a new one. Returns its child, as run_queue.c leaves it. */
static inline struct child *world_claim(struct world *w, const struct pool_want *want)
{
    struct child *c = pool_choose(w->pool, w->children, want);

    pool_note_claim(w->pool, want, w->now);
    if (!c)
        c = world_child(w, want->runner, want->sandbox_dir, CHILD_STARTING);
    assert_false(c->claimed);
    c->claimed = true;
    c->network = want->network;
    c->single_use = want->single_use;
    snprintf(c->sandbox_dir, sizeof(c->sandbox_dir), "%s", want->sandbox_dir);
    snprintf(c->language, sizeof(c->language), "%s", want->runner->language);
    c->warm_dir[0] = '\0';
    return c;
}

static inline void world_run(struct world *w, struct child *c)
{
    c->state = CHILD_RUNNING;
    c->since_ms = w->now;
    w->running++;
}

/* The run is over; its container is wiped for the next one, as broker/runs.c does it, where it may
 * be. */
static inline bool world_keep(struct world *w, struct child *c)
{
    w->running--;
    pool_note_end(w->pool, c, w->now);
    if (!pool_may_reuse(w->pool, c, w->now)) {
        children_remove(w->children, c);
        return false;
    }
    c->claimed = false;
    c->runs++;
    c->state = CHILD_WIPING;
    return true;
}

static inline void world_end(struct world *w, struct child *c)
{
    w->running--;
    pool_note_end(w->pool, c, w->now);
    children_remove(w->children, c);
}
