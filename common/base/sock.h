/*
 * Unix and TCP listening sockets, and messages on a Unix stream socket: 4 bytes big-endian length,
 * then that many bytes; a message may carry descriptors (SCM_RIGHTS), usually one.
 */
#pragma once

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct sock_owner {
    uid_t uid; /* (uid_t)-1: leave */
    gid_t gid; /* (gid_t)-1: leave */
    mode_t mode;
};

/*
 * Listens on a Unix socket path or on "ADDRESS:PORT" (numeric address). A stale socket file is
 * replaced; a file that is not a socket, or a socket with a listener, is an error.
 * Non-blocking and CLOEXEC. owner applies to Unix sockets only (NULL: mode 0660, own user).
 */
int sock_listen(const char *address, const struct sock_owner *owner, struct err *e);
/* 0 if sock_listen takes this form of address. */
int sock_address_check(const char *address, struct err *e);

/*
 * For a process that takes over from another one that still listens: sock_beside makes a path
 * beside address to listen at (caller frees), sock_take_over renames it to address. From then on
 * connections reach the new socket; the queue of the other one stays with its process.
 */
char *sock_beside(const char *address);
int sock_take_over(int fd, const char *address, struct err *e);

/* Is fd bound to the Unix socket path or the "ADDRESS:PORT" in address, or was it beside it? */
bool sock_is_at(int fd, const char *address);

/* Gives the file of a Unix socket that listens already the owner and mode; nothing for TCP. */
int sock_own(const char *address, const struct sock_owner *owner, struct err *e);

/* Connects to a Unix socket path, blocking, CLOEXEC. ERR_UNAVAILABLE without a listener. */
int sock_connect_unix(const char *path, struct err *e);

/*
 * A connection for a process that may not connect: over is its end of a SOCK_SEQPACKET pair, and
 * the process at the other end takes the connection from there. ERR_TIMEOUT: that takes none;
 * ERR_UNAVAILABLE: it has ended.
 */
int sock_connect_over(int over, struct err *e);
/* The same without waiting. ERR_BUSY: that takes none just now. */
int sock_connect_over_now(int over, struct err *e);

/* Does not wait. -1: none has come; errno as accept(2) sets it. */
int sock_accept_over(int over);

/* True when fd is a socket in listening state (as spawn-fcgi hands over on 0). */
bool sock_is_listening(int fd);

/*
 * Sends one message; pass_fd -1: none. The descriptor stays the caller's. ERR_CANCELLED when the
 * peer has gone; ERR_TIMEOUT when the socket has a SO_SNDTIMEO and it passed. Never raises SIGPIPE.
 */
int sock_send_message(int fd, const void *data, size_t len, int pass_fd, struct err *e);

/* The same without waiting. ERR_BUSY: the buffer is full; a part may have been sent, so the stream
 * must be closed. */
int sock_post_message(int fd, const void *data, size_t len, int pass_fd, struct err *e);

/* As send(2), without waiting; ride is passed with the first byte and stays the caller's. */
ssize_t sock_send_some(int fd, const void *data, size_t len, const struct fds *ride);

/* Receives at most len bytes without waiting: 1 with *out_n (0 at the end of the stream), 0: none
 * yet, -1. Passed descriptors go to got. */
int sock_recv_some(int fd, void *to, size_t len, struct fds *got, size_t *out_n, struct err *e);

/*
 * Receives one message into out (emptied first); ERR_LIMIT when its length passes out->max;
 * ERR_CANCELLED at end of stream before the first byte; ERR_PROTOCOL when it ends later or carries
 * a second descriptor; ERR_TIMEOUT at the deadline. out_fd gets a passed descriptor or -1, and -1
 * on failure; NULL closes what was passed. Memory grows with the bytes received, not with the
 * announced length.
 */
int sock_recv_message(int fd, struct buf *out, int *out_fd, struct deadline d, struct err *e);

/* A message that is received in parts, for a process that must not wait. */
struct sock_inbox {
    struct buf message; /* the bytes received, without the header */
    struct fds passed;  /* the descriptors it carried, if any; the owner may take them */
    unsigned char header[4];
    size_t n_header;
    size_t len; /* the message's, once the header is there */
};

#define SOCK_INBOX_INIT(max_bytes)                                                                 \
    ((struct sock_inbox){.message = BUF_INIT(max_bytes), .passed = FDS_INIT(1)})

/*
 * Reads what has arrived, never beyond the message. 1: message and passed hold it until the next
 * call, which begins the next message. 0: it is not complete yet. -1: kinds as sock_recv_message.
 */
int sock_inbox_take(struct sock_inbox *inbox, int fd, struct err *e);
void sock_inbox_clear(struct sock_inbox *inbox);

/* The peer of a connected Unix socket, as it was when it connected; either out may be NULL. */
int sock_peer(int fd, uid_t *out_uid, pid_t *out_pid, struct err *e);
