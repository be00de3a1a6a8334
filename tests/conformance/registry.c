/* In place of fcgi/registry.c: what the real server offers, and the fixtures. */
#include "config.h"

#include "fcgi/registry.h"

#include "common/tools/tools.h"
#include "tests/conformance/fixtures.h"

#define TOOLS_MAX   64
#define PROMPTS_MAX 32

static const struct mcp_tool *tools[TOOLS_MAX];
static size_t n_tools;

static void add_tools(const struct mcp_tool *const *list)
{
    for (; *list && n_tools < TOOLS_MAX; list++)
        tools[n_tools++] = *list;
}

static size_t count_prompts(void)
{
    size_t n = 0;

    while (fixture_prompts[n])
        n++;
    return n;
}

const struct registry *registry_of_server(void)
{
    static struct registry registry;

    if (registry.n_tools == 0) {
        size_t n;
        const struct mcp_tool *const *real = tools_all(&n);
        for (size_t i = 0; i < n; i++)
            tools[n_tools++] = real[i];
        add_tools(fixture_content_tools);
        add_tools(fixture_telling_tools);
        add_tools(fixture_asking_tools);
        add_tools(fixture_round_tools);
        registry = (struct registry){.tools = tools,
                                     .n_tools = n_tools,
                                     .prompts = fixture_prompts,
                                     .n_prompts = count_prompts(),
                                     .resources = &fixture_resources};
    }
    return &registry;
}
