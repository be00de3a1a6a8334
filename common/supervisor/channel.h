/*
 * The channel between a supervisor and the broker's main process (wire.h describes the messages),
 * with the loop and the one timer of the supervisor. When the main process ends, it may look for
 * the next one and offer itself.
 */
#pragma once

#include "common/base/clock.h"
#include "common/base/loop.h"

#include <jansson.h>

/* A message {"do": name}. A message with a connection where none belongs, or without one, is
 * ignored. */
struct channel_handler {
    const char *name;
    void (*handle)(void *owner, const json_t *message, int take_connection);
    bool with_connection; /* else take_connection is -1 */
};

/* owner is the loop's. */
struct channel_ops {
    struct channel_handler handlers[8]; /* up to the first without a name */
    /* The main process has ended. true: connect to the next one. */
    bool (*on_lost)(void *owner);
    /* Adds to the head what the next main process has to know besides of what is here. */
    void (*describe)(const void *owner, json_t *head);
};

struct channel {
    struct loop loop; /* its owner is the handlers' */
    int fd;           /* -1: there is no main process */
    struct loop_watch watch;
    int timer_fd;
    struct loop_watch timer_watch;
    struct deadline alarm;  /* when the timer rings; never: not set */
    struct deadline redial; /* when the next main process is tried */
    const char *broker_path;
    const char *run_id; /* what the next main process is told: of the run or the sandbox, */
    const json_t *head; /* and of the call that it was begun with. Borrowed */
    const struct channel_ops *ops;
};

/* Takes fd over, also on failure: channel_clear closes it. What it tells the next main process, and
 * where that is, is set by the caller. */
int channel_open(struct channel *c, int take_fd, const struct channel_ops *ops, void *owner,
                 struct err *e);
void channel_clear(struct channel *c);

/* Calls the handlers of what is there, and connects to the next main process when that is due. */
void channel_dispatch(struct channel *c);
/* Makes loop.fd readable at d, or at c->redial if that is earlier. */
void channel_ring_at(struct channel *c, struct deadline d);
/* Without waiting; without a main process the message is dropped. */
void channel_send(const struct channel *c, json_t *take_message);
/* From now on the main process cannot send; what it sent before is handled. */
void channel_close(struct channel *c);
