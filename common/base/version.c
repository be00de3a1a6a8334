#include "config.h"

#include "common/base/version.h"

#include "common/base/built_version.h" /* made by make; in no other file: a new commit compiles this one alone */

const char sandcgi_version[] = SANDCGI_VERSION;
