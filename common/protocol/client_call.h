/* One call on the broker's socket, from the connection to the answer. Private to common/broker. */
#ifndef SANDCGI_PROTOCOL_CLIENT_CALL_H
#define SANDCGI_PROTOCOL_CLIENT_CALL_H

#include "common/base/fds.h"
#include "common/protocol/client_runs.h"

struct client_call {
    const struct broker_client *client;
    const json_t *head;
    int pass_fd;            /* rides along with the head; -1: none */
    const json_t *body;     /* NULL: none */
    bool cancel_on_hang_up; /* tell the broker, so that it ends what this call began */
    const struct broker_callbacks *callbacks; /* NULL: nobody listens */
    struct fds *out_fds; /* what comes along with the answer; NULL: nothing may */
};

/* The answer's result (new reference), or NULL. ERR_LOST: the broker's side ended without a word.
 */
json_t *client_call(const struct client_call *call, struct err *e);

/* A question in one message; pass_fd -1: none. The answer may come with one descriptor: *out_fd, -1
 * when it did not; NULL: it may not. */
json_t *client_ask(const struct broker_client *c, const json_t *head, int pass_fd, int *out_fd,
                   struct err *e);

#endif
