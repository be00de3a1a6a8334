/*
 * A container engine for tests: a child process that answers HTTP on a Unix socket from a table,
 * and remembers what it was asked. It knows as much of the engine's API as struct docker needs.
 */
#pragma once

#include <stddef.h>

/* Raw bytes that are sent when `after` bytes have come in on the upgraded connection. */
struct fake_later {
    size_t after;
    const char *bytes;
    size_t len;
};

/* The first row whose match begins the request line ("POST /v1.41/containers/create") answers;
 * none: 404. */
struct fake_reply {
    const char *match;
    int status;
    const char *body;    /* NULL: "" */
    const char *version; /* Api-Version header; NULL: 1.41 */
    const char *server;  /* Server header; NULL: Docker */
    /* After a 101: */
    const char *stream; /* raw bytes sent then */
    size_t stream_len;
    const struct fake_later *later; /* in order, ends with after 0; NULL: none */
    size_t chop;                    /* send in portions of this size; 0: in one */
    int hold_ms;                    /* keep the connection open that long afterwards */
    int deaf;                       /* take no input: sending to it fails */
    int delay_ms;                   /* before answering at all */
    int times;                      /* the first requests only, then a later row; 0: all */
};

struct engine;
struct fake_engine;

/* The table ends with match NULL and stays the caller's. The name of the first container is
 * "sandcgi-r1" in it and in the log. */
struct fake_engine *fake_engine_start(const struct fake_reply *table);
void fake_engine_stop(struct fake_engine *f);

/* The engine object that talks with it. */
struct engine *fake_engine_connect(const struct fake_engine *f);
/* "unix:///…" */
const char *fake_engine_host(const struct fake_engine *f);
/* Requests so far, "METHOD path\n" each. */
const char *fake_engine_log(const struct fake_engine *f);
/* Bytes that came in on upgraded connections, and whether their end was seen. */
size_t fake_engine_input(const struct fake_engine *f, const char **out, int *out_end);
