/*
 * What this server can offer: its own tools, and the sets of four other servers, whose clients only
 * need another URL. A setting, or the web server per place, chooses the set.
 */
#pragma once

#include "common/tools/list.h"
#include "common/tools/tools_app.h"

#include <stddef.h>

/* All of our own tools in the order of tools/list; *n of them. */
const struct mcp_tool *const *tools_all(size_t *n);

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

/* The number of a name, -1: there is no such set. */
int toolset_find(const char *name);

/* Of any but TOOLSET_OURS, whose parts fcgi/registry.c names. */
const struct toolset *toolset_theirs(int number);
