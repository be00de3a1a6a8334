#include "config.h"

#include "common/mcp/events/sse.h"

#include "common/rpc/json.h"

/* Compact JSON has no line breaks outside of strings, and escapes those inside. */
void sse_add_message(struct buf *out, const char *id, const json_t *message)
{
    if (id)
        buf_addf(out, "id: %s\n", id);
    buf_add_str(out, "event: message\ndata: ");
    json_write(message, out);
    buf_add_str(out, "\n\n");
}

void sse_add_priming(struct buf *out, const char *id, int retry_ms)
{
    buf_addf(out, "id: %s\nretry: %d\ndata: \n\n", id, retry_ms);
}

void sse_add_comment(struct buf *out)
{
    buf_add_str(out, ": \n\n");
}
