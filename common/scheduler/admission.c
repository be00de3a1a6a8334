#include "config.h"

#include "common/scheduler/admission.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/base/share.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_MIN_MS     100
#define RETRY_MAX_MS     60000
#define RETRY_UNKNOWN_MS 1000
#define PACE_WEIGHT      8 /* how many releases the pace remembers */

struct ticket {
    struct ticket *next;
    void *id;
    bool background;
    char sandbox_dir[]; /* the sandbox's name */
};

/* A tenant that runs or waits. The order in the list is the order of turns. */
struct tenant {
    struct tenant *next;
    size_t running, waiting, background;
    size_t most; /* of running; 0: no other limit */
    struct ticket *first;
    char name[];
};

/* A sandbox in which programs run. */
struct conversation {
    struct conversation *next;
    size_t running;
    char name[];
};

/* When a tenant asked last. */
struct recent_tenant {
    char *name; /* NULL: none */
    int64_t asked_ms;
};

struct admission {
    struct admission_limits limits;
    struct tenant *tenants;
    struct conversation *conversations;
    struct recent_tenant recent[2]; /* two tenants, the latest first */
    size_t running, waiting;
    int64_t released_ms; /* -1: nothing yet */
    int64_t pace_ms;     /* between releases while others wait; 0: unknown */
};

static size_t or_all(size_t limit, size_t all)
{
    return limit && limit < all ? limit : all;
}

struct admission *admission_new(const struct admission_limits *limits)
{
    struct admission *a = mem_alloc(sizeof *a);
    a->limits = *limits;
    a->limits.conversation = or_all(limits->conversation, limits->server);
    a->released_ms = -1;
    return a;
}

static void tenant_free(struct tenant *t)
{
    for (struct ticket *k = t->first, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    free(t);
}

void admission_free(struct admission *a)
{
    if (!a)
        return;
    for (struct tenant *t = a->tenants, *next; t; t = next) {
        next = t->next;
        tenant_free(t);
    }
    for (struct conversation *b = a->conversations, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    for (size_t i = 0; i < ARRAY_LEN(a->recent); i++)
        free(a->recent[i].name);
    free(a);
}

/* ---- tenants and conversations ---- */

static struct tenant *find_tenant(const struct admission *a, const char *name)
{
    struct tenant *t = a->tenants;
    while (t && strcmp(t->name, name) != 0)
        t = t->next;
    return t;
}

static void tenant_append(struct admission *a, struct tenant *t)
{
    struct tenant **at = &a->tenants;
    while (*at)
        at = &(*at)->next;
    t->next = NULL;
    *at = t;
}

static void tenant_unlink(struct admission *a, const struct tenant *t)
{
    struct tenant **at = &a->tenants;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
}

static struct tenant *tenant_find_or_add(struct admission *a, const char *name)
{
    struct tenant *t = find_tenant(a, name);
    if (t)
        return t;
    size_t size = strlen(name) + 1;
    t = mem_alloc(sizeof *t + size);
    memcpy(t->name, name, size);
    tenant_append(a, t);
    return t;
}

static void tenant_drop_if_idle(struct admission *a, struct tenant *t)
{
    if (t->running > 0 || t->waiting > 0)
        return;
    tenant_unlink(a, t);
    tenant_free(t);
}

static struct conversation **find_conversation(struct admission *a, const char *name)
{
    struct conversation **at = &a->conversations;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static bool other_asked(const struct admission *a, const char *tenant, int64_t since_ms)
{
    for (size_t i = 0; i < ARRAY_LEN(a->recent); i++)
        if (a->recent[i].name && strcmp(a->recent[i].name, tenant) != 0 &&
            a->recent[i].asked_ms > since_ms)
            return true;
    return false;
}

bool admission_contended(const struct admission *a, const char *tenant, int64_t now_ms)
{
    return other_asked(a, tenant, now_ms - ADMISSION_RECENT_MS);
}

/* A share of 4 places or less is all of them. Where there are other tenants, one is theirs. */
static bool is_for_others(const struct admission *a, const struct tenant *t)
{
    return a->limits.server > 1 && t->running + 1 == a->limits.server &&
           other_asked(a, t->name, a->recent[0].asked_ms - ADMISSION_KNOWN_MS);
}

static size_t running_elsewhere(const struct admission *a, const char *tenant)
{
    return a->limits.elsewhere ? a->limits.elsewhere(a->limits.ctx, tenant) : 0;
}

static bool tenant_has_room(const struct admission *a, const struct tenant *t)
{
    size_t limit = a->limits.tenant;

    if (t->most > 0 && t->running + running_elsewhere(a, t->name) >= t->most)
        return false;
    if (limit >= a->limits.server)
        return true;
    return (limit == 0 || t->running < limit) &&
           share_allows(t->running, a->running, a->limits.server) && !is_for_others(a, t);
}

static bool fits(struct admission *a, const struct tenant *t, const char *sandbox_dir)
{
    const struct conversation *b = *find_conversation(a, sandbox_dir);
    return a->running < a->limits.server && tenant_has_room(a, t) &&
           (b ? b->running : 0) < a->limits.conversation &&
           (!a->limits.has_memory || a->limits.has_memory(a->limits.ctx));
}

static void place_take(struct admission *a, struct tenant *t, const char *sandbox_dir)
{
    struct conversation **at = find_conversation(a, sandbox_dir);

    if (!*at) {
        size_t size = strlen(sandbox_dir) + 1;
        *at = mem_alloc(sizeof **at + size);
        memcpy((*at)->name, sandbox_dir, size);
    }
    (*at)->running++;
    a->running++;
    t->running++;
}

/* ---- contention ---- */

static void note_recent_tenant(struct admission *a, const char *tenant, int64_t now_ms)
{
    if (!a->recent[0].name || strcmp(a->recent[0].name, tenant) != 0) {
        free(a->recent[1].name);
        a->recent[1] = a->recent[0];
        a->recent[0].name = mem_strdup(tenant);
    }
    a->recent[0].asked_ms = now_ms;
}

/* ---- asking ---- */

static void tenant_enqueue(struct admission *a, struct tenant *t, const struct admission_want *w)
{
    size_t size = strlen(w->sandbox_dir) + 1;
    struct ticket *k = mem_alloc(sizeof *k + size);
    k->id = w->ticket;
    k->background = w->background;
    memcpy(k->sandbox_dir, w->sandbox_dir, size);
    struct ticket **at = &t->first;
    while (*at)
        at = &(*at)->next;
    *at = k;
    t->waiting++;
    a->waiting++;
}

int64_t admission_retry_ms(const struct admission *a)
{
    int64_t ms = a->pace_ms * (int64_t)(a->waiting + 1);
    if (a->pace_ms == 0)
        return RETRY_UNKNOWN_MS;
    if (ms < RETRY_MIN_MS)
        return RETRY_MIN_MS;
    return ms > RETRY_MAX_MS ? RETRY_MAX_MS : ms;
}

enum admission_answer admission_ask(struct admission *a, const struct admission_want *want,
                                    size_t *out_position, int64_t *out_retry_ms)
{
    struct tenant *t = tenant_find_or_add(a, want->tenant);
    enum admission_answer answer = ADMISSION_BUSY;

    *out_position = 0;
    *out_retry_ms = 0;
    note_recent_tenant(a, want->tenant, want->now_ms);
    t->most = want->most;
    if (fits(a, t, want->sandbox_dir)) {
        place_take(a, t, want->sandbox_dir);
        answer = ADMISSION_GO;
    } else if (share_allows(t->waiting, a->waiting, a->limits.queue)) {
        tenant_enqueue(a, t, want);
        /* Tenants take turns: the last of t comes after all its own, and after as many of each
         * other tenant's. */
        for (const struct tenant *o = a->tenants; o; o = o->next)
            *out_position += o->waiting < t->waiting ? o->waiting : t->waiting;
        answer = ADMISSION_WAIT;
    }
    if (answer == ADMISSION_BUSY) {
        *out_position = a->waiting;
        *out_retry_ms = admission_retry_ms(a);
    } else if (want->background) {
        t->background++;
    }
    tenant_drop_if_idle(a, t);
    return answer;
}

void admission_adopt(struct admission *a, const char *tenant, const char *sandbox_dir,
                     bool background)
{
    struct tenant *t = tenant_find_or_add(a, tenant);
    place_take(a, t, sandbox_dir);
    if (background)
        t->background++;
}

/* ---- turns ---- */

static void note_pace(struct admission *a, int64_t now_ms)
{
    int64_t since = now_ms - a->released_ms;
    bool known = a->released_ms >= 0;
    a->released_ms = now_ms;
    if (!known || a->waiting == 0)
        return; /* no run had to wait: the time says nothing about the pace */
    if (since < 1)
        since = 1;
    a->pace_ms = a->pace_ms ? (a->pace_ms * (PACE_WEIGHT - 1) + since) / PACE_WEIGHT : since;
    if (a->pace_ms == 0)
        a->pace_ms = 1;
}

void admission_release(struct admission *a, const char *tenant, const char *sandbox_dir,
                       bool background, int64_t now_ms)
{
    struct tenant *t = find_tenant(a, tenant);
    if (!t || t->running == 0)
        return;
    note_pace(a, now_ms);
    struct conversation **at = find_conversation(a, sandbox_dir), *conversation = *at;
    if (conversation && --conversation->running == 0) {
        *at = conversation->next;
        free(conversation);
    }
    a->running--;
    t->running--;
    if (background)
        t->background--;
    tenant_drop_if_idle(a, t);
}

/* Removes *at from the tenant's queue. */
static void tenant_dequeue(struct admission *a, struct tenant *t, struct ticket **at)
{
    struct ticket *k = *at;
    *at = k->next;
    free(k);
    t->waiting--;
    a->waiting--;
}

void *admission_next(struct admission *a)
{
    for (struct tenant *t = a->tenants; t; t = t->next) {
        struct ticket **at = &t->first;
        /* A conversation at its limit holds up its own runs only. */
        while (*at && !fits(a, t, (*at)->sandbox_dir))
            at = &(*at)->next;
        if (!*at)
            continue;
        void *id = (*at)->id;
        place_take(a, t, (*at)->sandbox_dir);
        tenant_dequeue(a, t, at);
        /* The other tenants have their turn before. */
        tenant_unlink(a, t);
        tenant_append(a, t);
        return id;
    }
    return NULL;
}

void admission_forget(struct admission *a, const void *ticket)
{
    for (struct tenant *t = a->tenants; t; t = t->next) {
        for (struct ticket **at = &t->first; *at; at = &(*at)->next) {
            if ((*at)->id != ticket)
                continue;
            if ((*at)->background)
                t->background--;
            tenant_dequeue(a, t, at);
            tenant_drop_if_idle(a, t);
            return;
        }
    }
}

size_t admission_running(const struct admission *a)
{
    return a->running;
}

size_t admission_waiting(const struct admission *a)
{
    return a->waiting;
}

size_t admission_running_of(const struct admission *a, const char *tenant)
{
    const struct tenant *t = find_tenant(a, tenant);

    return (t ? t->running : 0) + running_elsewhere(a, tenant);
}

size_t admission_background(const struct admission *a, const char *tenant)
{
    const struct tenant *t = find_tenant(a, tenant);

    return t ? t->background : 0;
}
