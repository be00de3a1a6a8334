/*
 * Reading back: bringing this machine to the state of a conversation in the store. The files are
 * made in .staging, checked against their sums, and come to their place in one step.
 */
#pragma once

#include "common/sandbox/files/staging.h"
#include "common/store/save.h"

enum load_outcome {
    LOAD_NONE,    /* the store does not have the conversation */
    LOAD_SAME,    /* it has nothing newer than what is here */
    LOAD_PLACED,  /* the files were not here, and are now */
    LOAD_STAGED,  /* older ones are here: the newer ones wait in .staging, and their record beside
                     (save_record_put), for the main process to exchange them */
    LOAD_EXPIRED, /* they were last used longer than SANDBOX_TTL ago: they will be removed from the
                     store */
};

struct load_sum {
    enum load_outcome outcome;
    uint64_t files, bytes;
    char staged[STAGING_NAME_LEN + 1]; /* LOAD_STAGED */
};

/* ERR_UNAVAILABLE: the store cannot be asked; ERR_LIMIT: what it has is over the bounds of this
 * machine; ERR_INVALID or ERR_PROTOCOL: it is damaged; others: this machine's. */
int load_conversation(const struct saver *s, const char *name, struct load_sum *out, struct err *e);
