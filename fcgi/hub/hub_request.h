/*
 * Decides about a complete request to the hub. Only the decision is made here: what is to be
 * written, a refusal or the beginning of a stream, is left to the hub.
 */
#ifndef SANDCGI_FCGI_HUB_HUB_REQUEST_H
#define SANDCGI_FCGI_HUB_HUB_REQUEST_H

#include "common/mcp/events/listen.h"
#include "common/mcp/session/stream.h"
#include "fcgi/app.h"
#include "fcgi/hub/fcgi_record.h"

#define HUB_BODY_MAX (256u * 1024) /* a list of URIs */

/* What the decision depends on. */
struct hub_rules {
    const struct app *app;
    bool (*is_full)(void *ctx);
    bool (*has_session)(void *ctx, const char *session); /* a GET stream of that session */
    void *ctx;
};

struct hub_request {
    struct buf bytes;                /* what to write first; owned by the caller */
    bool is_stream;                  /* bytes begin an event stream */
    bool stays;                      /* the stream stays open; else the request ends with bytes */
    const struct mcp_server *server; /* that was called */
    struct mcp_listen *listen;       /* owned by the caller; may be NULL, like replay */
    struct mcp_replay *replay;
};

void hub_request_judge(const struct hub_rules *rules, const struct fcgi_reader *in,
                       struct hub_request *out);

#endif
