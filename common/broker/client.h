/*
 * The worker's side of the broker's socket. One connection per call; calls block, but notice when
 * cancel_fd (the web server's connection, -1: none) becomes readable or hangs up: the connection to
 * the broker is then closed, which kills the run, and the call ends with ERR_CANCELLED.
 */
#ifndef SANDCGI_BROKER_CLIENT_H
#define SANDCGI_BROKER_CLIENT_H

#include "common/broker/run.h"

#include <sys/stat.h>

struct broker_client {
    const char *path; /* of the broker's socket; borrowed */
    int cancel_fd;
    /* Called when the call begins to wait and every tick_ms from then on; NULL: nobody wants to
     * know. */
    void (*tick)(void *ctx);
    void *tick_ctx;
    int tick_ms;
};

/*
 * Runs a program to its end. The answer is the run's result as an object with run_code's result
 * fields (see tools/run_code.c's output schema), built by the broker: success, status, exitCode,
 * signal, stdout, stderr, output, truncation…, files[{name,size,url,change}] without mimeType,
 * which the worker adds. New reference, or NULL with *e (kinds as the broker gave them: INVALID,
 * NOT_FOUND, UNAVAILABLE, IO, CANCELLED…).
 */
json_t *broker_run(const struct broker_client *c, const struct run_request *request, struct err *e);

/* Stores size bytes of fd (from offset 0) as name; the answer is {name, size, url}. */
json_t *broker_put_file(const struct broker_client *c, const char *tenant, const char *conversation,
                        const char *name, int fd, size_t size, struct err *e);

/* Opens a file of a sandbox for reading; returns the descriptor, or -1. */
int broker_open_file(const struct broker_client *c, const char *tenant, const char *conversation,
                     const char *name, struct stat *out, struct err *e);

#define BROKER_LIST_MAX 1000 /* files of one page, names of one answer */

/*
 * One page of the files of a tenant's sandboxes: {"files":[{conversation, name, size, modified
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
