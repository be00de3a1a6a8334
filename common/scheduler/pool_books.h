/* What the pool remembers, and what it counts among the children. Private to pool*.c. */
#pragma once

#include "common/scheduler/children.h"
#include "common/scheduler/pool_settings.h"

/* Assumed memory of a warm container until one of its image was measured: an interpreter, and one
 * with its libraries. */
#define POOL_STARTED_BYTES   (16ull * 1024 * 1024)
#define POOL_PRELOADED_BYTES (96ull * 1024 * 1024)
/* Memory of the engine for each container, which the container's count does not include. */
#define POOL_BESIDE_BYTES (8ull * 1024 * 1024)

#define POOL_AGE_MS   3600000 /* of a container */
#define POOL_RUNS_MAX 1000    /* in a container */

/* Memory at rest. SANDBOX_WARM_IDLE is the time of a conversation's container. */
#define POOL_LIBRARIES_MS 600000 /* since its conversation's last use: one with libraries goes */
#define POOL_CALLS_MS     900000 /* since any call: all go but those that are to wait at once */
#define POOL_FURTHER_MS   10000  /* unused: a conversation's further container goes */

#define POOL_AUTO_AT_ONCE 2 /* of SANDBOX_WARM=auto */

#define POOL_NEVER         (INT64_MIN / 2) /* before all other times */
#define POOL_SANDBOXES_MAX 256             /* conversations remembered */

/* An image with languages of the settings; its place is that of the first of them. */
struct pool_image {
    int64_t back_off_ms;                     /* after the latest failure */
    int64_t retry_ms;                        /* nothing is started before */
    uint64_t started_bytes, preloaded_bytes; /* the most that one was seen to use; 0: none said */
    /* Counted by pool_count. */
    const struct engine_runner *runner; /* the one that is started; NULL: there is no such image */
    size_t n;                           /* containers that SANDBOX_WARM wants */
    size_t have, preloaded;             /* all on warm directories, and the preloaded */
    size_t serving;                     /* all on conversations' */
};

/* A conversation that ran something lately: containers on its directory, of one image. */
struct pool_sandbox {
    char name[SANDBOX_NAME_LEN + 1];
    struct pool_image *image;
    int64_t used_ms;
    int64_t from_ms; /* it may have a next container; 0: not before its program is over */
    bool preloaded;  /* its last program wanted a library that can be preloaded, or one before it
                      * whose container still serves */
    size_t have;     /* counted by pool_count: containers that wait, or will */
    size_t busy;     /* the same: those that run and may be used again */
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
    const struct engine_runners *runners;
    struct pool_image images[POOL_LANGUAGES_MAX];
    struct pool_sandbox *sandboxes;
    size_t n_sandboxes, max_sandboxes;
    int64_t last_claim_ms, last_end_ms; /* of runs */
    int64_t called_ms;                  /* the latest of both, or the first look; 0: none */
    int64_t last_load_ms;               /* when one was last told to load its libraries */
    uint64_t doubted;                   /* used containers that could not be wiped */
};

/* The image of that language; NULL: none waits of it. */
struct pool_image *pool_image_of(struct pool *p, const char *language);
/* How many are to wait for new conversations: at once, or all, once the machine is idle. */
size_t pool_places(const struct pool *p, const struct pool_image *image, int64_t now_ms, bool all);
void pool_sandbox_drop(struct pool *p, struct pool_sandbox *sandbox);
/* The usual memory of a container of this image. */
uint64_t pool_usual_bytes(const struct pool_image *image, bool preloaded);

/* Counts the children into *out and into images and sandboxes, and notes both in their rows. */
void pool_count(struct pool *p, const struct children *children, struct pool_count *out);
/* Its memory; if not measured, the usual of its image. */
uint64_t pool_bytes_of(const struct child *child);
