/*
 * The staying mode: "entry stay" serves any number of commands, several at once, until its stdin
 * ends (runners/README.md, "stay"). One poll loop; what waits in memory is one frame on its way
 * out, the commands' standard input, and what a program has not read from its control channel.
 */
#ifndef SANDCGI_RUNNERS_COMMON_PSANDBOX_H
#define SANDCGI_RUNNERS_COMMON_PSANDBOX_H

#include "runners/common/entry.h"

#define COMMANDS_MAX 64
#define RECORD_MAX   (1u << 20)  /* payload of one record */
#define CONTROL_MAX  (64u << 20) /* bytes that a program has not read from its control channel */
#define ID_LEN       4
#define DATA_MAX     (FRAME_MAX - ID_LEN)

/* In the order in which poll looks at them: when control can be read and the others cannot, there
 * is nothing that was printed before. */
enum stream_of { STREAM_CONTROL, STREAM_OUT, STREAM_ERR, STREAM_N };

struct stream {
    int fd;     /* -1: it has ended */
    size_t due; /* bytes that go out before something else does */
};

enum command_state {
    COMMAND_NONE,    /* the place is free */
    COMMAND_FILLING, /* its input comes */
    COMMAND_RUNS,
    COMMAND_OVER,   /* its process has ended; what it had printed goes out */
    COMMAND_FAILED, /* it could not be started: why has to be told */
};

struct command {
    enum command_state state;
    uint32_t id;
    struct input input; /* of the state FILLING; all zero: not opened yet */
    pid_t pid;
    struct stream streams[STREAM_N];
    bool control_waits; /* for what was printed before it, due of the others */
    char *queue;        /* for the control channel */
    size_t queue_len, queue_sent;
    int64_t hard_at_ms; /* 0: none */
    int64_t over_at_ms; /* while it is over: when nobody is listened to any more */
    int64_t dead_at_ms; /* when it counts as dead in any case; 0: it was not killed */
    bool last;          /* only what is due goes out */
    uint64_t ooms;      /* of the container, when it began */
    struct report report;
    char why[CHILD_WHY_MAX];
};

/* stay_inbox.c: records from the server. */
enum inbox_end { INBOX_MORE, INBOX_GONE, INBOX_BAD };

/*
 * Reads stdin once and gives out the records that are whole, data to be changed at will. GONE: the
 * server hung up. BAD: something made no sense, to us or to record, which answers false then; that
 * has been said.
 */
enum inbox_end inbox_read(bool (*record)(char tag, uint32_t id, char *data, size_t len));

/* stay_command.c */

/* Appends to the input of a command that has not begun; a failure is kept for its start. */
void command_fill(struct command *c, const char *data, size_t len);
/* Starts c as the items say, which are changed. False: they make no sense; that has been said. */
bool command_start(struct command *c, char *items, size_t len);
/* Queues bytes for the control channel and writes what it takes. One that cannot take them all is
 * closed: no program gets a part. */
void command_control(struct command *c, const char *data, size_t len);
/* Writes what the control channel takes of the queue. */
void command_feed(struct command *c);
/* Kills what belongs to it. */
void command_kill(struct command *c);
/* Its process has ended. */
void command_end(struct command *c, int status);
/* Whether everything that it printed has gone out. */
bool command_drained(const struct command *c);

/* stay_output.c */

/* What poll should look for on the stream; 0 = nothing. busy: a frame is on its way out. */
short output_events(const struct command *c, enum stream_of of, bool busy);
/* Makes a frame of what can be read and is next, if there is any. */
void output_take(struct command *c, const short revents[STREAM_N]);
/* Makes the frame that ends the command, and frees its place. What outlived it may go on printing:
 * into left_fds, n of them. */
void output_end(struct command *c);
/* From now on only what is there goes out. */
void output_last(struct command *c);

/* stay_left.c: output of processes that have outlived their command. It is read and dropped, so
 * that they do not end of printing. */
#define LEFT_MAX 128

/* Takes the descriptor over; the oldest is closed when there are too many. */
void left_add(int fd);
int left_count(void);
int left_fd(int i);
/* Reads what is there of all; those at their end are closed. */
void left_drain(void);

/* psandbox_kill.c */

/* Kills pid, everything that descends from it, and everything in its session: stopped first, so
 * that nothing escapes by forking. */
void tree_kill(pid_t pid);

#endif
