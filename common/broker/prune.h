/*
 * Conversations that are removed: because their owner says so (OP_DELETE_CONVERSATION), or because
 * what is kept has passed its bounds. The main process decides and renames, since it knows what is
 * in use; helpers find what has expired, and empty .trash.
 *
 * On the main process's time: an owner's deletion, and each conversation that has expired, cost a
 * rename and up to 15 system calls on records, which must be one step with it, or the next run of
 * the conversation would lose its record. Expired ones come in messages of their own, so that
 * callers are served between two of them.
 */
#pragma once

#include "common/broker/spawn.h"
#include "common/broker/warm_pool.h"
#include "common/scheduler/run_queue.h"

struct prune {
    const struct spawner *spawner; /* borrowed, as the next */
    struct warm_pool *warm_pool;
    const struct run_queue *queue;
    struct helper finder;  /* finds what has expired, now and then */
    struct helper emptier; /* of .trash; one at a time, however much is deleted */
    struct deadline next;  /* when to find again; never: it is at work */
    size_t n_expired;      /* by the finder that is at work */
    bool trash;            /* something is in .trash that nothing removes yet */
};

void prune_init(struct prune *p, const struct spawner *spawner, struct warm_pool *warm_pool,
                const struct run_queue *queue);
void prune_tick(struct prune *p);

/* Ends the helpers. */
void prune_end(struct prune *p);
/* A job or helper has ended. */
void prune_reap(struct prune *p, const struct child *child);

/* Moves the conversation that head names to .staging, where nothing removes it while it is counted.
 * The head of the job that does, moves it to .trash and answers; new reference, or NULL. */
json_t *prune_conversation(struct prune *p, const json_t *head, struct err *e);
/* Puts the folder staged of .staging in the place of a conversation's files, which go to .trash.
 * ERR_BUSY: they are in use; staged goes to .trash then, too. */
int prune_replace(struct prune *p, const char *sandbox_dir, const char *staged, struct err *e);
/* Exchanges the files of the conversation that head names with its folder "staged" of .staging:
 * for a restore, which keeps what was there until it has succeeded. */
int prune_exchange(struct prune *p, const json_t *head, struct err *e);
