/*
 * The proxy between an installation's container and the package index: a process of its own behind
 * a Unix socket, which allows CONNECT to the hosts of one language's index and nothing else. It may
 * only open connections, uses a process per connection, and bounds everything.
 */
#pragma once

#include "common/index/index.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#define INDEX_TUNNELS_MAX 32 /* at once; more wait */
#define INDEX_DOWN_MAX    (1024ll * 1024 * 1024)
#define INDEX_UP_MAX      (16ll * 1024 * 1024)

#define INDEX_PROXY_COMMAND "index-proxy"

struct index_rules {
    const struct index_source *source;
    bool private_ok;
};

/*
 * Starts it: this very program anew as "index-proxy", so that no secret of the caller's is in its
 * memory. It serves listen_fd (the caller's own copy is to be closed) until the caller dies or
 * kills it (SIGKILL), or a client asks for the end, and everything it made dies with it. rules are
 * copied. Returns its pid, to be reaped by the caller, or -1.
 */
pid_t index_proxy_start(int listen_fd, const struct index_rules *rules, struct err *e);

/* That program; returns its exit status, and only when it cannot begin. */
int index_proxy_main(void);

/* ---- its parts; for tests ---- */

/* How it gives up its rights, before it serves. */
int index_proxy_enter(const struct index_source *source, struct err *e);

#define INDEX_HEAD_MAX 8192 /* bytes of a request's head */

enum index_request_state {
    INDEX_REQUEST_MORE,    /* its head has not ended */
    INDEX_REQUEST_CONNECT, /* well-formed: *host, and *head_len bytes are its head */
    INDEX_REQUEST_CLOSE,   /* "DELETE /": nothing more is wanted of the index */
    INDEX_REQUEST_METHOD,  /* another method */
    INDEX_REQUEST_BAD,     /* no request */
};

/* Looks at the len bytes that have come. */
enum index_request_state index_request_parse(const char *data, size_t len, struct index_host *host,
                                             size_t *head_len);

/* What all connections of one installation may carry together; in memory that they share. */
struct index_budget {
    _Atomic int64_t down; /* bytes that may still come from the index */
    _Atomic int64_t up;   /* and go to it */
};

/*
 * Reads a request from fd, connects to where it leads if the rules allow that, and carries bytes
 * both ways until either side ends, nothing moves for a minute, or the budget is used up. Blocking;
 * 32 KB of memory. Every refusal is answered with a status and a sentence. fd stays the caller's.
 * True: the client asks for the end of the proxy.
 */
bool index_tunnel_serve(int fd, const struct index_rules *rules, struct index_budget *budget);
