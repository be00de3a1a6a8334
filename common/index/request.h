/* What a container asks the index proxy for: CONNECT, and nothing else. */
#ifndef SANDCGI_INDEX_REQUEST_H
#define SANDCGI_INDEX_REQUEST_H

#include "common/index/hosts.h"

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

#endif
