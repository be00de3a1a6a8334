/* A session's record: whatever the file holds, it names one of our revisions and a tenant, or is
 * refused.
 */
#include "config.h"

#include "common/mcp/session/session.h"
#include "common/rpc/json.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct mcp_session s = {.record = NULL};
    struct err e = ERR_INIT;
    json_t *value = json_parse((const char *)data, len, 16, &e);

    if (!value) {
        promise_error(&e);
        return 0;
    }
    if (mcp_session_parse(value, &s) < 0) {
        PROMISE(!s.record);
        return 0;
    }
    PROMISE(json_get_string(s.record, "tenant"));
    PROMISE(MCP_REVISION_BIT(s.revision) & MCP_ANY_LEGACY);
    mcp_session_clear(&s);
    return 0;
}
