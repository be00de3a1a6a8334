/* Server-Sent Events as MCP uses them: one message is one "data:" line. Pure text; used by workers
 * and hub. */
#ifndef SANDCGI_MCP_EVENTS_SSE_H
#define SANDCGI_MCP_EVENTS_SSE_H

#include "common/base/buf.h"

#include <jansson.h>

#define SSE_KEEP_ALIVE_MS 15000

/* "id: …\nevent: message\ndata: …\n\n"; id NULL: none. */
void sse_add_message(struct buf *out, const char *id, const json_t *message);
/* The priming event: "id: …\nretry: …\ndata: \n\n". */
void sse_add_priming(struct buf *out, const char *id, int retry_ms);
/* ": \n\n" */
void sse_add_comment(struct buf *out);

#endif
