#include "config.h"

#include "common/mcp/pin.h"

void mcp_pin_clear(struct mcp_pin *pin)
{
    json_decref(pin->capabilities);
    json_decref(pin->subscriptions);
    *pin = (struct mcp_pin)MCP_PIN_INIT;
}
