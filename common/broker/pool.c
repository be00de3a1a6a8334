#include "config.h"

#include "common/broker/pool.h"

#include "common/base/mem.h"
#include "common/broker/pool_plan.h"
#include "common/rpc/json.h"

#include <string.h>

#define BACK_OFF_MS     1000  /* after a first failure */
#define BACK_OFF_MAX_MS 60000 /* and at most; failures further apart are not the same trouble */
#define SOON_MS         2000  /* a conversation that misses after less calls faster than we start */

struct pool *pool_new(const struct pool_settings *settings)
{
    struct pool *p = mem_alloc(sizeof *p);
    uint64_t room = settings->memory_bytes / POOL_LIGHT_BYTES;

    p->settings = *settings;
    p->last_claim_ms = p->last_end_ms = p->last_guess_ms = POOL_NEVER;
    for (size_t i = 0; i < settings->n; i++)
        p->shelves[i].setting = settings->items[i];
    p->max_boxes = settings->n == 0 || room == 0 ? 1
                   : room < POOL_BOXES_MAX       ? (size_t)room
                                                 : POOL_BOXES_MAX;
    p->boxes = mem_array(p->max_boxes, sizeof *p->boxes);
    return p;
}

void pool_free(struct pool *p)
{
    if (p)
        free(p->boxes);
    free(p);
}

struct pool_shelf *pool_shelf_of(struct pool *p, const char *language)
{
    for (size_t i = 0; i < p->settings.n; i++)
        if (strcmp(p->shelves[i].setting.language, language) == 0)
            return &p->shelves[i];
    return NULL;
}

void pool_box_drop(struct pool *p, struct pool_box *box)
{
    *box = p->boxes[--p->n_boxes];
}

static struct pool_box *find_box(struct pool *p, const char *name, const struct pool_shelf *shelf)
{
    for (size_t i = 0; i < p->n_boxes; i++)
        if (p->boxes[i].shelf == shelf && strcmp(p->boxes[i].name, name) == 0)
            return &p->boxes[i];
    return NULL;
}

static void drop_oldest(struct pool *p)
{
    struct pool_box *oldest = &p->boxes[0];

    for (size_t i = 1; i < p->n_boxes; i++)
        if (p->boxes[i].used_ms < oldest->used_ms)
            oldest = &p->boxes[i];
    pool_box_drop(p, oldest);
}

struct pool_box *pool_box_of(struct pool *p, const char *name, struct pool_shelf *shelf)
{
    struct pool_box *box = find_box(p, name, shelf);

    if (box)
        return box;
    if (p->n_boxes == p->max_boxes)
        drop_oldest(p);
    box = &p->boxes[p->n_boxes++];
    *box = (struct pool_box){.shelf = shelf};
    memcpy(box->name, name, strnlen(name, SANDBOX_NAME_LEN));
    return box;
}

void pool_forget_box(struct pool *p, const char *name)
{
    for (size_t i = p->n_boxes; i-- > 0;)
        if (strcmp(p->boxes[i].name, name) == 0)
            pool_box_drop(p, &p->boxes[i]);
}

/* "matplotlib" of "matplotlib.pyplot". */
static size_t top_len(const char *name)
{
    return strcspn(name, ". ");
}

static bool is_preloaded(const char *preload, const char *name)
{
    size_t len = top_len(name);

    for (; *preload; preload += strcspn(preload, " "), preload += strspn(preload, " "))
        if (len > 0 && top_len(preload) == len && memcmp(preload, name, len) == 0)
            return true;
    return false;
}

/* Does the program import something that its image can load ahead? */
static bool wants_full(const struct pool_want *want)
{
    const char *preload = want->runner->preload;
    size_t i;
    json_t *name;

    json_array_foreach((json_t *)(uintptr_t)want->wants, i,
                       name) if (preload && json_is_string(name) &&
                                 is_preloaded(preload, json_string_value(name))) return true;
    return false;
}

bool pool_is_waiting(const struct child *c)
{
    return c->kind == CHILD_SUPERVISOR && !c->claimed &&
           (c->state == CHILD_STARTING || c->state == CHILD_WAITING);
}

static bool fits(const struct child *c, const struct pool_want *want)
{
    return pool_is_waiting(c) && !c->network && strcmp(c->language, want->runner->language) == 0 &&
           c->image_id && strcmp(c->image_id, want->runner->image_id) == 0 &&
           (strcmp(c->box, want->box) == 0 || (!want->known && c->spare[0]));
}

/* How well it serves, the smaller the better: what counts more stands in a higher digit. */
static int rank(const struct child *c, bool full)
{
    int tier = c->tier == ENGINE_TIER_FULL ? 2 : c->preload_asked ? 1 : 0;

    /* Whoever does not want libraries should not interrupt the loading of some: that would start
     * the interpreter anew. */
    static const int worth[2][3] = {{0, 2, 1}, {2, 1, 0}};
    return (c->state == CHILD_WAITING ? 0 : 100) + (c->spare[0] ? 10 : 0) + worth[full][tier];
}

struct child *pool_choose(struct pool *p, const struct children *children,
                          const struct pool_want *want)
{
    const bool full = wants_full(want);
    struct child *best = NULL;
    int best_rank = 0;

    if (want->network || p->settings.n == 0)
        return NULL;
    for (struct child *c = NULL; (c = children_next(children, c));) {
        if (!fits(c, want))
            continue;
        int r = rank(c, full);
        if (!best || r < best_rank || (r == best_rank && c->born_ms < best->born_ms)) {
            best = c;
            best_rank = r;
        }
    }
    return best;
}

bool pool_may_start(const struct pool *p, const struct children *children)
{
    size_t starting = 0;

    for (struct child *c = NULL; (c = children_next(children, c));)
        starting += c->kind == CHILD_SUPERVISOR && c->state == CHILD_STARTING;
    return starting < p->settings.starts_max;
}

static void add_place(const struct pool *p, struct pool_extra *extra, int64_t now_ms)
{
    if (extra->n < p->settings.starts_max)
        extra->n++;
    extra->changed_ms = now_ms;
}

/* A run in a conversation that was there before. */
static void note_return(struct pool *p, struct pool_box *box, bool missed, int64_t now_ms)
{
    box->proven = true;
    if (missed && box->ended && now_ms - box->used_ms < SOON_MS)
        add_place(p, &box->extra, now_ms);
}

void pool_note_claim(struct pool *p, const struct pool_want *want, const struct child *chosen,
                     int64_t now_ms)
{
    struct pool_shelf *shelf = pool_shelf_of(p, want->runner->language);
    const bool missed = !chosen || chosen->state != CHILD_WAITING;

    p->last_claim_ms = now_ms;
    if (!shelf || want->network)
        return;
    struct pool_box *box = pool_box_of(p, want->box, shelf);
    if (want->known)
        note_return(p, box, missed, now_ms);
    else if (missed)
        add_place(p, &shelf->extra, now_ms);
    if (!want->known)
        shelf->used_ms = now_ms;
    box->full = wants_full(want);
    box->used_ms = now_ms;
}

void pool_note_end(struct pool *p, const struct child *child, int64_t now_ms)
{
    struct pool_shelf *shelf = pool_shelf_of(p, child->language);

    p->last_end_ms = now_ms;
    if (!shelf || child->network || !child->box[0])
        return;
    struct pool_box *box = pool_box_of(p, child->box, shelf);
    box->ended = true;
    box->used_ms = now_ms;
}

void pool_note_upload(struct pool *p, const char *name, int64_t now_ms)
{
    if (p->settings.n == 0)
        return;
    for (size_t i = 0; i < p->n_boxes; i++)
        if (strcmp(p->boxes[i].name, name) == 0)
            return;
    struct pool_box *box = pool_box_of(p, name, &p->shelves[0]);
    box->ended = true;
    box->used_ms = now_ms;
}

void pool_note_failed_start(struct pool *p, const char *language, int64_t now_ms)
{
    struct pool_shelf *shelf = pool_shelf_of(p, language);

    /* Several at once are one trouble. */
    if (!shelf || now_ms < shelf->retry_ms)
        return;
    if (shelf->back_off_ms == 0 || now_ms - shelf->retry_ms > BACK_OFF_MAX_MS)
        shelf->back_off_ms = BACK_OFF_MS;
    else if (shelf->back_off_ms < BACK_OFF_MAX_MS / 2)
        shelf->back_off_ms *= 2;
    else
        shelf->back_off_ms = BACK_OFF_MAX_MS;
    shelf->retry_ms = now_ms + shelf->back_off_ms;
}

void pool_note_waiting(struct pool *p, const struct child *c)
{
    struct pool_shelf *shelf = pool_shelf_of(p, c->language);

    if (!shelf || c->memory_bytes == 0)
        return;
    uint64_t *most = c->tier == ENGINE_TIER_FULL ? &shelf->full_bytes : &shelf->light_bytes;
    if (*most < c->memory_bytes + POOL_BESIDE_BYTES)
        *most = c->memory_bytes + POOL_BESIDE_BYTES;
}

static json_t *shelf_status(const struct pool_shelf *shelf, const struct children *children,
                            int64_t now_ms)
{
    size_t starting = 0, light = 0, full = 0;
    int64_t oldest = 0;

    for (struct child *c = NULL; (c = children_next(children, c));) {
        if (!pool_is_waiting(c) || strcmp(c->language, shelf->setting.language) != 0)
            continue;
        if (c->state == CHILD_STARTING) {
            starting++;
            continue;
        }
        *(c->tier == ENGINE_TIER_FULL ? &full : &light) += 1;
        if (now_ms - c->born_ms > oldest)
            oldest = now_ms - c->born_ms;
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "language", shelf->setting.language,
                     "places", (json_int_t)shelf->setting.n, "extra", (json_int_t)shelf->extra.n,
                     "starting", (json_int_t)starting, "light", (json_int_t)light, "full",
                     (json_int_t)full, "oldestMs", (json_int_t)oldest);
}

static json_t *waiting_status(struct pool *p, const struct children *children, int64_t now_ms)
{
    json_t *list = json_array();

    for (struct child *c = NULL; (c = children_next(children, c));)
        if (pool_is_waiting(c))
            json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "runId",
                                                  c->run_id, "language", c->language, "tier",
                                                  child_tier_name(c->tier), "box", c->box, "ageMs",
                                                  (json_int_t)(now_ms - c->born_ms), "memoryBytes",
                                                  (json_int_t)pool_bytes_of(p, c)));
    return list;
}

json_t *pool_status(struct pool *p, const struct children *children, int64_t now_ms)
{
    struct pool_count count;
    size_t on_boxes = 0;
    json_t *languages = json_array();

    pool_count(p, children, &count);
    for (size_t i = 0; i < p->n_boxes; i++)
        on_boxes += p->boxes[i].have;
    for (size_t i = 0; i < p->settings.n; i++)
        json_array_append_new(languages, shelf_status(&p->shelves[i], children, now_ms));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "budgetBytes",
                     (json_int_t)p->settings.memory_bytes, "usedBytes", (json_int_t)count.used,
                     "startsMax", (json_int_t)p->settings.starts_max, "starting",
                     (json_int_t)count.starting, "conversations", (json_int_t)on_boxes, "languages",
                     languages, "waiting", waiting_status(p, children, now_ms));
}
