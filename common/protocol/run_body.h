/*
 * The body of a call that runs something: the records that a container gets (entry_record.h), all
 * with id 0. 'C', the code of a run; 'I', the standard input; one 'X' with the items 'A', an
 * argument or a command, 'E', a variable "NAME=value", and 'D', the working directory. It goes over
 * the socket behind the head as a message of sock.h. A worker writes it; a supervisor, which trusts
 * no worker, takes it apart once and passes code and input on as they came.
 */
#pragma once

#include "common/protocol/run.h"
#include "common/protocol/wire.h"

/* Pointers lead into message. */
struct run_body {
    struct buf message;
    size_t streams_len; /* of its beginning: the records of code and input */
    bool has_code;      /* there are records of code, perhaps empty ones */
    size_t code_len, input_len;
    const char **args, **env; /* n_args, n_env; the arrays are owned */
    size_t n_args, n_env;
    const char *cwd; /* NULL: not given */
};

#define RUN_BODY_INIT ((struct run_body){.message = BUF_INIT(WIRE_MESSAGE_MAX)})
#define AUTO_RUN_BODY AUTO(run_body_clear)

/* The message as it is sent: its length, and the records of the request's code (data NULL: none),
 * input, args and env, and cwd (NULL: none). ERR_LIMIT. */
int run_body_write(const struct run_request *request, const char *cwd, struct buf *out,
                   struct err *e);

/* Takes message apart. ERR_INVALID; then, too, body is to be cleared. */
int run_body_take(struct run_body *body, struct err *e);
void run_body_clear(struct run_body *body);

/* Are these len bytes, which are next to be read from a connection, the beginning of such a message
 * and not some of its middle? */
#define RUN_BODY_HEAD 13
bool run_body_begins(const unsigned char *data, size_t len);
