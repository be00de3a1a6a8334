#include "config.h"

#include "common/scheduler/pool.h"

#include "common/base/mem.h"
#include "common/scheduler/pool_books.h"
#include "common/scheduler/runners.h"

#include <string.h>

#define BACK_OFF_MS     1000  /* after a first failure */
#define BACK_OFF_MAX_MS 60000 /* and at most; failures further apart are not of one cause */
#define UPLOAD_MS       250   /* for the directory of a file to be there */

/* ---- what is remembered and counted (pool_books.h) ---- */

/* Containers of a language can wait. */
static const struct engine_runner *warm_runner(const struct pool *p, const char *language)
{
    const struct engine_runner *runner = engine_runners_find(p->runners, language);

    return runner && runner->warm ? runner : NULL;
}

struct pool_image *pool_image_of(struct pool *p, const char *language)
{
    const struct engine_runner *wanted = warm_runner(p, language);

    for (size_t i = 0; wanted && i < p->settings.n; i++) {
        const struct engine_runner *r = warm_runner(p, p->settings.items[i].language);
        if (r && strcmp(r->image_id, wanted->image_id) == 0)
            return &p->images[i];
    }
    return NULL;
}

void pool_sandbox_drop(struct pool *p, struct pool_sandbox *sandbox)
{
    *sandbox = p->sandboxes[--p->n_sandboxes];
}

static struct pool_sandbox *find_sandbox(struct pool *p, const char *name,
                                         const struct pool_image *image)
{
    for (size_t i = 0; i < p->n_sandboxes; i++)
        if (p->sandboxes[i].image == image && strcmp(p->sandboxes[i].name, name) == 0)
            return &p->sandboxes[i];
    return NULL;
}

/* The record of that conversation and image, made when there is none: the one used longest ago goes
 * when there are too many. */
static struct pool_sandbox *sandbox_of(struct pool *p, const char *name, struct pool_image *image)
{
    struct pool_sandbox *oldest = &p->sandboxes[0], *found = find_sandbox(p, name, image);

    if (found)
        return found;
    for (size_t i = 0; i < p->n_sandboxes; i++)
        if (p->sandboxes[i].used_ms < oldest->used_ms)
            oldest = &p->sandboxes[i];
    if (p->n_sandboxes == p->max_sandboxes)
        pool_sandbox_drop(p, oldest);
    struct pool_sandbox *sandbox = &p->sandboxes[p->n_sandboxes++];
    *sandbox = (struct pool_sandbox){.image = image};
    memcpy(sandbox->name, name, strnlen(name, SANDBOX_NAME_LEN));
    return sandbox;
}

uint64_t pool_usual_bytes(const struct pool_image *image, bool preloaded)
{
    const uint64_t seen = !image ? 0 : preloaded ? image->preloaded_bytes : image->started_bytes;

    return seen ? seen : preloaded ? POOL_PRELOADED_BYTES : POOL_STARTED_BYTES;
}

uint64_t pool_bytes_of(const struct child *c)
{
    const bool preloaded = child_has_libraries(c);
    const bool measured = c->memory_bytes > 0 && (c->tier == ENGINE_TIER_PRELOADED) == preloaded;

    return measured ? c->memory_bytes + POOL_BESIDE_BYTES
                    : pool_usual_bytes(c->pool_image, preloaded);
}

/* An adopted one was made with other settings, or of an image that is not known. */
static bool may_serve_again(struct pool *p, const struct child *c)
{
    return p->settings.reuse && pool_image_of(p, c->language) && c->image_id && !c->network &&
           !c->single_use && c->sandbox_dir[0] && c->runs + 1 < POOL_RUNS_MAX;
}

static void count_waiting(struct child *c, struct pool_count *out)
{
    if (c->preload_asked && c->tier != ENGINE_TIER_PRELOADED)
        out->loading++;
    if (c->sandbox)
        c->sandbox->have++;
    if (c->pool_image && c->warm_dir[0]) {
        c->pool_image->have++;
        c->pool_image->preloaded += child_has_libraries(c);
    } else if (c->pool_image) {
        c->pool_image->serving++;
    }
}

static void count_claimed(struct pool *p, struct child *c, struct pool_count *out)
{
    out->running += c->state != CHILD_ENDED;
    out->callers += c->state == CHILD_STARTING;
    if (!c->sandbox || c->state == CHILD_ENDED || !may_serve_again(p, c))
        return;
    c->sandbox->busy++;
    c->pool_image->serving++;
}

static void count_images(struct pool *p)
{
    for (size_t i = 0; i < p->settings.n; i++) {
        struct pool_image *image = &p->images[i];
        image->n = image->have = image->preloaded = image->serving = 0;
        image->runner = NULL;
    }
    for (size_t i = 0; i < p->settings.n; i++) {
        struct pool_image *image = pool_image_of(p, p->settings.items[i].language);
        if (!image)
            continue;
        const struct engine_runner *r = warm_runner(p, p->settings.items[i].language);
        image->n += p->settings.items[i].n;
        image->runner = runners_of_image(p->runners, r->image_id, NULL);
    }
}

void pool_count(struct pool *p, const struct children *children, struct pool_count *out)
{
    *out = (struct pool_count){0};
    count_images(p);
    for (size_t i = 0; i < p->n_sandboxes; i++)
        p->sandboxes[i].have = p->sandboxes[i].busy = 0;
    for (struct child *c = NULL; (c = children_next(children, c));) {
        if (c->kind != CHILD_SUPERVISOR)
            continue;
        c->pool_image = pool_image_of(p, c->language);
        c->sandbox = c->sandbox_dir[0] ? find_sandbox(p, c->sandbox_dir, c->pool_image) : NULL;
        out->starting += c->state == CHILD_STARTING;
        if (c->claimed) {
            count_claimed(p, c, out);
            continue;
        }
        out->used += pool_bytes_of(c);
        if (child_is_warm(c))
            count_waiting(c, out);
        else
            out->leaving += pool_bytes_of(c);
    }
}

/* ---- the pool ---- */

size_t pool_places(const struct pool *p, const struct pool_image *image, int64_t now_ms, bool all)
{
    const size_t at_once = p->settings.automatic && image->n > POOL_AUTO_AT_ONCE ? POOL_AUTO_AT_ONCE
                                                                                 : image->n;

    if (!all || now_ms - p->called_ms >= POOL_CALLS_MS || image->n < at_once + image->serving)
        return at_once;
    return p->settings.automatic ? image->n - image->serving : at_once;
}

struct pool *pool_new(const struct pool_settings *settings, const struct engine_runners *runners)
{
    struct pool *p = mem_alloc(sizeof *p);
    uint64_t room = settings->memory_bytes / POOL_STARTED_BYTES;

    p->settings = *settings;
    p->runners = runners;
    p->last_claim_ms = p->last_end_ms = POOL_NEVER;
    p->max_sandboxes = settings->n == 0 || room == 0 ? 1
                       : room < POOL_SANDBOXES_MAX   ? (size_t)room
                                                     : POOL_SANDBOXES_MAX;
    p->sandboxes = mem_array(p->max_sandboxes, sizeof *p->sandboxes);
    return p;
}

void pool_free(struct pool *p)
{
    if (p)
        free(p->sandboxes);
    free(p);
}

void pool_forget_sandbox(struct pool *p, const char *name)
{
    for (size_t i = p->n_sandboxes; i-- > 0;)
        if (strcmp(p->sandboxes[i].name, name) == 0)
            pool_sandbox_drop(p, &p->sandboxes[i]);
}

/* "matplotlib" of "matplotlib.pyplot". */
static size_t top_len(const char *name)
{
    return strcspn(name, ". ");
}

static bool is_imported(const json_t *imports, const char *name)
{
    const size_t len = top_len(name);
    const json_t *one;

    for (size_t i = 0; (one = json_array_get(imports, i)); i++)
        if (json_is_string(one) && top_len(json_string_value(one)) == len &&
            memcmp(json_string_value(one), name, len) == 0)
            return true;
    return false;
}

bool pool_needs(const struct engine_runner *runner, const json_t *imports, struct buf *out)
{
    const char *name = runner->preload ? runner->preload : "";
    bool any = false;

    for (size_t len; *(name += strspn(name, " ")); name += len) {
        len = strcspn(name, " ");
        if (!is_imported(imports, name))
            continue;
        any = true;
        if (out && out->len > 0)
            buf_add_char(out, ' ');
        if (out)
            buf_add(out, name, len);
    }
    return any;
}

/* Does the program import something that its image can preload? */
static bool wants_preloaded(const struct pool_want *want)
{
    return pool_needs(want->runner, want->imports, NULL);
}

static bool fits(const struct child *c, const struct pool_want *want)
{
    return child_is_warm(c) && !c->network && !(want->single_use && c->runs > 0) && c->image_id &&
           strcmp(c->image_id, want->runner->image_id) == 0 &&
           (strcmp(c->sandbox_dir, want->sandbox_dir) == 0 || (!want->known && c->warm_dir[0]));
}

/* How well it serves, the smaller the better: what counts more stands in a higher digit. */
static int rank(const struct child *c, bool preloaded)
{
    int tier = c->tier == ENGINE_TIER_PRELOADED ? 2 : c->preload_asked ? 1 : 0;

    /* A program without libraries should not interrupt a preload: that would start
     * the interpreter anew. */
    static const int worth[2][3] = {{0, 2, 1}, {2, 1, 0}};
    return (c->state == CHILD_WAITING  ? 0
            : c->state == CHILD_WIPING ? 50
                                       : 100) +
           (c->warm_dir[0] ? 10 : 0) + worth[preloaded][tier];
}

/* Its conversation keeps the container and may need the libraries later: is there one with them
 * beside the last, which is for a program that needs them now? */
static bool may_take_preloaded(const struct pool *p, const struct children *children,
                               const struct pool_want *want)
{
    size_t n = 0;

    if (!p->settings.reuse || want->known)
        return false;
    for (struct child *c = NULL; (c = children_next(children, c));)
        n += c->state == CHILD_WAITING && c->tier == ENGINE_TIER_PRELOADED && fits(c, want);
    return n > 1;
}

struct child *pool_choose(struct pool *p, const struct children *children,
                          const struct pool_want *want)
{
    const bool preloaded = wants_preloaded(want) || may_take_preloaded(p, children, want);
    struct child *best = NULL;
    int best_rank = 0;

    if (want->network || p->settings.n == 0)
        return NULL;
    for (struct child *c = NULL; (c = children_next(children, c));) {
        if (!fits(c, want))
            continue;
        int r = rank(c, preloaded);
        if (!best || r < best_rank || (r == best_rank && c->born_ms < best->born_ms)) {
            best = c;
            best_rank = r;
        }
    }
    return best;
}

bool pool_reuses(struct pool *p, const struct engine_runner *runner)
{
    return p->settings.reuse && pool_image_of(p, runner->language);
}

bool pool_may_reuse(struct pool *p, const struct child *c, int64_t now_ms)
{
    return may_serve_again(p, c) && now_ms - c->born_ms < POOL_AGE_MS;
}

bool pool_may_start(const struct pool *p, const struct children *children)
{
    size_t starting = 0;

    for (struct child *c = NULL; (c = children_next(children, c));)
        starting += c->kind == CHILD_SUPERVISOR && c->state == CHILD_STARTING;
    return starting < p->settings.starts_max;
}

void pool_note_claim(struct pool *p, const struct pool_want *want, int64_t now_ms)
{
    struct pool_image *image = pool_image_of(p, want->runner->language);

    p->last_claim_ms = p->called_ms = now_ms;
    if (!image || want->network)
        return;
    struct pool_sandbox *sandbox = sandbox_of(p, want->sandbox_dir, image);
    sandbox->preloaded = wants_preloaded(want) || (p->settings.reuse && sandbox->preloaded);
    sandbox->used_ms = now_ms;
}

void pool_note_end(struct pool *p, const struct child *child, int64_t now_ms)
{
    struct pool_image *image = pool_image_of(p, child->language);

    p->last_end_ms = p->called_ms = now_ms;
    if (!image || child->network || !child->sandbox_dir[0])
        return;
    struct pool_sandbox *sandbox = sandbox_of(p, child->sandbox_dir, image);
    sandbox->from_ms = sandbox->used_ms = now_ms;
}

void pool_note_doubt(struct pool *p)
{
    p->doubted++;
}

void pool_note_upload(struct pool *p, const char *name, int64_t now_ms)
{
    struct pool_image *image = NULL;

    for (size_t i = 0; !image && i < p->settings.n; i++)
        image = pool_image_of(p, p->settings.items[i].language);
    for (size_t i = 0; i < p->n_sandboxes; i++)
        if (strcmp(p->sandboxes[i].name, name) == 0)
            return;
    if (!image)
        return;
    struct pool_sandbox *sandbox = sandbox_of(p, name, image);
    sandbox->used_ms = now_ms;
    sandbox->from_ms = now_ms + UPLOAD_MS;
}

void pool_note_failed_start(struct pool *p, const char *language, int64_t now_ms)
{
    struct pool_image *image = pool_image_of(p, language);

    /* Several at once have one cause. */
    if (!image || now_ms < image->retry_ms)
        return;
    if (image->back_off_ms == 0 || now_ms - image->retry_ms > BACK_OFF_MAX_MS)
        image->back_off_ms = BACK_OFF_MS;
    else if (image->back_off_ms < BACK_OFF_MAX_MS / 2)
        image->back_off_ms *= 2;
    else
        image->back_off_ms = BACK_OFF_MAX_MS;
    image->retry_ms = now_ms + image->back_off_ms;
}

void pool_note_warm(struct pool *p, const struct child *c)
{
    struct pool_image *image = pool_image_of(p, c->language);

    if (!image || c->memory_bytes == 0)
        return;
    uint64_t *most = c->tier == ENGINE_TIER_PRELOADED ? &image->preloaded_bytes
                                                      : &image->started_bytes;
    if (*most < c->memory_bytes + POOL_BESIDE_BYTES)
        *most = c->memory_bytes + POOL_BESIDE_BYTES;
}

/* ---- what it tells ---- */

static json_t *image_languages(const struct pool *p, const struct engine_runner *of)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->runners->n; i++)
        if (strcmp(p->runners->items[i].image_id, of->image_id) == 0)
            json_array_append_new(list, json_string(p->runners->items[i].language));
    return list;
}

static json_t *image_status(const struct pool *p, const struct pool_image *image,
                            const struct children *children, int64_t now_ms)
{
    size_t starting = 0, started = 0, preloaded = 0;
    int64_t oldest = 0;

    for (struct child *c = NULL; (c = children_next(children, c));) {
        if (!child_is_warm(c) || c->pool_image != image)
            continue;
        if (c->state != CHILD_WAITING) {
            starting += c->state == CHILD_STARTING;
            continue;
        }
        *(c->tier == ENGINE_TIER_PRELOADED ? &preloaded : &started) += 1;
        if (now_ms - c->born_ms > oldest)
            oldest = now_ms - c->born_ms;
    }
    return json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "image", image->runner->image,
                     "languages", image_languages(p, image->runner), "places",
                     (json_int_t)pool_places(p, image, now_ms, true), "starting",
                     (json_int_t)starting, "started", (json_int_t)started, "preloaded",
                     (json_int_t)preloaded, "oldestMs", (json_int_t)oldest);
}

static const char *const tier_names[] = {[ENGINE_TIER_NONE] = "none",
                                         [ENGINE_TIER_STARTED] = "started",
                                         [ENGINE_TIER_PRELOADED] = "preloaded"};

static json_t *waiting_status(const struct children *children, int64_t now_ms)
{
    json_t *list = json_array();

    for (struct child *c = NULL; (c = children_next(children, c));) {
        if (child_is_warm(c))
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "runId", c->run_id,
                                "containerId", c->container_id, "image",
                                c->pool_image ? c->pool_image->runner->image : "", "tier",
                                tier_names[c->state == CHILD_WAITING ? c->tier : ENGINE_TIER_NONE],
                                "sandbox", c->sandbox_dir, "ageMs",
                                (json_int_t)(now_ms - c->born_ms), "memoryBytes",
                                (json_int_t)pool_bytes_of(c), "runs", (json_int_t)c->runs));
    }
    return list;
}

json_t *pool_status(struct pool *p, const struct children *children, int64_t now_ms)
{
    struct pool_count count;
    size_t on_sandboxes = 0;
    json_t *images = json_array();

    pool_count(p, children, &count);
    for (size_t i = 0; i < p->n_sandboxes; i++)
        on_sandboxes += p->sandboxes[i].have;
    for (size_t i = 0; i < p->settings.n; i++)
        if (p->images[i].runner)
            json_array_append_new(images, image_status(p, &p->images[i], children, now_ms));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:o, s:o}", "budgetBytes",
                     (json_int_t)p->settings.memory_bytes, "usedBytes", (json_int_t)count.used,
                     "startsMax", (json_int_t)p->settings.starts_max, "starting",
                     (json_int_t)count.starting, "conversations", (json_int_t)on_sandboxes, "reuse",
                     p->settings.reuse && p->settings.n > 0, "doubted", (json_int_t)p->doubted,
                     "images", images, "waiting", waiting_status(children, now_ms));
}
