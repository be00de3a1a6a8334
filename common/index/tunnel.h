/* One connection of a container through the index proxy, from its request to its end. */
#ifndef SANDCGI_INDEX_TUNNEL_H
#define SANDCGI_INDEX_TUNNEL_H

#include "common/index/hosts.h"

#include <stdatomic.h>
#include <stdint.h>

#define INDEX_HEAD_MAX 8192 /* bytes of a request's head */

enum index_request_state {
    INDEX_REQUEST_MORE,    /* its head has not ended */
    INDEX_REQUEST_CONNECT, /* well-formed: *host, and *head_len bytes are its head */
    INDEX_REQUEST_METHOD,  /* another method than CONNECT */
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

struct index_rules {
    const struct index_source *source;
    bool private_ok;
};

/*
 * Reads a request from fd, connects to where it leads if the rules allow that, and carries bytes
 * both ways until either side ends, nothing moves for a minute, or the budget is used up. Blocking;
 * 32 KB of memory. Every refusal is answered with a status and a sentence. fd stays the caller's.
 */
void index_tunnel_serve(int fd, const struct index_rules *rules, struct index_budget *budget);

#endif
