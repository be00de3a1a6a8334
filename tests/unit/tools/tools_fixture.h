/* The real tools over the fake broker, anew for each test of a file. */
#pragma once

#include "tests/unit/unit.h"

#include "tests/fakes/fake_broker.h"
#include "tests/fakes/tools_world.h"

static struct tools_world world;

static inline int tools_open(void **state)
{
    (void)state;
    tools_world_init(&world);
    return 0;
}

/* Runs have a result, too. */
static inline int tools_open_calm(void **state)
{
    tools_open(state);
    fake_broker.trouble.kind = ERR_NONE;
    return 0;
}

static inline int tools_close(void **state)
{
    (void)state;
    tools_world_clear(&world);
    return 0;
}

#define TOOLS_TEST_AFTER(test, open) cmocka_unit_test_setup_teardown(test, open, tools_close)
#define TOOLS_TEST(test)             TOOLS_TEST_AFTER(test, tools_open)
