/*
 * The worker's side of the broker's socket. One connection per call; calls block, but notice when a
 * descriptor of their caller hangs up (-1: none): the call then ends with ERR_CANCELLED. cancel_fd
 * says that what was asked for is not wanted any more: a run that this call began is ended.
 * leave_fd says that nobody waits here any more: the run goes on, and its result is kept.
 */
#ifndef SANDCGI_PROTOCOL_CLIENT_RUNS_H
#define SANDCGI_PROTOCOL_CLIENT_RUNS_H

#include "common/base/fds.h"
#include "common/protocol/run.h"

#include <sys/stat.h>

struct broker_client {
    const char *path; /* of the broker's socket; borrowed */
    int cancel_fd;
    int leave_fd;
    int64_t limit_ms; /* the call ends with ERR_TIMEOUT then; 0: it lasts as long as it takes */
    /* Called when the call begins to wait and every tick_ms from then on; NULL: nobody wants to
     * know. */
    void (*tick)(void *ctx);
    void *tick_ctx;
    int tick_ms;
};

enum broker_live_kind {
    BROKER_LIVE_STDOUT,
    BROKER_LIVE_STDERR,
    BROKER_LIVE_SKIPPED, /* output that came too fast to be told: skipped bytes of it */
};

/* A piece of a run's output while it goes on: whole lines (or what has waited for its line's end),
 * valid UTF-8. Borrowed. */
struct broker_live {
    enum broker_live_kind kind;
    struct run_text text;
    uint64_t skipped;
    uint64_t next_byte; /* the combined output's bytes up to here have been told */
};

/* What comes with ERR_BUSY. */
struct broker_busy {
    uint64_t retry_after_ms; /* an estimate; 0: unknown */
    uint64_t position;       /* how many wait already */
};

/* What the caller hears before the answer; any member may be NULL. */
struct broker_callbacks {
    void (*live)(void *ctx, const struct broker_live *piece);
    void (*queued)(void *ctx, uint64_t position); /* the run has to wait for its turn; from 1 */
    void *ctx;
    struct broker_busy *busy; /* set (to zeros, too) when the call fails */
};

/* options.live and options.opened are set from the rest. Zeros, or NULL for the whole: the call
 * lasts as long as the run. */
struct broker_run_options {
    struct run_options options;
    struct broker_callbacks callbacks;
    struct fds *opened; /* NULL, or empty: gets the first of the answer's files that have a url,
                           opened for reading, in their order; perhaps none */
};

/*
 * Runs a program. The answer is the run's result as an object with run_code's result fields (see
 * tools/run_code.c's output schema), built by the broker: success, status, exitCode, signal,
 * stdout, stderr, output, truncation…, files[{name,size,url,change}] without mimeType, which the
 * worker adds, runId, queueMs, and expiresAt when it is kept. With waitMs or background its status
 * may be "running": exitCode and signal are null, the output is what came so far, and nextByte says
 * where to go on with broker_get_run. With session it also has sandboxId, sessionStarted (its
 * variables are new) and stateLost (they, or those of the calls before, are gone), and sessionNote
 * where that has to be said. New reference, or NULL with *e (kinds as the broker gave
 * them: INVALID, NOT_FOUND, UNAVAILABLE, IO, BUSY, LOST…; CANCELLED: its caller hung up).
 */
json_t *broker_run(const struct broker_client *c, const struct run_request *request,
                   const struct broker_run_options *options, struct err *e);

struct broker_poll_options {
    bool since_given;
    uint64_t since_byte; /* newOutput: the combined output from there on */
    uint64_t wait_ms;    /* 0: answers at once; else when there is something new, or by then */
    struct broker_callbacks callbacks;
};

/* A run of before: its result so far or at its end, as broker_run's, with newOutput and nextByte
 * when since_given. ERR_NOT_FOUND, in one text, for every run that is not this tenant's. */
json_t *broker_get_run(const struct broker_client *c, const char *tenant, const char *run_id,
                       const struct broker_poll_options *look, struct err *e);

/* Ends a run; answers its result as broker_get_run. A run that has ended already stays as it is. */
json_t *broker_cancel_run(const struct broker_client *c, const char *tenant, const char *run_id,
                          struct err *e);

/* The tenant's runs, of one conversation or (NULL) of all, the newest first: {"runs":[{runId,
 * conversationId, language, status, createdAt, endedAt?, expiresAt?}]}. */
json_t *broker_list_runs(const struct broker_client *c, const char *tenant,
                         const char *conversation, struct err *e);

/* How the broker is (job.c says what is in it): for the operator, not for clients. */
json_t *broker_status(const struct broker_client *c, struct err *e);

/* Stores size bytes of fd (from offset 0) as name; the answer is {name, size, url}. Without replace
 * ERR_EXISTS when something is there. */
json_t *broker_put_file(const struct broker_client *c, const char *tenant, const char *conversation,
                        const char *name, int fd, size_t size, bool replace, struct err *e);

/* Opens a file of a sandbox for reading; returns the descriptor, or -1. */
int broker_open_file(const struct broker_client *c, const char *tenant, const char *conversation,
                     const char *name, struct stat *out, struct err *e);

#define BROKER_LIST_MAX 1000 /* files of one page, names of one answer */

/*
 * One page of the files of a tenant's sandboxes: {"files":[{conversationId, name, size, modified
 * (Unix seconds)}], "next"?: …}. after is the "next" of the page before (checked: clients bring it
 * back), NULL: the first. The newest sandbox comes first, its files by name; an order that does not
 * change between pages. A page may be short and still have a next. New reference, or NULL.
 */
json_t *broker_list_files(const struct broker_client *c, const char *tenant, const json_t *after,
                          size_t max, struct err *e);

/*
 * Up to max names that begin with prefix, as an array of strings: of the tenant's conversations
 * (conversation NULL), the newest first, or of one conversation's files. New reference, or NULL.
 */
json_t *broker_names(const struct broker_client *c, const char *tenant, const char *conversation,
                     const char *prefix, size_t max, struct err *e);

/* [{language, image, version, libraries:[{name,version}], protocol}], sorted by language. */
json_t *broker_runners(const struct broker_client *c, struct err *e);

/* Is somebody there? 0 or -1. */
int broker_ping(const struct broker_client *c, struct err *e);

#endif
