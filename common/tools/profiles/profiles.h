/* The other servers' sets of tools, for the list in toolset.c. */
#ifndef SANDCGI_TOOLS_PROFILES_PROFILES_H
#define SANDCGI_TOOLS_PROFILES_PROFILES_H

#include "common/tools/toolset.h"

extern const struct toolset profile_runner;

#endif
