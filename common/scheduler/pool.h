/*
 * The warm containers: which one a run gets, and which are to be started, preloaded or ended.
 *
 * Plain data: the pool reads the children's rows (children.h) and the clock that it is given, and
 * returns actions, which common/broker/warm_pool.c carries out. It never blocks, forks or touches a
 * descriptor.
 *
 * A container is of an image, and serves one conversation in all languages of that. As many as
 * SANDBOX_WARM says wait on warm directories, for new conversations; a conversation that ran a
 * program gets its container back: the one that served the last run, wiped, where that may be
 * (SANDBOX_REUSE), or a new one. All of them stay within SANDBOX_WARM_MEMORY: the conversation that
 * was used longest ago loses its container first.
 */
#pragma once

#include "common/base/buf.h"
#include "common/engine/engine.h"
#include "common/sandbox/sandbox.h"
#include "common/scheduler/pool_settings.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct child;
struct children;
struct pool;

/* A program that began a shorter while ago is young: most are over by then, and have the machine
 * for themselves. */
#define POOL_YOUNG_MS 200

/* runners is what there is at each call; borrowed. */
struct pool *pool_new(const struct pool_settings *settings, const struct engine_runners *runners);
void pool_free(struct pool *p);

struct pool_want {
    const struct engine_runner *runner; /* of the run's language */
    const char *sandbox_dir;            /* name of the sandbox */
    bool known;                         /* the sandbox exists */
    bool network;                       /* run_needs_new: no warm one will do */
    bool single_use;                    /* one that has served a run will not do */
    const json_t *imports;              /* names the program imports; NULL: unknown */
};

/*
 * The warm supervisor for this run; NULL: a new one has to be forked. It has the image of the
 * runner, and is on the directory of this sandbox or, for a new sandbox, on a warm directory. A
 * container that waits comes before one that is being wiped, that before one being made; then one
 * with its libraries loaded if the program imports one of them, else one without; then the oldest.
 * A new conversation, which keeps its container, gets one with libraries in any case if several
 * wait.
 */
struct child *pool_choose(struct pool *p, const struct children *children,
                          const struct pool_want *want);

/* Does the program, which imports these names, need any that the runner can preload? Those are
 * appended to out, if it is given, with blanks between. */
bool pool_needs(const struct engine_runner *runner, const json_t *imports, struct buf *out);

/* May a container be started for a run that found none? false: starts_max are being started, and
 * one more would slow down all of them. */
bool pool_may_start(const struct pool *p, const struct children *children);

/* May containers of the runner's image serve several runs? Only where they may wait. */
bool pool_reuses(struct pool *p, const struct engine_runner *runner);
/* May the container, whose run has ended, serve the next one of its conversation? Not after 1,000
 * runs or an hour. */
bool pool_may_reuse(struct pool *p, const struct child *child, int64_t now_ms);

/* What happened. */

/* A run was given to a container. */
void pool_note_claim(struct pool *p, const struct pool_want *want, int64_t now_ms);
/* The program of a claimed supervisor is over: its conversation wants a next container. */
void pool_note_end(struct pool *p, const struct child *child, int64_t now_ms);
/* A used container was not as it had been before its run. */
void pool_note_doubt(struct pool *p);
/* A file is put into a sandbox: a program will read it, as a rule in the image of the settings'
 * first language. */
void pool_note_upload(struct pool *p, const char *sandbox_dir, int64_t now_ms);
/* A supervisor that was not claimed ended without being told to: no more of this language's image
 * for 1 s, twice as long each time it goes on, up to a minute. */
void pool_note_failed_start(struct pool *p, const char *language, int64_t now_ms);
/* The child has come as far as its tier, and its memory_bytes are known (or 0). */
void pool_note_warm(struct pool *p, const struct child *child);
/* That sandbox does not exist any more. */
void pool_forget_sandbox(struct pool *p, const char *sandbox_dir);

struct pool_now {
    int64_t now_ms; /* clock_mono_ms */
    bool engine_ok;
    bool machine_idle;      /* cpu_pressure_is_idle() */
    size_t waiting_callers; /* runs that wait for a place or a start */
};

enum pool_do {
    POOL_START_ON_WARM_DIR, /* fork one with runner's image on a new warm directory */
    POOL_START_ON_SANDBOX,  /* the same on the directory of the sandbox sandbox_dir; when that is
                        gone: only call pool_forget_sandbox */
    POOL_PRELOAD,           /* tell child, set its preload_asked */
    POOL_END,               /* close child's channel, set its state to CHILD_ENDED */
};

struct pool_action {
    enum pool_do what;
    const struct engine_runner *runner; /* for starts */
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
    struct child *child;
    bool fast; /* of POOL_PRELOAD: no run is going on, so the load need not be paced */
};

/*
 * The next thing to do now; false when there is none, *out_at_ms then is when to ask again at the
 * latest (-1: when something happened). Ask after every turn of the main loop until false; the
 * rows must show what was done before the next call: a start is a row in CHILD_STARTING.
 *
 * Nothing is started while a young program runs, unless a run waits, and nothing ended, unless all
 * are over the budget. No more than starts_max are started at once, for runs or as warm ones;
 * nothing while the engine is away, or an image backs off. Those for new conversations come first.
 * Of SANDBOX_WARM=auto, all beyond two are made one at a time while the machine is idle, and
 * conversations' containers count as some of these. Libraries are loaded one container at a time:
 * for conversations whose programs imported them, the one used last before the others, as soon as
 * no program is young; for new conversations while the machine is idle, and one container of an
 * image stays without. After an hour, or when the image is another, a container is replaced.
 */
bool pool_next(struct pool *p, const struct children *children, const struct pool_now *now,
               struct pool_action *out, int64_t *out_at_ms);

/*
 * {"budgetBytes", "usedBytes", "startsMax", "starting", "conversations", "reuse", "doubted",
 * "images": [{"image", "languages": […], "places", "starting", "started", "preloaded",
 * "oldestMs"}], "waiting": [{"runId", "containerId", "image", "tier", "sandbox", "ageMs",
 * "memoryBytes", "runs"}]}: doubted counts used containers that could not be wiped since the start;
 * conversations counts containers on known conversations' directories, the numbers of an image are
 * of both kinds, places are those for new conversations, oldestMs is of the longest wait (0: none).
 * waiting has a row for each container that no run has claimed: tier is "none" while it is being
 * made, "started", or "preloaded" with its libraries; sandbox the sandbox's name, "" on a warm
 * directory; runId is that of its next run, containerId the container's label; memoryBytes as it
 * counts against the budget; runs how many it has served.
 */
json_t *pool_status(struct pool *p, const struct children *children, int64_t now_ms);
