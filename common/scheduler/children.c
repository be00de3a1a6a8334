#include "config.h"

#include "common/scheduler/children.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/share.h"
#include "common/base/tenants.h"
#include "common/protocol/run_id.h"
#include "common/rpc/json.h"

#include <stdlib.h>
#include <string.h>

struct children {
    struct child *first;
    struct child **end; /* where the next one is hung in */
};

struct children *children_new(void)
{
    struct children *list = mem_alloc(sizeof *list);
    list->end = &list->first;
    return list;
}

void children_free(struct children *list)
{
    while (list && list->first)
        children_remove(list, list->first);
    free(list);
}

struct child *children_add(struct children *list, enum child_kind kind)
{
    struct child *child = mem_alloc(sizeof *child);
    int64_t now = clock_mono_ms();
    *child = (struct child){.kind = kind, .born_ms = now, .since_ms = now};
    *list->end = child;
    list->end = &child->next;
    return child;
}

void children_remove(struct children *list, struct child *child)
{
    struct child **at = &list->first;

    while (*at != child)
        at = &(*at)->next;
    *at = child->next;
    if (!child->next)
        list->end = at;
    free(child->image_id);
    free(child->image);
    free(child->tenant);
    free(child->conversation);
    json_decref(child->calls);
    free(child);
}

struct child *children_find_pid(struct children *list, pid_t pid)
{
    struct child *c = list->first;

    while (c && c->pid != pid)
        c = c->next;
    return c;
}

struct child *children_find_id(struct children *list, const char *run_id)
{
    struct child *c = list->first;

    while (c && (c->kind == CHILD_JOB || strcmp(c->run_id, run_id) != 0))
        c = c->next;
    return c;
}

static bool is_of(const struct child *child, const char *tenant)
{
    return child->tenant && strcmp(child->tenant, tenant) == 0;
}

struct child *children_find_run(struct children *list, const char *tenant, const char *run_id)
{
    for (struct child *c = list->first; c; c = c->next) {
        bool has = c->kind == CHILD_PSANDBOX ? psandbox_has_run(c->run_id, run_id)
                                             : c->claimed && strcmp(c->run_id, run_id) == 0;
        if (has && is_of(c, tenant))
            return c;
    }
    return NULL;
}

struct child *children_find_psandbox(struct children *list, const char *tenant,
                                     const char *psandbox_id)
{
    const char *run_id = psandbox_run_id(psandbox_id);

    for (struct child *c = list->first; run_id && c; c = c->next)
        if (c->kind == CHILD_PSANDBOX && is_of(c, tenant) && strcmp(c->run_id, run_id) == 0)
            return c;
    return NULL;
}

bool child_takes_calls(const struct child *child)
{
    return child->state != CHILD_ENDED && !child->ending;
}

struct child *children_find_session(struct children *list, const char *sandbox_dir,
                                    const char *language, const char *image)
{
    struct child *of_image = NULL;

    for (struct child *c = list->first; c; c = c->next) {
        if (!c->session || !child_takes_calls(c) || strcmp(c->sandbox_dir, sandbox_dir) != 0)
            continue;
        if (tenants_list_has(c->language, language))
            return c;
        if (image && c->image && strcmp(c->image, image) == 0)
            of_image = c;
    }
    return of_image;
}

bool child_is_idle_session(const struct child *child)
{
    return child->session && child_takes_calls(child) && !child->reattaching &&
           child->n_handed == 0 && json_array_size(child->calls) == 0;
}

struct child *children_find_idle_session(struct children *list, const char *tenant)
{
    struct child *found = NULL;

    for (struct child *c = list->first; c; c = c->next)
        if (child_is_idle_session(c) && is_of(c, tenant) && (!found || c->used_us < found->used_us))
            found = c;
    return found;
}

size_t children_count(const struct children *list, bool (*is)(const struct child *, const void *),
                      const void *ctx)
{
    size_t n = 0;
    for (const struct child *c = list->first; c; c = c->next)
        n += !is || is(c, ctx);
    return n;
}

size_t children_count_background_calls(const struct children *list, const char *tenant)
{
    size_t n = 0, i;
    json_t *call;

    for (const struct child *c = list->first; c; c = c->next) {
        if (!is_of(c, tenant))
            continue;
        json_array_foreach(c->calls, i, call) n += json_get_bool(call, "background", 0) != 0;
    }
    return n;
}

size_t children_count_calls(const struct children *list, const char *tenant)
{
    size_t n = 0;

    for (const struct child *c = list->first; c; c = c->next)
        if (c->state != CHILD_ENDED && is_of(c, tenant))
            n += json_array_size(c->calls) + c->n_handed;
    return n;
}

struct child *children_next(const struct children *list, const struct child *after)
{
    return after ? after->next : list->first;
}

void child_set_state(struct child *child, enum child_state state)
{
    child->state = state;
    child->since_ms = clock_mono_ms();
}

void child_set_owner(struct child *child, const char *tenant, const char *conversation)
{
    free(child->tenant);
    free(child->conversation);
    child->tenant = mem_strdup(tenant);
    child->conversation = conversation ? mem_strdup(conversation) : NULL;
}

bool child_is_warm(const struct child *child)
{
    return child->kind == CHILD_SUPERVISOR && !child->claimed &&
           (child->state == CHILD_STARTING || child->state == CHILD_WAITING ||
            child->state == CHILD_WIPING);
}

bool child_has_libraries(const struct child *child)
{
    return child->preload_asked || child->tier == ENGINE_TIER_PRELOADED;
}

/* ---- how many jobs there may be ---- */

static const struct {
    const char *name; /* several of them, as their owner knows them; NULL: they wait */
    size_t max;       /* at once */
} kinds[JOB_LIMIT_COUNT] = {
    [JOB_LIMIT_DEFAULT] = {NULL, 32},
    [JOB_LIMIT_DELETION] = {"conversations are being deleted", 12},
    [JOB_LIMIT_IMPORT] = {"files are being fetched", 8},
    [JOB_LIMIT_PACK] = {"archives are being downloaded", 24},
    [JOB_LIMIT_UNPACK] = {"archives are being unpacked", 8},
};

enum job_answer job_limits_ask(const struct children *children, enum job_limit limit,
                               const char *tenant, struct err *e)
{
    size_t taken = 0, own = 0;

    if (limit == JOB_LIMIT_NONE)
        return JOB_MAY_BEGIN;
    for (const struct child *c = NULL; (c = children_next(children, c));) {
        taken += c->limit == limit;
        own += c->limit == limit && strcmp(c->tenant, tenant) == 0;
    }
    if (share_allows(own, taken, kinds[limit].max))
        return JOB_MAY_BEGIN;
    if (!kinds[limit].name)
        return JOB_MUST_WAIT;
    if (taken < kinds[limit].max)
        err_set(e, ERR_BUSY,
                "%zu %s for you already, which is the most at once; try again when one of them has "
                "ended",
                own, kinds[limit].name);
    else
        err_set(e, ERR_BUSY, "%zu %s on this server already; try again in a while", taken,
                kinds[limit].name);
    return JOB_IS_BUSY;
}
