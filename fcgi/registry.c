#include "config.h"

#include "fcgi/registry.h"

#include "common/tools/tools.h"

const struct registry *registry_of_server(void)
{
    static struct registry registry;

    registry.tools = tools_all(&registry.n_tools);
    registry.prompts = tools_prompts(&registry.n_prompts);
    registry.resources = &tools_resources;
    registry.tasks = &tools_tasks;
    return &registry;
}
