/* Events between our processes: one datagram each, to the hub's socket, events.sock. */
#pragma once

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/mcp/events/event.h"
#include "fcgi/process/resources.h"

#include <sys/un.h>

#define EVENTS_TIMEOUT_MS 50 /* for processes that serve one caller */

struct event_sender {
    int fd;                /* -1: events are dropped */
    struct sockaddr_un to; /* no family: fd is connected */
    int timeout_ms;
    struct deadline no_wait_until; /* after a timeout others are not waited for */
};

/* Never fails: without a socket events are dropped. timeout_ms: how long to wait for room in the
 * hub's queue; 0 in a process that must never wait. */
void event_sender_init(struct event_sender *s, const char *path, int timeout_ms);
void event_sender_clear(struct event_sender *s);
/* Sends over take_fd, an end of a SOCK_SEQPACKET pair, instead. */
void event_sender_use(struct event_sender *s, int take_fd);

/* False: there was no room in time, which is said once while that lasts. */
bool event_sender_try(struct event_sender *s, const struct mcp_event *event);
/* mcp_server.publish; ctx is the struct event_sender. An event without room is dropped: logged. */
void event_sender_publish(void *ctx, const struct mcp_event *event);

/* The hub's end: a bound datagram socket that only the workers' account and root may write to,
 * and that itself sends nothing. Non-blocking, CLOEXEC. */
int events_listen(const char *path, const struct account *workers, struct err *e);

/* One event; its strings live as long as the returned object, which the caller owns. NULL: none is
 * queued. Other datagrams are skipped. */
json_t *events_receive(int fd, struct mcp_event *out);
/* The same of two sockets, the second the workers'. What a worker said before something came to the
 * first comes before that: a client that was told that it subscribes hears of each change from then
 * on. */
json_t *events_next(const int fds[2], struct mcp_event *out);
