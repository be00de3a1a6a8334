/*
 * Reading back: before a call for a conversation whose files are not here, or may be older than the
 * store's, a helper asks the store (common/store/load.h). The call is held meanwhile (dispatch.c).
 * One helper serves all calls of a conversation; READBACK_MAX work at once.
 *
 * Files that are here may be older when another node has had the conversation: with a name
 * (SANDCGI_NODE) the store is asked at the first use after the server's start, and after a pause.
 */
#pragma once

#include "common/broker/prune.h"
#include "common/broker/spawn.h"
#include "common/protocol/ops.h"

#define READBACK_MAX 8

struct asking;

struct readback {
    const struct spawner *spawner; /* borrowed */
    struct prune *prune;
    int64_t began; /* Unix seconds */
    struct asking *first;
    /* All calls for the conversation may begin; why->kind says that they must be refused. */
    void (*done)(void *ctx, const char *sandbox_dir, const struct err *why);
    void *ctx;
};

void readback_init(struct readback *r, const struct spawner *spawner, struct prune *prune,
                   void (*done)(void *ctx, const char *sandbox_dir, const struct err *why),
                   void *ctx);

/* Must the store be asked before this call? The sandbox's name then. */
bool readback_wants(const struct readback *r, const json_t *head,
                    char sandbox_dir[SANDBOX_NAME_LEN + 1]);
/* Asks it, unless that is under way. done is called later. */
void readback_ask(struct readback *r, const char *sandbox_dir);
bool readback_is_asking(const struct readback *r, const char *sandbox_dir);

void readback_tick(struct readback *r);
/* Ends the helpers. */
void readback_clear(struct readback *r);
