/* What the pool remembers, and what it counts among the children. Private to pool*.c. */
#pragma once

#include "common/scheduler/children.h"
#include "common/scheduler/pool_settings.h"

/* Assumed memory of a warm container until one of its language was measured: an interpreter, and
 * one with its libraries. */
#define POOL_STARTED_BYTES   (16ull * 1024 * 1024)
#define POOL_PRELOADED_BYTES (96ull * 1024 * 1024)
/* Memory of the engine for each container, which the container's count does not include. */
#define POOL_BESIDE_BYTES (8ull * 1024 * 1024)

#define POOL_AGE_MS   3600000 /* of a container */
#define POOL_RUNS_MAX 1000    /* in a container */

#define POOL_NEVER         (INT64_MIN / 2)          /* before all other times */
#define POOL_SANDBOXES_MAX 256                      /* conversations remembered */
#define POOL_INDEX         (4 * POOL_SANDBOXES_MAX) /* a power of two */

/* Places added by runs that found no warm container. */
struct pool_extra {
    size_t n;
    int64_t changed_ms;
};

/* One language of the settings: containers on warm directories. */
struct pool_lang {
    struct pool_language setting;
    struct pool_extra extra;
    int64_t used_ms;
    int64_t back_off_ms;    /* after the latest failure */
    int64_t retry_ms;       /* nothing is started before */
    size_t have, preloaded; /* counted by pool_count: all on warm directories, and the preloaded */
    size_t begun, joined;   /* of the latest conversations: they began with it, or took it as a
                             * further language */
    uint64_t started_bytes, preloaded_bytes; /* the most that one was seen to use; 0: none said */
};

/* A conversation that ran something lately: containers on its directory, for one language. */
struct pool_sandbox {
    char name[SANDBOX_NAME_LEN + 1];
    struct pool_lang *lang; /* of the language */
    struct pool_extra extra;
    int64_t used_ms;
    bool ended;     /* a program of it is over, or it got a file: it may want a next one. Or one in
                     * another language is, and many conversations take this one, too */
    bool used;      /* it ran a program in this language */
    bool expected;  /* it did not, but many others did: no container ends to make room for this */
    bool proven;    /* it was used again: it is likely to be once more */
    bool preloaded; /* its last program wanted a library that can be preloaded, or one before it
                     * whose container still serves */
    size_t have;    /* counted by pool_count: containers that wait, or will */
    size_t busy;    /* the same: those that run and may be used again */
};

/* Counted among the children. */
struct pool_count {
    size_t starting;  /* for runs or as warm ones */
    size_t running;   /* runs that are not over, in whatever state their containers are */
    size_t callers;   /* runs whose container is being made */
    size_t loading;   /* containers that load libraries */
    uint64_t used;    /* bytes of all warm ones */
    uint64_t leaving; /* the part of it that has been released */
};

struct pool {
    struct pool_settings settings;
    struct pool_lang langs[POOL_LANGUAGES_MAX];
    struct pool_sandbox *sandboxes;
    size_t n_sandboxes, max_sandboxes;
    size_t begun; /* all that began lately */
    uint16_t
        index[POOL_INDEX]; /* where a sandbox_dir is, from 1; 0: none. Made anew by pool_count */
    int64_t last_claim_ms, last_end_ms; /* of runs */
    int64_t last_guess_ms; /* when a container was last started for a conversation used once */
    int64_t last_load_ms;  /* when one was last told to load its libraries */
    uint64_t doubted;      /* used containers that could not be wiped */
};

struct pool_lang *pool_lang_of(struct pool *p, const char *language);
/* The record of that conversation and language, made when there is none: the one used longest ago
 * goes when there are too many. */
struct pool_sandbox *pool_sandbox_of(struct pool *p, const char *name, struct pool_lang *lang);
void pool_sandbox_drop(struct pool *p, struct pool_sandbox *sandbox);

/* The record of the conversation whose directory the child sits on; NULL: none. By an index, which
 * pool_count makes: it is asked for each child several times. */
struct pool_sandbox *pool_sandbox_of_child(struct pool *p, const struct child *child);
/* The usual memory of a container of this language. */
uint64_t pool_usual_bytes(const struct pool_lang *lang, bool preloaded);

/* Counts the children into *out and into langs and sandboxes. */
void pool_count(struct pool *p, const struct children *children, struct pool_count *out);
/* Its memory; if not measured, the usual of its language. */
uint64_t pool_bytes_of(struct pool *p, const struct child *child);
