/*
 * What happens to the pool, and what there is to be then, as the words of a text. L is a language,
 * C a conversation:
 *
 *   reuse, memory:S:P                   settings, before all else; room for S containers, and for P
 *                                       with libraries
 *   none, only:L:N, also:L:N, auto:L:N  languages, and their places
 *   busy, idle, queued:N                the machine; calls that wait
 *   run:L:C:new, …:known:LIBRARY        a run of 5 ms, what it imports, and its answer
 *   begin:…, serve:…                    one that goes on; one of 1 s, whose container is kept
 *   upload:C, forget:C                  a file for a conversation; its end
 *   rest, up                            until all is there; what was begun is done
 *   settle, settle:N                    all that is to be done; so many actions
 *   +MS, +young, @MS                    the clock: by so much, by POOL_YOUNG_MS, from the last end
 *   until+MS, until+young, until@MS     nothing is to be done before that time, which comes
 *   nothing, later, soon, never         nothing now; but some time, within a second, not at all
 *   next:start, next:load:X:fast        the next action; X: L or C; "paced", or nothing
 *   chosen:L:C:new, …:known             a container is there for such a run
 *   KIND=N                              so many unclaimed containers: of L's image (on warm
 *                                       directories), C, warm, all, ended; loaded:KIND: with
 *                                       libraries
 */
#pragma once

#include "tests/unit/scheduler/pool_world.h"

#include "common/base/parse.h"
#include "common/rpc/json.h"

/* After a run its answer is on its way by then, and containers may start. */
#define ANSWERED_MS 20

enum { NEW, KNOWN }; /* a conversation: known of world_want */

static inline struct child *run_what(struct world *w, const struct pool_want *want)
{
    struct child *c = world_claim(w, want);

    world_run(w, c);
    return c;
}

/* The container of a run in what is chosen for it. */
static inline struct child *run(struct world *w, const char *language, const char *sandbox_dir,
                                bool known)
{
    const struct pool_want want = world_want(w, language, sandbox_dir, known);

    return run_what(w, &want);
}

/* It is wiped after a run of 1 s. */
static inline struct child *kept(struct world *w, struct child *c)
{
    w->now += 1000;
    assert_true(world_keep(w, c));
    return c;
}

static inline struct child *chosen(struct world *w, const struct pool_want *want)
{
    return pool_choose(w->pool, w->children, want);
}

static inline struct child *chosen_for(struct world *w, const char *language,
                                       const char *sandbox_dir, bool known)
{
    const struct pool_want want = world_want(w, language, sandbox_dir, known);

    return chosen(w, &want);
}

/* ---- the words; a: what stands between colons, "" where nothing does ---- */

static inline bool script_is(const char *word, const char *name)
{
    return strcmp(word, name) == 0;
}

static inline int script_number(const char *text)
{
    uint64_t n = 0;

    if (*text && parse_u64(text, 0, INT_MAX, &n) < 0)
        fail_msg("no number: %s", text);
    return (int)n;
}

static inline void script_add_language(struct world *w, char **a)
{
    struct pool_language *l = &w->settings.items[w->settings.n++];

    *l = (struct pool_language){.n = (size_t)script_number(a[1])};
    snprintf(l->language, sizeof(l->language), "%s", a[0]);
}

static inline bool script_set(struct world *w, const char *word, char **a)
{
    if (script_is(word, "none") || script_is(word, "only") || script_is(word, "auto"))
        w->settings.n = 0;
    w->settings.automatic |= script_is(word, "auto");
    if (script_is(word, "only") || script_is(word, "also") || script_is(word, "auto"))
        script_add_language(w, a);
    else if (script_is(word, "reuse"))
        w->settings.reuse = true;
    else if (script_is(word, "memory"))
        w->settings.memory_bytes = (unsigned long long)script_number(a[0]) * POOL_STARTED_BYTES +
                                   (unsigned long long)script_number(a[1]) * POOL_PRELOADED_BYTES;
    else
        return script_is(word, "none");
    return true;
}

static inline struct child *script_begin(struct world *w, char **a)
{
    json_auto_t *imports = json_pack("[s]", a[3]);
    struct pool_want want = world_want(w, a[0], a[1], script_is(a[2], "known"));

    want.imports = imports;
    return run_what(w, &want);
}

static inline void script_run(struct world *w, char **a)
{
    struct child *c = script_begin(w, a);

    w->now += 5;
    world_end(w, c);
    w->now += ANSWERED_MS;
}

static inline bool script_do(struct world *w, const char *word, char **a)
{
    if (script_is(word, "busy") || script_is(word, "idle"))
        w->idle = script_is(word, "idle");
    else if (script_is(word, "queued"))
        w->waiting = (size_t)script_number(a[0]);
    else if (script_is(word, "run"))
        script_run(w, a);
    else if (script_is(word, "begin"))
        script_begin(w, a);
    else if (script_is(word, "serve"))
        kept(w, script_begin(w, a));
    else if (script_is(word, "upload"))
        pool_note_upload(w->pool, a[0], w->now);
    else if (script_is(word, "forget"))
        pool_forget_sandbox(w->pool, a[0]);
    else if (script_is(word, "rest"))
        world_rest(w);
    else if (script_is(word, "up"))
        while (world_catch_up(w) > 0)
            ;
    else
        return false;
    return true;
}

/* "+250", "+young", "@250". */
static inline int64_t script_time(const struct world *w, const char *text)
{
    return (*text == '@' ? w->pool->last_end_ms : w->now) +
           (script_is(text, "+young") ? POOL_YOUNG_MS : script_number(text + 1));
}

static inline bool script_is_nothing_until(struct world *w, int64_t at_ms)
{
    struct pool_action action;
    const bool right = !world_ask(w, &action) && w->again == at_ms;

    w->now = at_ms - 1;
    const bool still = !world_ask(w, &action);
    w->now = at_ms;
    return right && still;
}

static inline bool script_is_next(struct world *w, char **a)
{
    struct pool_action next;

    if (!world_ask(w, &next) || script_is(a[0], "start") != (next.what == POOL_START_ON_WARM_DIR))
        return false;
    return script_is(a[0], "start") ||
           (next.what == POOL_PRELOAD &&
            (script_is(a[1], next.child->language) || script_is(a[1], next.child->sandbox_dir)) &&
            (!a[2][0] || next.fast == script_is(a[2], "fast")));
}

static inline int script_count(const struct world *w, const char *kind)
{
    struct world_filter f = WORLD_ANY;

    if (strncmp(kind, "loaded:", 7) == 0) {
        f.tier = ENGINE_TIER_PRELOADED;
        kind += 7;
    }
    if (pool_image_of(w->pool, kind))
        f.language = kind;
    if (script_is(kind, "ended"))
        f.state = CHILD_ENDED;
    else if (!script_is(kind, "all"))
        f.sandbox_dir = f.language || script_is(kind, "warm") ? "" : kind;
    return world_count(w, f);
}

static inline bool script_holds(struct world *w, const char *word, char **a)
{
    struct pool_action action;

    if (script_is(word, "next"))
        return script_is_next(w, a);
    if (script_is(word, "chosen"))
        return chosen_for(w, a[0], a[1], script_is(a[2], "known"));
    if (script_is(word, "settle"))
        return world_settle(w) == script_number(a[0]) || !a[0][0];
    const bool nothing = !world_ask(w, &action);
    return nothing && (script_is(word, "nothing") || (script_is(word, "never") && w->again == -1) ||
                       (script_is(word, "later") && w->again > w->now) ||
                       (script_is(word, "soon") && w->again > w->now && w->again <= w->now + 1000));
}

static inline bool script_step(struct world *w, char *word)
{
    char none[] = "", *a[4] = {none, none, none, none}, *rest = strchr(word, '=');

    if (!rest) {
        strtok_r(word, ":", &rest);
        for (size_t i = 0; i < ARRAY_LEN(a) && *rest; i++)
            a[i] = strtok_r(NULL, ":", &rest);
        if (script_set(w, word, a))
            return !w->pool; /* which has copied them */
    }
    if (!w->pool)
        world_begin(w);
    if (*rest == '=') {
        *rest = '\0';
        return script_count(w, word) == script_number(rest + 1);
    }
    if (strncmp(word, "until", 5) == 0)
        return script_is_nothing_until(w, script_time(w, word + 5));
    if (*word == '+' || *word == '@')
        w->now = script_time(w, word);
    return *word == '+' || *word == '@' || script_do(w, word, a) || script_holds(w, word, a);
}

/* Words with blanks between, all of which must hold. */
static inline void play(struct world *w, const char *script)
{
    char text[1024], *save;

    assert_true(snprintf(text, sizeof(text), "%s", script) < (int)sizeof(text));
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char name[64];
        snprintf(name, sizeof(name), "%s", word);
        if (!script_step(w, word))
            fail_msg("%s does not hold, of: %s", name, script);
    }
}
