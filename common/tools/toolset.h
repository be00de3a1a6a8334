/*
 * The sets of tools that this server can offer: our own, and those of four other servers, for whose
 * clients a change of the URL is all there is to do. The others are tables and small adapters over
 * our own tools (profiles/). Which one is offered is a setting, or the web server's choice per
 * place.
 */
#ifndef SANDCGI_TOOLS_TOOLSET_H
#define SANDCGI_TOOLS_TOOLSET_H

#include "common/mcp/features/resource.h"
#include "common/mcp/features/tool.h"
#include "common/mcp/server.h"

#include <stddef.h>

enum toolset_number {
    TOOLSET_OURS,
    TOOLSET_RUNNER,
    TOOLSET_SESSION,
    TOOLSET_CONTAINER,
    TOOLSET_INTERPRETER,
    TOOLSETS,
};

/* Their names in that order, as a setting's choices. */
#define TOOLSET_NAMES "sandcgi|runner|session|container|interpreter"

struct toolset {
    const char *name;
    const char *instructions;
    const struct mcp_tool *const *tools; /* in the order of tools/list */
    size_t n_tools;
    const struct mcp_resources *resources;
    const struct mcp_error_style *error_style;
};

/* The number of a name, -1: there is no such set. */
int toolset_find(const char *name);

/* Of any but TOOLSET_OURS, whose parts fcgi/registry.c names. */
const struct toolset *toolset_theirs(int number);

#endif
