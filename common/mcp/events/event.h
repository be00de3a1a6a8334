/*
 * What can change while somebody listens. Events are small, carry no content, and travel from any
 * worker to the hub as one datagram (event_encode) or, in a process of its own (stdio), directly to
 * its client.
 */
#ifndef SANDCGI_MCP_EVENTS_EVENT_H
#define SANDCGI_MCP_EVENTS_EVENT_H

#include <jansson.h>

struct mcp_server; /* server.h */

enum mcp_event_kind {
    MCP_EVENT_TOOLS, /* tools/list would answer differently; for everybody */
    MCP_EVENT_PROMPTS,
    MCP_EVENT_RESOURCES, /* resources/list of this tenant would */
    MCP_EVENT_RESOURCE,  /* the resource uri of this tenant has new content, or is gone */
    MCP_EVENT_TASK,      /* the task of this tenant has another status */
    MCP_EVENT_SESSION,   /* the session's record changed (subscriptions) or it has ended: look again
                          */
};

struct mcp_event {
    enum mcp_event_kind kind;
    const char *tenant;  /* NULL for TOOLS, PROMPTS */
    const char *uri;     /* RESOURCE */
    const char *task;    /* TASK: its id */
    const char *session; /* SESSION */
};

#define MCP_EVENT_MAX 8192 /* bytes of an encoded event */

/* As one JSON object; new reference. */
json_t *mcp_event_encode(const struct mcp_event *event);
/* Back; pointers into object. 0, or -1 when it is not an event. */
int mcp_event_decode(const json_t *object, struct mcp_event *out);

/* Tells everybody that listens, if anybody does. Never blocks, never fails. */
void mcp_publish(const struct mcp_server *server, const struct mcp_event *event);

#endif
