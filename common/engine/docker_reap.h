/* Which containers in the engine's list (GET /containers/json) are ours. */
#ifndef SANDCGI_ENGINE_DOCKER_REAP_H
#define SANDCGI_ENGINE_DOCKER_REAP_H

#include "common/base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Whether container (one member of the list) carries our labels with exactly this instance.
 * *out_run_id is borrowed from it ("" when it has none); a deadline that cannot be read is 0, long
 * passed: all of ours have one.
 */
bool reap_ours(const json_t *container, const char *instance, const char **out_run_id,
               int64_t *out_deadline);

#endif
