/*
 * A connection to the engine that became a pipe: attach (both ways, after an upgrade) and events
 * (engine to us). Non-blocking once open: poll docker_stream_fd, then receive until nothing is
 * left.
 */
#pragma once

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/engine/docker_http.h"

#include <stdbool.h>
#include <stddef.h>

#define DOCKER_HEAD_MAX 8192 /* of the reply's status line and headers */

struct docker_stream;

/*
 * Sends method path with "Upgrade: tcp" when upgrade is set, and reads the head of the answer.
 * NULL: ERR_UNAVAILABLE, ERR_PROTOCOL, ERR_CANCELLED by the caller, or for a status >= 400 that of
 * docker_http_check.
 */
struct docker_stream *docker_stream_open(struct docker_http *h, const char *method,
                                         const char *path, bool upgrade, struct deadline d,
                                         struct err *e);
/* Closes the connection; NULL is fine. */
void docker_stream_free(struct docker_stream *s);

int docker_stream_fd(const struct docker_stream *s);

/* Bytes sent, 0 when the connection takes none now (call again with the same data), -1 when it is
 * gone. */
ssize_t docker_stream_send(struct docker_stream *s, const char *data, size_t len);

/* What receiving found. */
enum stream_got { STREAM_DATA, STREAM_NOTHING_NOW, STREAM_END };

/* At most cap bytes into data. A broken connection reads as STREAM_END. */
enum stream_got docker_stream_recv(struct docker_stream *s, char *data, size_t cap,
                                   size_t *out_len);

/* Ends our direction (the program's stdin sees its end); receiving goes on. */
void docker_stream_finish_input(struct docker_stream *s);

struct docker_head {
    int status;
    size_t len;            /* of the head, with the empty line */
    size_t content_length; /* 0 when there is none */
};

/* Parses a reply's head. 1: complete; 0: more bytes are needed; -1 ERR_PROTOCOL: not HTTP/1.x, or
 * over DOCKER_HEAD_MAX. */
int docker_head_parse(const char *data, size_t len, struct docker_head *out, struct err *e);
