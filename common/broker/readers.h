/*
 * Connections that wait for word of a run: non-blocking, each with what it has not taken yet.
 * Private to common/broker.
 */
#ifndef SANDCGI_BROKER_READERS_H
#define SANDCGI_BROKER_READERS_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/sock.h"
#include "common/broker/live.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define READERS_MAX       32
#define READER_PATIENCE_S 10 /* for one that does not take what it is sent */

enum reader_kind {
    READER_ASKER,  /* the run's own client */
    READER_POLL,   /* a get_run */
    READER_CANCEL, /* a cancel_run */
};

struct reader {
    int fd;       /* -1: it is gone and waits for readers_bury */
    int epoll_fd; /* borrowed */
    enum reader_kind kind;
    bool live;                 /* wants pieces of output as they come */
    bool since_given;          /* wants to know what is new */
    bool answered;             /* has its last message, once it has taken it */
    uint64_t since;            /* from there */
    uint64_t told;             /* live: the output up to here has been sent */
    struct deadline rest_by;   /* live: when a line without its end is sent; else: when it hears
                                  what is new; never: there is nothing */
    struct deadline answer_by; /* when it wants an answer, whatever there is */
    struct deadline gives_up;  /* when it has to have taken something; never: it owes nothing */
    struct buf out;            /* what it has not taken yet */
    size_t sent;               /* bytes of out that it has taken */
    struct fds ride;           /* go along with the next byte */
    struct sock_inbox inbox;   /* what it says */
};

struct readers {
    int epoll_fd; /* borrowed; told of each with its address as data */
    size_t n;
    struct reader *items[READERS_MAX];
};

/* Takes fd over. NULL: there are too many; fd stays the caller's. */
struct reader *readers_add(struct readers *rs, int fd, enum reader_kind kind);
/* Forgets those that are gone. */
void readers_bury(struct readers *rs);
/* Ends all. */
void readers_clear(struct readers *rs);

/* Sends a message; what is not taken at once waits. A reader that is gone takes no notice. */
void reader_tell(struct reader *r, const json_t *message);
/* The same with its last message: the connection ends when that is taken. */
void reader_answer(struct reader *r, const json_t *message);
/* The same with descriptors, which are taken over when it has taken all that it was told before;
 * else they stay where they are. */
void reader_answer_with_fds(struct reader *r, const json_t *message, struct fds *fds);
/* Sends more of what waits. */
void reader_flush(struct reader *r);

enum reader_word { READER_SAYS_NOTHING, READER_SAYS_CANCEL, READER_LEFT };
/* Takes in what it says. READER_LEFT: its end has come, or nonsense. */
enum reader_word reader_hear(struct reader *r);

/* Ends the connection now. */
void reader_close(struct reader *r);

/* A last message for a connection that is not among them; takes fd over. */
void reader_refuse(int fd, const json_t *message);

#endif
