/*
 * FastCGI records (specification, sections 3.3 and 8), read and written without waiting: the hub
 * serves thousands of connections in one process. One request per connection, role RESPONDER.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#include <stdint.h>

#define FCGI_STDOUT      6
#define FCGI_RECORD_HEAD 8
#define FCGI_RECORD_MAX  65528        /* content of a record that is written; needs no padding */
#define FCGI_PARAMS_MAX  (64u * 1024) /* of a request, names and values together */

/* Adds one record. len is at most FCGI_RECORD_MAX. */
void fcgi_record_add(struct buf *out, int type, int request_id, const void *data, size_t len);
/* Adds the end of standard output and of the request. */
void fcgi_record_add_end(struct buf *out, int request_id);

/* Adds a whole request without a body and with one parameter, of at most FCGI_RECORD_MAX - 16
 * bytes; a longer one makes out fail. */
void fcgi_record_add_question(struct buf *out, int request_id, const char *name, const char *value);

/* A request that is being received. */
struct fcgi_reader {
    int request_id;    /* 0: FCGI_BEGIN_REQUEST has not come */
    struct buf params; /* when complete: name NUL value NUL, repeated */
    struct buf body;
    bool complete;
    /* the parser's own */
    unsigned char head[FCGI_RECORD_HEAD], begin[8];
    size_t n_head, content, padding; /* bytes of head; of the record's rest still to come */
    bool has_params;
};

/* body_max: a longer body completes the request, cut to at most one record more than that. */
void fcgi_reader_init(struct fcgi_reader *r, size_t body_max);
void fcgi_reader_clear(struct fcgi_reader *r);

/* Takes the next bytes of the connection. 1: the request is complete, later bytes are not looked
 * at; 0: more must come; -1: not a request that can be served. */
int fcgi_reader_feed(struct fcgi_reader *r, const void *data, size_t len, struct err *e);

/* The value of a parameter of a complete request; NULL: not sent. */
const char *fcgi_reader_param(const struct fcgi_reader *r, const char *name);
