#include "config.h"

#include "common/mcp/client/stdio_client.h"

void mcp_stdio_client_clear(struct mcp_stdio_client *stdio_client)
{
    json_decref(stdio_client->capabilities);
    json_decref(stdio_client->subscriptions);
    *stdio_client = (struct mcp_stdio_client)MCP_STDIO_CLIENT_INIT;
}
