#include "config.h"

#include "fcgi/registry.h"

#include "common/tools/tools.h"

const struct registry *registry_of_server(void)
{
    static struct registry registry;

    registry.tools = tools_all(&registry.n_tools);
    return &registry;
}
