/* A server with its client, anew for each test of a file: the test's state. */
#pragma once

#include "tests/unit/unit.h"

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

#define MCP_TEST(test) cmocka_unit_test_setup_teardown(test, mcp_open, mcp_close)
