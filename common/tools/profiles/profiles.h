/* The other servers' sets of tools, for the list in toolset.c. */
#ifndef SANDCGI_TOOLS_PROFILES_PROFILES_H
#define SANDCGI_TOOLS_PROFILES_PROFILES_H

#include "common/tools/toolset.h"

extern const struct toolset profile_runner;
extern const struct toolset profile_session;
extern const struct toolset profile_container;
extern const struct toolset profile_interpreter;

#endif
