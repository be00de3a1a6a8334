/* Which containers in the engine's list (GET /containers/json) are ours and due. */
#ifndef SANDCGI_ENGINE_DOCKER_REAP_H
#define SANDCGI_ENGINE_DOCKER_REAP_H

#include "common/base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Whether container (one member of the list) carries our labels with exactly this instance (and
 * run_id, unless NULL) and a deadline at or before now. A deadline that cannot be read counts as
 * passed: all of ours have one.
 */
bool reap_due(const json_t *container, const char *instance, const char *run_id, int64_t now);

#endif
