/*
 * The sockets of the server. The guard opens them, and each master and its children inherit them;
 * the program that the guard becomes on SIGHUP takes them over.
 */
#pragma once

#include "fcgi/process/resources.h"

/* SOCKET_HUB, SOCKET_EVENTS: -1 without a hub; SOCKET_METRICS, SOCKET_JUDGE, SOCKET_OAUTH:
 * likewise. …_IN and …_OUT are pairs, on which workers and hub send: connections to the broker (by
 * which pair they come tells it who sends: the workers, the hub, the metrics), events to the hub,
 * connections to the process that judges access tokens. */
enum server_socket {
    SOCKET_FASTCGI,
    SOCKET_BROKER,
    SOCKET_HUB,
    SOCKET_EVENTS,
    SOCKET_METRICS,
    SOCKET_JUDGE,
    SOCKET_OAUTH,
    SOCKET_CONTROL, /* the guard's alone (control.h) */
    SOCKET_CONNS_IN,
    SOCKET_CONNS_OUT,
    SOCKET_HUB_CONNS_IN,
    SOCKET_HUB_CONNS_OUT,
    SOCKET_METRICS_CONNS_IN,
    SOCKET_METRICS_CONNS_OUT,
    SOCKET_EVENTS_IN,
    SOCKET_EVENTS_OUT,
    SOCKET_ASKS_IN,
    SOCKET_ASKS_OUT,
    N_SOCKETS
};

struct server_sockets {
    int fds[N_SOCKETS];     /* -1: not open */
    bool handed[N_SOCKETS]; /* by the program that has started this one (handed.h) */
    bool beside[N_SOCKETS]; /* its address is still another server's (SANDCGI_TAKEOVER) */
};

#define SERVER_SOCKETS_INIT                                                                        \
    ((struct server_sockets){                                                                      \
        .fds = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}})

/* The name of a socket in SANDCGI_HANDOVER. */
extern const char *const server_socket_names[N_SOCKETS];

/*
 * Opens the sockets that s names, or takes those that were handed over. Those of out->fds that are
 * open are kept where their address is still the one of s, with the owner and mode of s; others are
 * closed, and their files removed. All are non-blocking and CLOEXEC. -1: one of them cannot be
 * opened; those of before are kept.
 */
int server_sockets_open(struct server_sockets *out, const struct settings *s,
                        const struct account *workers, struct err *e);

/* Is one of them beside its address? */
bool server_sockets_are_beside(const struct server_sockets *s);
/* Gives those their addresses: from now on calls come here. -1: some may have them. */
int server_sockets_take_over(struct server_sockets *open, const struct settings *s, struct err *e);

/* Closes all but these (bits of enum server_socket). */
void server_sockets_keep(struct server_sockets *s, unsigned which);
/* From now on an attempt to connect to these fails at once. The connections in the queue can still
 * be accepted if the socket keeps its queue. Nothing happens to a socket that was handed over: it
 * serves the next server, too. */
void server_sockets_shut(const struct server_sockets *s, unsigned which);
/* Does the queue of the FastCGI socket outlive server_sockets_shut? That of a TCP socket does not.
 */
bool server_sockets_keep_queue(const struct server_sockets *s);

void server_sockets_close(struct server_sockets *s);

/* A pair of sockets that keeps messages whole: fds[0] receives what processes without sockets of
 * their own send with fds[1], which waits a limited time for room. */
int pair_open(int fds[2], struct err *e);
