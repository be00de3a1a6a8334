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

static void set_text(json_t *object, const char *name, const char *text)
{
    if (text)
        json_object_set_new(object, name, json_string(text));
}

json_t *mcp_event_encode(const struct mcp_event *event)
{
    json_t *object = json_object();

    set_text(object, "kind", kinds[event->kind].name);
    set_text(object, "tenant", event->tenant);
    set_text(object, "uri", event->uri);
    set_text(object, "task", event->task);
    set_text(object, "session", event->session);
    return object;
}

static int parse_kind(const char *name, enum mcp_event_kind *out)
{
    for (unsigned i = 0; name && i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *out = (enum mcp_event_kind)i;
            return 0;
        }
    }
    return -1;
}

int mcp_event_decode(const json_t *object, struct mcp_event *out)
{
    unsigned needs;

    *out = (struct mcp_event){.tenant = json_get_string(object, "tenant"),
                              .uri = json_get_string(object, "uri"),
                              .task = json_get_string(object, "task"),
                              .session = json_get_string(object, "session")};
    if (parse_kind(json_get_string(object, "kind"), &out->kind) < 0)
        return -1;
    needs = kinds[out->kind].needs;
    if (((needs & TENANT) && !out->tenant) || ((needs & URI) && !out->uri) ||
        ((needs & TASK) && !out->task) || ((needs & SESSION) && !out->session))
        return -1;
    return 0;
}

void mcp_publish(const struct mcp_server *server, const struct mcp_event *event)
{
    if (server && server->publish)
        server->publish(server->publish_ctx, event);
}
