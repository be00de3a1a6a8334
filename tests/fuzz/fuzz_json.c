/* A client's body: JSON within bounds, then the JSON-RPC envelope. What is accepted reads back the
 * same. */
#include "config.h"

#include "common/rpc/json.h"
#include "common/rpc/rpc.h"
#include "tests/fuzz/fuzz.h"

static void classify(const json_t *value)
{
    struct err e = ERR_INIT;
    struct rpc_message message;
    if (rpc_classify(value, &message, &e) < 0) {
        promise_error(&e);
        json_auto_t *answer = rpc_error_new(message.id, RPC_INVALID_REQUEST, e.text, NULL);
        PROMISE(answer);
        return;
    }
    PROMISE((message.kind == RPC_RESPONSE) == (message.method == NULL));
    PROMISE(message.kind != RPC_REQUEST || message.id);
    PROMISE(message.kind != RPC_NOTIFICATION || !message.id);
    json_auto_t *answer = rpc_result_new(message.id, json_object());
    PROMISE(answer);
    PROMISE(!message.id || json_equal(json_object_get(answer, "id"), message.id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err e = ERR_INIT;
    json_auto_t *value = json_parse((const char *)data, len, JSON_MAX_DEPTH, &e);
    if (!value) {
        promise_error(&e);
        return 0;
    }
    AUTO_BUF struct buf text = BUF_INIT(16 * len + 64);
    PROMISE(json_write(value, &text) == 0);
    json_auto_t *again = json_parse(buf_str(&text), text.len, JSON_MAX_DEPTH, &e);
    PROMISE(again && json_equal(value, again));
    classify(value);
    return 0;
}
