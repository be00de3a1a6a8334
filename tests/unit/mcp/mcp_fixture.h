/* A server with its client, anew for each test of a file: the test's state. */
#pragma once

#include "tests/unit/unit.h"

#include "common/base/mem.h"
#include "tests/fakes/mcp_world.h"

static inline int mcp_open(void **state)
{
    static struct mcp_world w;

    mcp_world_init(&w);
    *state = &w;
    return 0;
}

static inline int mcp_close(void **state)
{
    mcp_world_clear(*state);
    return 0;
}

/* A request of a legacy client; its answer is an empty result, or has that part. */
static inline struct asked mcp_request(struct mcp_world *w, const char *method, const char *params)
{
    AUTO_FREE char *message = mem_printf(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}", method, params);

    return mcp_world_ask(w, message);
}

static inline void mcp_expect(struct mcp_world *w, const char *method, const char *params,
                              const char *part)
{
    struct asked a = mcp_request(w, method, params);

    assert_contains(a.text, part);
    asked_clear(&a);
}

static inline void mcp_expect_empty(struct mcp_world *w, const char *method, const char *params)
{
    struct asked a = mcp_request(w, method, params);

    assert_string_equal(a.text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    asked_clear(&a);
}

#define MCP_TEST(test) cmocka_unit_test_setup_teardown(test, mcp_open, mcp_close)
