#include "config.h"

#include "common/scheduler/pool.h"

#include "common/base/mem.h"
#include "common/scheduler/pool_books.h"

#include <string.h>

#define BACK_OFF_MS     1000  /* after a first failure */
#define BACK_OFF_MAX_MS 60000 /* and at most; failures further apart are not of one cause */
#define SOON_MS         2000  /* a conversation that misses after less calls faster than we start */
#define LATELY          64    /* conversations: with so many, older ones count half */
#define JOINED_SHARE    4     /* a language that one of so many took as a further one is expected */

/* ---- what is remembered and counted (pool_books.h) ---- */

struct pool_lang *pool_lang_of(struct pool *p, const char *language)
{
    for (size_t i = 0; i < p->settings.n; i++)
        if (strcmp(p->langs[i].setting.language, language) == 0)
            return &p->langs[i];
    return NULL;
}

void pool_sandbox_drop(struct pool *p, struct pool_sandbox *sandbox)
{
    *sandbox = p->sandboxes[--p->n_sandboxes];
}

static struct pool_sandbox *find_sandbox(struct pool *p, const char *name,
                                         const struct pool_lang *lang)
{
    for (size_t i = 0; i < p->n_sandboxes; i++)
        if (p->sandboxes[i].lang == lang && strcmp(p->sandboxes[i].name, name) == 0)
            return &p->sandboxes[i];
    return NULL;
}

struct pool_sandbox *pool_sandbox_of(struct pool *p, const char *name, struct pool_lang *lang)
{
    struct pool_sandbox *oldest = &p->sandboxes[0], *found = find_sandbox(p, name, lang);

    if (found)
        return found;
    for (size_t i = 0; i < p->n_sandboxes; i++)
        if (p->sandboxes[i].used_ms < oldest->used_ms)
            oldest = &p->sandboxes[i];
    if (p->n_sandboxes == p->max_sandboxes)
        pool_sandbox_drop(p, oldest);
    struct pool_sandbox *sandbox = &p->sandboxes[p->n_sandboxes++];
    *sandbox = (struct pool_sandbox){.lang = lang};
    memcpy(sandbox->name, name, strnlen(name, SANDBOX_NAME_LEN));
    return sandbox;
}

uint64_t pool_usual_bytes(const struct pool_lang *lang, bool preloaded)
{
    const uint64_t seen = !lang ? 0 : preloaded ? lang->preloaded_bytes : lang->started_bytes;

    return seen ? seen : preloaded ? POOL_PRELOADED_BYTES : POOL_STARTED_BYTES;
}

uint64_t pool_bytes_of(struct pool *p, const struct child *c)
{
    const bool preloaded = c->tier == ENGINE_TIER_PRELOADED || c->preload_asked;
    const bool measured = c->memory_bytes > 0 && (c->tier == ENGINE_TIER_PRELOADED) == preloaded;

    return measured ? c->memory_bytes + POOL_BESIDE_BYTES
                    : pool_usual_bytes(pool_lang_of(p, c->language), preloaded);
}

/* Where the search for a name begins. Names are digests: a few of their digits tell them apart. */
static size_t index_of(const char *name)
{
    size_t h = 0;

    for (size_t i = 0; i < 8 && name[i]; i++)
        h = h * 31 + (unsigned char)name[i];
    return h % POOL_INDEX;
}

struct pool_sandbox *pool_sandbox_of_child(struct pool *p, const struct child *c)
{
    if (!c->sandbox_dir[0])
        return NULL;
    for (size_t at = index_of(c->sandbox_dir); p->index[at]; at = (at + 1) % POOL_INDEX) {
        struct pool_sandbox *sandbox = &p->sandboxes[p->index[at] - 1];
        if (strcmp(sandbox->name, c->sandbox_dir) == 0 &&
            strcmp(sandbox->lang->setting.language, c->language) == 0)
            return sandbox;
    }
    return NULL;
}

static void count_waiting(struct pool *p, const struct child *c, struct pool_count *out)
{
    struct pool_lang *lang = pool_lang_of(p, c->language);
    struct pool_sandbox *sandbox = pool_sandbox_of_child(p, c);

    if (c->preload_asked && c->tier != ENGINE_TIER_PRELOADED)
        out->loading++;
    if (sandbox)
        sandbox->have++;
    if (!lang || !c->warm_dir[0])
        return;
    lang->have++;
    if (c->preload_asked || c->tier == ENGINE_TIER_PRELOADED)
        lang->preloaded++;
}

/* An adopted one was made with other settings, or of an image that is not known. */
static bool may_serve_again(const struct pool *p, const struct child *c)
{
    return pool_settings_may_reuse(&p->settings, c->language) && c->image_id && !c->network &&
           !c->single_use && c->sandbox_dir[0] && c->runs + 1 < POOL_RUNS_MAX;
}

void pool_count(struct pool *p, const struct children *children, struct pool_count *out)
{
    *out = (struct pool_count){0};
    for (size_t i = 0; i < p->settings.n; i++)
        p->langs[i].have = p->langs[i].preloaded = 0;
    memset(p->index, 0, sizeof(p->index));
    for (size_t i = 0; i < p->n_sandboxes; i++) {
        p->sandboxes[i].have = p->sandboxes[i].busy = 0;
        size_t at = index_of(p->sandboxes[i].name);
        while (p->index[at])
            at = (at + 1) % POOL_INDEX;
        p->index[at] = (uint16_t)(i + 1);
    }
    for (struct child *c = NULL; (c = children_next(children, c));) {
        if (c->kind != CHILD_SUPERVISOR)
            continue;
        out->starting += c->state == CHILD_STARTING;
        out->running += c->claimed && c->state != CHILD_ENDED;
        out->callers += c->state == CHILD_STARTING && c->claimed;
        struct pool_sandbox *sandbox = c->claimed ? pool_sandbox_of_child(p, c) : NULL;
        if (sandbox && c->state != CHILD_ENDED && may_serve_again(p, c))
            sandbox->busy++;
        if (c->claimed)
            continue;
        out->used += pool_bytes_of(p, c);
        if (child_is_warm(c))
            count_waiting(p, c, out);
        else
            out->leaving += pool_bytes_of(p, c);
    }
}

/* ---- the pool ---- */

struct pool *pool_new(const struct pool_settings *settings)
{
    struct pool *p = mem_alloc(sizeof *p);
    uint64_t room = settings->memory_bytes / POOL_STARTED_BYTES;

    p->settings = *settings;
    p->last_claim_ms = p->last_end_ms = p->last_guess_ms = POOL_NEVER;
    for (size_t i = 0; i < settings->n; i++)
        p->langs[i].setting = settings->items[i];
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
    return child_is_warm(c) && !c->network && !(want->single_use && c->runs > 0) &&
           strcmp(c->language, want->runner->language) == 0 && c->image_id &&
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

/* Has the conversation run a program in another language? */
static bool has_other(const struct pool *p, const struct pool_sandbox *sandbox)
{
    for (size_t i = 0; i < p->n_sandboxes; i++)
        if (p->sandboxes[i].used && p->sandboxes[i].lang != sandbox->lang &&
            strcmp(p->sandboxes[i].name, sandbox->name) == 0)
            return true;
    return false;
}

/* The first program of a conversation in this language. */
static void count_language(struct pool *p, struct pool_sandbox *sandbox)
{
    sandbox->used = true;
    sandbox->expected = false;
    if (has_other(p, sandbox)) {
        sandbox->lang->joined++;
        return;
    }
    sandbox->lang->begun++;
    if (++p->begun < LATELY)
        return;
    p->begun = 0;
    for (size_t i = 0; i < p->settings.n; i++) {
        p->langs[i].joined /= 2;
        p->begun += p->langs[i].begun /= 2;
    }
}

/* A conversation that ran a program is likely to want each language that many of those that began
 * with another took as a further one. No other is forgotten for it. */
static void expect_languages(struct pool *p, const char *name, int64_t now_ms)
{
    for (size_t i = 0; i < p->settings.n; i++) {
        struct pool_lang *lang = &p->langs[i];
        if (lang->joined == 0 || lang->joined * JOINED_SHARE < p->begun - lang->begun)
            continue;
        if (!find_sandbox(p, name, lang) && p->n_sandboxes == p->max_sandboxes)
            continue;
        struct pool_sandbox *sandbox = pool_sandbox_of(p, name, lang);
        if (sandbox->used)
            continue;
        sandbox->ended = sandbox->expected = true;
        sandbox->used_ms = now_ms;
    }
}

static void add_place(const struct pool *p, struct pool_extra *extra, int64_t now_ms)
{
    if (extra->n < p->settings.starts_max)
        extra->n++;
    extra->changed_ms = now_ms;
}

void pool_note_claim(struct pool *p, const struct pool_want *want, const struct child *chosen,
                     int64_t now_ms)
{
    struct pool_lang *lang = pool_lang_of(p, want->runner->language);
    const bool missed = !chosen || chosen->state == CHILD_STARTING;

    p->last_claim_ms = now_ms;
    if (!lang || want->network)
        return;
    struct pool_sandbox *sandbox = pool_sandbox_of(p, want->sandbox_dir, lang);
    if (!want->known)
        lang->used_ms = now_ms;
    if (!sandbox->used)
        count_language(p, sandbox);
    if (missed && !want->known)
        add_place(p, &lang->extra, now_ms);
    else if (missed && sandbox->ended && now_ms - sandbox->used_ms < SOON_MS)
        add_place(p, &sandbox->extra, now_ms);
    sandbox->proven |= want->known;
    sandbox->preloaded = wants_preloaded(want) || (p->settings.reuse && sandbox->preloaded);
    sandbox->used_ms = now_ms;
}

void pool_note_end(struct pool *p, const struct child *child, int64_t now_ms)
{
    struct pool_lang *lang = pool_lang_of(p, child->language);

    p->last_end_ms = now_ms;
    if (!lang || child->network || !child->sandbox_dir[0])
        return;
    struct pool_sandbox *sandbox = pool_sandbox_of(p, child->sandbox_dir, lang);
    sandbox->ended = sandbox->used = true;
    sandbox->used_ms = now_ms;
    expect_languages(p, child->sandbox_dir, now_ms);
}

void pool_note_doubt(struct pool *p)
{
    p->doubted++;
}

void pool_note_upload(struct pool *p, const char *name, int64_t now_ms)
{
    if (p->settings.n == 0)
        return;
    for (size_t i = 0; i < p->n_sandboxes; i++)
        if (strcmp(p->sandboxes[i].name, name) == 0)
            return;
    struct pool_sandbox *sandbox = pool_sandbox_of(p, name, &p->langs[0]);
    sandbox->ended = true;
    sandbox->used_ms = now_ms;
}

void pool_note_failed_start(struct pool *p, const char *language, int64_t now_ms)
{
    struct pool_lang *lang = pool_lang_of(p, language);

    /* Several at once have one cause. */
    if (!lang || now_ms < lang->retry_ms)
        return;
    if (lang->back_off_ms == 0 || now_ms - lang->retry_ms > BACK_OFF_MAX_MS)
        lang->back_off_ms = BACK_OFF_MS;
    else if (lang->back_off_ms < BACK_OFF_MAX_MS / 2)
        lang->back_off_ms *= 2;
    else
        lang->back_off_ms = BACK_OFF_MAX_MS;
    lang->retry_ms = now_ms + lang->back_off_ms;
}

void pool_note_warm(struct pool *p, const struct child *c)
{
    struct pool_lang *lang = pool_lang_of(p, c->language);

    if (!lang || c->memory_bytes == 0)
        return;
    uint64_t *most = c->tier == ENGINE_TIER_PRELOADED ? &lang->preloaded_bytes
                                                      : &lang->started_bytes;
    if (*most < c->memory_bytes + POOL_BESIDE_BYTES)
        *most = c->memory_bytes + POOL_BESIDE_BYTES;
}

static json_t *lang_status(const struct pool_lang *lang, const struct children *children,
                           int64_t now_ms)
{
    size_t starting = 0, started = 0, preloaded = 0;
    int64_t oldest = 0;

    for (struct child *c = NULL; (c = children_next(children, c));) {
        if (!child_is_warm(c) || strcmp(c->language, lang->setting.language) != 0)
            continue;
        if (c->state != CHILD_WAITING) {
            starting += c->state == CHILD_STARTING;
            continue;
        }
        *(c->tier == ENGINE_TIER_PRELOADED ? &preloaded : &started) += 1;
        if (now_ms - c->born_ms > oldest)
            oldest = now_ms - c->born_ms;
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "language", lang->setting.language,
                     "places", (json_int_t)lang->setting.n, "spare",
                     (json_int_t)lang->setting.spare, "extra", (json_int_t)lang->extra.n,
                     "starting", (json_int_t)starting, "started", (json_int_t)started, "preloaded",
                     (json_int_t)preloaded, "oldestMs", (json_int_t)oldest);
}

static const char *const tier_names[] = {[ENGINE_TIER_NONE] = "none",
                                         [ENGINE_TIER_STARTED] = "started",
                                         [ENGINE_TIER_PRELOADED] = "preloaded"};

static json_t *waiting_status(struct pool *p, const struct children *children, int64_t now_ms)
{
    json_t *list = json_array();

    for (struct child *c = NULL; (c = children_next(children, c));)
        if (child_is_warm(c))
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "runId", c->run_id,
                                "containerId", c->container_id, "language", c->language, "tier",
                                tier_names[c->state == CHILD_WAITING ? c->tier : ENGINE_TIER_NONE],
                                "sandbox", c->sandbox_dir, "ageMs",
                                (json_int_t)(now_ms - c->born_ms), "memoryBytes",
                                (json_int_t)pool_bytes_of(p, c), "runs", (json_int_t)c->runs));
    return list;
}

json_t *pool_status(struct pool *p, const struct children *children, int64_t now_ms)
{
    struct pool_count count;
    size_t on_sandboxes = 0;
    json_t *languages = json_array();

    pool_count(p, children, &count);
    for (size_t i = 0; i < p->n_sandboxes; i++)
        on_sandboxes += p->sandboxes[i].have;
    for (size_t i = 0; i < p->settings.n; i++)
        json_array_append_new(languages, lang_status(&p->langs[i], children, now_ms));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:o, s:o}", "budgetBytes",
                     (json_int_t)p->settings.memory_bytes, "usedBytes", (json_int_t)count.used,
                     "startsMax", (json_int_t)p->settings.starts_max, "starting",
                     (json_int_t)count.starting, "conversations", (json_int_t)on_sandboxes, "reuse",
                     p->settings.reuse && p->settings.n > 0, "doubted", (json_int_t)p->doubted,
                     "languages", languages, "waiting", waiting_status(p, children, now_ms));
}
