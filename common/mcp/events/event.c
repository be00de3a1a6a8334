#include "config.h"

#include "common/mcp/events/event.h"

#include "common/base/auto.h"
#include "common/mcp/server.h"
#include "common/rpc/json.h"

#include <string.h>

/* What an event needs beside its kind. */
enum { TENANT = 1, URI = 2, SESSION = 4, TASK = 8 };

static const struct {
    const char *name;
    unsigned needs;
} kinds[] = {
    [MCP_EVENT_TOOLS] = {"tools", 0},
    [MCP_EVENT_PROMPTS] = {"prompts", 0},
    [MCP_EVENT_RESOURCES] = {"resources", TENANT},
    [MCP_EVENT_RESOURCE] = {"resource", TENANT | URI},
    [MCP_EVENT_TASK] = {"task", TENANT | TASK},
    [MCP_EVENT_SESSION] = {"session", SESSION},
};

json_t *mcp_event_encode(const struct mcp_event *event)
{
    return json_pack("{s:s, s:s*, s:s*, s:s*, s:s*}", "kind", kinds[event->kind].name, "tenant",
                     event->tenant, "uri", event->uri, "task", event->task, "session",
                     event->session);
}

int mcp_event_decode(const json_t *object, struct mcp_event *out)
{
    const char *kind = json_get_string(object, "kind");
    unsigned i = 0;

    *out = (struct mcp_event){.tenant = json_get_string(object, "tenant"),
                              .uri = json_get_string(object, "uri"),
                              .task = json_get_string(object, "task"),
                              .session = json_get_string(object, "session")};
    while (kind && i < ARRAY_LEN(kinds) && strcmp(kinds[i].name, kind) != 0)
        i++;
    if (!kind || i == ARRAY_LEN(kinds))
        return -1;
    out->kind = (enum mcp_event_kind)i;
    const unsigned has = (out->tenant ? TENANT : 0) | (out->uri ? URI : 0) |
                         (out->task ? TASK : 0) | (out->session ? SESSION : 0);
    return (kinds[i].needs & ~has) == 0 ? 0 : -1;
}

void mcp_publish(const struct mcp_server *server, const struct mcp_event *event)
{
    if (server && server->publish)
        server->publish(server->publish_ctx, event);
}
