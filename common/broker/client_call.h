/* One call on the broker's socket, from the connection to the answer. Private to common/broker. */
#ifndef SANDCGI_BROKER_CLIENT_CALL_H
#define SANDCGI_BROKER_CLIENT_CALL_H

#include "common/broker/client.h"

struct client_call {
    const struct broker_client *client;
    const json_t *head;
    int pass_fd;                    /* rides along with the head; -1: none */
    const json_t *body;             /* NULL: none */
    bool cancel_on_hang_up;         /* tell the broker, so that it ends what this call began */
    const struct broker_ears *ears; /* NULL: nobody listens */
    int *out_fd;                    /* a descriptor that comes with the answer; NULL: none may */
};

/* The answer's result (new reference), or NULL. ERR_LOST: the broker's side ended without a word.
 */
json_t *client_call(const struct client_call *call, struct err *e);

#endif
