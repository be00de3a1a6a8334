/* One command or run: its process, its standard input and control channel, and what it prints. A
 * run is a program in a language of the image's; the rest of the container ends with it. */
#pragma once

#include "runners/common/entry.h"

#include <poll.h>

#define CONTROL_MAX (64u << 20) /* bytes that a program has not read from its control channel */

/* In the order in which poll looks at them: when control can be read and the others cannot, nothing
 * was printed before it. */
enum stream_of { STREAM_CONTROL, STREAM_OUT, STREAM_ERR, STREAM_N };

struct stream {
    int fd;     /* -1: it has ended */
    size_t due; /* bytes that are sent before anything else */
};

enum command_state {
    COMMAND_NONE,    /* the slot is free */
    COMMAND_FILLING, /* its code and input come */
    COMMAND_LOADS,   /* of a run: the libraries that it needs are being imported */
    COMMAND_HELD,    /* that is over, and the server has not let it begin yet */
    COMMAND_OFFERED, /* the warm interpreter has not answered yet */
    COMMAND_RUNS,
    COMMAND_OVER,   /* its process has ended; the rest of its output is sent */
    COMMAND_FAILED, /* it could not be started; the reason is to be sent */
};

struct command {
    enum command_state state;
    uint32_t id;
    const struct options *options; /* of a run's language, or of the first one */
    bool run;                      /* it has been told its language, or code has come for it */
    struct input input;            /* until it is started; all zero: not opened yet */
    char *text;                    /* until it is started: what it was told to start, */
    struct items items;            /* taken apart */
    char news_tag;                 /* of a run's next frame, 'L' or 'S', */
    const char *news;              /* and what it says; NULL: nothing is to be told */
    pid_t pid;
    struct stream streams[STREAM_N];
    bool control_waits; /* until the others' due is sent, which was printed before it */
    char *queue;        /* for the control channel */
    size_t queue_len, queue_sent;
    int64_t hard_at_ms; /* 0: none */
    int64_t over_at_ms; /* while OVER: when no more output is waited for */
    int64_t dead_at_ms; /* when it counts as dead in any case; 0: it was not killed */
    bool last;          /* only what is due is sent */
    uint64_t ooms;      /* of the container, when it began */
    uint64_t peak;      /* the container's most memory until then */
    uint64_t used_us;   /* of a run: processor time of the container that is not its own */
    struct report report;
    char why[CHILD_WHY_MAX];
};

/* Appends to the code or the input of a command that has not begun; a failure is kept for its
 * start.
 */
void command_add_code(struct command *c, const char *data, size_t len);
void command_fill(struct command *c, const char *data, size_t len);
/* Starts c as the items say, or offers it to the warm interpreter. False: they make no sense. */
bool command_start(struct command *c, const char *items, size_t len);
/* The import of what it needs is over. */
void command_hold(struct command *c);
/* The server lets it begin. Nothing happens to one that is not held. */
void command_go(struct command *c);
/* The warm interpreter has answered, or will not: a new one gets what it did not take. */
void command_taken(struct command *c);
void command_refused(struct command *c);
/* Queues bytes for the control channel and writes what it takes. One that cannot take them all is
 * closed: no program gets a part. */
void command_control(struct command *c, const char *data, size_t len);
/* Writes what the control channel takes of the queue. */
void command_feed(struct command *c);
/* Kills the command and its process tree, or a run and everything else. */
void command_kill(struct command *c);
/* Its process has ended. */
void command_end(struct command *c, int status);
/* Whether all output has been sent. */
bool command_drained(const struct command *c);

/* What poll should look for on the stream; 0 = nothing. busy: a frame is being sent. */
short output_events(const struct command *c, enum stream_of of, bool busy);
/* Makes a frame of what can be read and is next, if there is any. */
void output_take(struct command *c, const short revents[STREAM_N]);
/* Makes the frame that ends the command, and frees its slot. Processes that outlive it may go on
 * printing: their output becomes orphan output. */
void output_end(struct command *c);
/* From now on only what is there is sent. */
void output_last(struct command *c);

/* Output of processes that have outlived their command is read and dropped, so that a full pipe or
 * SIGPIPE does not end them. The oldest pipe is closed when there are too many. */
#define ORPHANS_MAX 128

/* Fills a table of ORPHANS_MAX; returns how many there are. */
int orphan_polls(struct pollfd *p);
/* Reads what is there of all; those at their end are closed. */
void orphan_drain(void);
