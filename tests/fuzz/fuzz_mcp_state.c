/* requestState: nothing opens but what was sealed, and that opens as it was. */
#include "config.h"

#include "common/base/clock.h"
#include "common/mcp/client/seal.h"
#include "common/rpc/json.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char key[] = "0123456789abcdef0123456789abcdef";
    const struct mcp_server server = {.seal_key = key, .seal_key_len = sizeof key - 1};
    const struct mcp_seal_bind bind = {.tenant = "me", .method = "tools/call", .name = "x"};
    struct err e = ERR_INIT;

    PROMISE(!mcp_unseal(&server, &bind, (const char *)data, len, &e));
    promise_error(&e);

    json_auto_t *value = json_from_bytes((const char *)data, len);
    char *sealed = mcp_seal(&server, &bind, value, &e);
    if (!sealed)
        return 0; /* too long */
    json_auto_t *back = mcp_unseal(&server, &bind, sealed, strlen(sealed), &e);
    PROMISE(back && json_equal(back, value));
    free(sealed);
    return 0;
}
