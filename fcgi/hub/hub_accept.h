/*
 * The hub's door: takes a request in with libfcgi, decides about it, and takes the connection away
 * from libfcgi (which would block on it). What is to be written, a refusal or the beginning of a
 * stream, is left to the hub.
 */
#ifndef SANDCGI_FCGI_HUB_HUB_ACCEPT_H
#define SANDCGI_FCGI_HUB_HUB_ACCEPT_H

#include "fcgi/app.h"

#include "common/mcp/events/listen.h"
#include "common/mcp/session/stream.h"

/* What the door has to know about those who are in. */
struct hub_door {
    const struct app *app;
    int listen_fd;
    bool (*is_full)(void *ctx);
    bool (*has_session)(void *ctx, const char *session); /* a GET stream of that session */
    void *ctx;
};

/* Somebody let in, or turned away. */
struct hub_guest {
    int fd; /* non-blocking; owned by the caller */
    int request_id;
    struct buf bytes; /* what to write first; owned */
    bool stays;       /* else the request ends with these bytes */
    bool is_stream;   /* the bytes go behind an event stream's head */
    struct mcp_listen *listen;
    const struct mcp_server *server; /* what the place that was called offers */
    struct mcp_replay *replay;
};

/* Prepares libfcgi; once, before the process's own signal handlers. */
int hub_accept_init(struct err *e);

/* 1 with a guest, 0 when nobody is there (any more), -1 when the socket is unusable. */
int hub_accept_receive(const struct hub_door *door, struct hub_guest *out, struct err *e);

#endif
