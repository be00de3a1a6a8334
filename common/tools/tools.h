/*
 * What this server can offer: its own tools in toolsets, and the tools of four other servers, whose
 * clients only need another URL. A setting, or the web server per place or tenant, chooses.
 */
#pragma once

#include "common/tools/list.h"
#include "common/tools/tools_app.h"

#include <stdbool.h>
#include <stddef.h>

/* All of our own tools in the order of tools/list; *n of them. */
const struct mcp_tool *const *tools_all(size_t *n);

/* Our toolsets are bits, and each combination of them is a set; core is in all of these. Other
 * servers' sets are the numbers behind. */
enum {
    TOOLSET_CORE = 0,
    TOOLSET_FILES = 1,
    TOOLSET_TRANSFER = 2,
    TOOLSET_SANDBOXES = 4,
    TOOLSET_ADMIN = 8,
    TOOLSET_ALL = 15,
    TOOLSET_RUNNER,
    TOOLSET_SESSION,
    TOOLSET_CONTAINER,
    TOOLSET_INTERPRETER,
    TOOLSETS,
};

#define TOOLSET_NAMES                                                                              \
    "core, files, transfer, sandboxes, admin, all (several of these: separated by commas), "       \
    "runner, session, container, interpreter"

/* The set of a name, or of several of our toolsets separated by commas; -1: there is none. */
int toolset_find(const char *list);

/* Is it a list of such names, as a limit of what a tenant may use? */
bool toolset_limit_ok(const char *list);
/* What a limit ("": none) leaves of a set: ours without the toolsets that it does not name, core
 * always; another server's if it names it, else -1. */
int toolset_limit(int set, const char *list);

/* Another server's; NULL: it is ours, whose parts fcgi/registry.c names. */
const struct toolset *toolset_theirs(int set);

/* Is a tool offered in a set, with these settings (app), to clients on this machine (stdio) or
 * others? */
bool toolset_offers(int set, const struct mcp_tool *tool, void *app, bool local);

/* What a token allows. A tool may need several of these, or none. */
enum scope {
    SCOPE_RUN = 1,
    SCOPE_FILES = 2,
    SCOPE_NETWORK = 4,
    SCOPE_ADMIN = 8, /* tools that show or remove what a tenant has in all */
    SCOPE_ALL = 15
};
#define SCOPE_NAMES    "run, files, network, admin"
#define SCOPE_TEXT_MAX 32 /* of scopes_format, with the NUL */

/* The scopes that a list such as "run,files" names; 0: it names none, or one that there is not. */
unsigned scopes_parse(const char *list);
/* The inverse, in the order of SCOPE_NAMES. */
void scopes_format(unsigned scopes, char out[SCOPE_TEXT_MAX]);

/* What a tool of ours needs. Tools of other servers do several things at once: see
 * toolset_needs. */
unsigned tool_needs(const struct mcp_tool *tool);
/* mcp_server.routes_by of our own tools. */
enum mcp_routes_by tool_routes_by(const struct mcp_tool *tool);
/* What every call to a set needs, apart from its tool's needs. */
unsigned toolset_needs(int set);

/* mcp_server.absent_tool: why a tool of ours is not offered to callers with these scopes, on the
 * heap; NULL: there is no such tool. */
char *tools_absent(void *app, const char *name, bool local, unsigned scopes);
