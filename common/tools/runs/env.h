/* Which environment variables a caller may set for its program. */
#ifndef SANDCGI_TOOLS_RUNS_ENV_H
#define SANDCGI_TOOLS_RUNS_ENV_H

#include "common/base/err.h"
#include "common/tools/args.h"

#define ENV_NAME_MAX 128

/*
 * Checks the names in *map and drops those that the server sets itself. ERR_INVALID or ERR_DENIED
 * naming the variable and why: a name has to be an ordinary one, and must not be among those that
 * change how the interpreter or the loader starts, since then something else than the given code
 * decides what runs.
 */
int env_filter(struct arg_map *map, struct err *e);

#endif
