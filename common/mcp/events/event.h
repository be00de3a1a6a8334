/*
 * Events: what can change while clients listen. They are small, carry no content, and go from any
 * worker to the hub as one datagram (mcp_event_encode) or, on stdio, directly to the client.
 */
#pragma once

#include <jansson.h>

struct mcp_server; /* server.h */

enum mcp_event_kind {
    MCP_EVENT_TOOLS, /* tools/list changed, for all tenants */
    MCP_EVENT_PROMPTS,
    MCP_EVENT_RESOURCES, /* resources/list of this tenant changed */
    MCP_EVENT_RESOURCE,  /* the resource uri of this tenant has new content, or is gone */
    MCP_EVENT_TASK,      /* the task of this tenant has another status */
    MCP_EVENT_SESSION,   /* the session's record changed (subscriptions), or the session ended */
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

/* Sends it to all open streams, if there are any. Never blocks, never fails. */
void mcp_publish(const struct mcp_server *server, const struct mcp_event *event);
