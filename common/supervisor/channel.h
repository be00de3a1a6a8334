/*
 * What both kinds of supervisor share: the event loop with one timer, and the channel to the
 * broker's main process. When that process ends, the channel connects to the next one; wire.h
 * describes the messages.
 */
#ifndef SANDCGI_SUPERVISOR_CHANNEL_H
#define SANDCGI_SUPERVISOR_CHANNEL_H

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/loop.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/un.h>

/* A message {"do": name}. A message with a connection where none belongs, or without one, is
 * ignored. */
struct channel_handler {
    const char *name;
    void (*handle)(void *owner, const json_t *message, int take_connection);
    bool with_connection; /* else take_connection is -1 */
};

struct channel_ops {
    struct channel_handler handlers[4]; /* up to the first without a name */
    /* The main process has ended. true: connect to the next one. */
    bool (*on_lost)(void *owner);
    /* The head that offers this process to the next one; new reference. */
    json_t *(*adopt_head)(const void *owner);
};

struct channel {
    struct loop loop; /* its owner is that of the ops */
    int fd;           /* -1: there is no main process */
    struct loop_watch watch;
    int timer_fd;
    struct loop_watch timer_watch;
    struct deadline alarm;  /* when the timer rings; never: not set */
    struct deadline redial; /* when the next main process is tried */
    char broker_path[sizeof((struct sockaddr_un *)0)->sun_path]; /* "": not known */
    const struct channel_ops *ops;
};

/* Takes the descriptor; clear it with channel_clear, also after a failure. */
int channel_open(struct channel *c, int take_fd, const struct channel_ops *ops, void *owner,
                 struct err *e);
void channel_clear(struct channel *c);

/* The socket on which connection was accepted is where the next main process will listen. */
void channel_remember_broker(struct channel *c, int connection);

/* Without waiting; without a main process the message is dropped. */
void channel_send(const struct channel *c, json_t *take_message);
/* Calls the handlers of what is there, and connects to the next main process when that is due. */
void channel_dispatch(struct channel *c);
/* Makes loop.fd readable at d, or at c->redial if that is earlier. */
void channel_ring_at(struct channel *c, struct deadline d);
/* From now on the main process cannot send; what it sent before is handled. */
void channel_close(struct channel *c);

#endif
