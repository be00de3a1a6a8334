#include "config.h"

#include "fcgi/hub/run_events.h"

#include "common/mcp/events/event.h"
#include "common/mcp/server.h"
#include "common/tools/files/changes.h"
#include "fcgi/hub/events.h"
#include "fcgi/settings.h"

/* Once in the life of its process. */
void run_events_send(void *ctx, const struct broker_run_news *news)
{
    const struct settings *s = ctx;
    struct event_sender sender;
    const struct mcp_server server = {.publish = event_sender_publish, .publish_ctx = &sender};
    const struct changes changes = {&server, news->tenant, news->conversation};
    const struct mcp_event ended = {
        .kind = MCP_EVENT_TASK, .tenant = news->tenant, .task = news->run_id};

    event_sender_init(&sender, s->events);
    mcp_publish(&server, &ended);
    changes_tell(&changes, news->files);
    event_sender_clear(&sender);
}
