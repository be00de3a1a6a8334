/*
 * Events (common/mcp/events/event.h) between our processes: one datagram each, to the hub's socket
 * SANDCGI_EVENTS. Whoever publishes neither knows nor cares whether somebody listens.
 */
#ifndef SANDCGI_FCGI_HUB_EVENTS_H
#define SANDCGI_FCGI_HUB_EVENTS_H

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/mcp/events/event.h"
#include "fcgi/process/resources.h"

#include <sys/un.h>

struct event_sender {
    int fd; /* -1: events go nowhere */
    struct sockaddr_un to;
    struct deadline hurry; /* until then a hub that does not keep up is not waited for */
};

/* Never fails: without a socket, or with a path that is too long, events go nowhere. */
void event_sender_init(struct event_sender *s, const char *path);
void event_sender_clear(struct event_sender *s);

/* mcp_server.publish; ctx is the struct event_sender. When the hub cannot keep up it is given a
 * moment (EVENTS_PATIENCE_MS), then the event is dropped, and for a while others with it. */
void event_sender_publish(void *ctx, const struct mcp_event *event);

/* The hub's end: a bound datagram socket that only the workers' account and root may write to.
 * Non-blocking, CLOEXEC. */
int events_listen(const char *path, const struct account *workers, struct err *e);

/* One event; its strings live as long as the returned object, which the caller owns. NULL: nothing
 * there any more. What is no event is passed over. */
json_t *events_receive(int fd, struct mcp_event *out);

#endif
