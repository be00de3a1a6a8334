/*
 * As little of an HTTP/1.1 client as measuring needs: one kept-alive connection to a Unix socket or
 * a loopback port, requests that are written by the caller whole, replies with Content-Length,
 * chunks or no body. What fails ends the program (bench_die): a measurement of half a conversation
 * is worth nothing.
 */
#pragma once

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define WIRE_REPLY_MAX (16u << 20)

struct wire {
    int fd;
    struct buf in; /* what was received and not dropped yet */
};

struct wire_reply {
    int status;
    size_t head_len; /* with its empty line */
    size_t body_len; /* as it came: chunks are still chunks */
    bool chunked;
};

void bench_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* address: "/path/of/a/socket" or "127.0.0.1:8080". */
void wire_open(struct wire *w, const char *address);
void wire_close(struct wire *w);
void wire_send(struct wire *w, const char *data, size_t len);
/* Receives what is there, at least one byte; false at the end of the stream. */
bool wire_receive(struct wire *w);

/* Is a whole reply in data? Its length and *out, or 0 when more has to come. */
size_t wire_parse(const char *data, size_t len, struct wire_reply *out);

/* Sends a request and receives its reply; the body, without chunks, goes to body (may be NULL).
 * Returns the status. */
int wire_call(struct wire *w, const char *request, size_t len, struct buf *body);

/* Appends a request with these extra header lines ("Name: value\r\n") and body. */
void wire_request(struct buf *out, const char *method, const char *path, const char *headers,
                  const char *body, size_t body_len);
