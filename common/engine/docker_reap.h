/* Which containers in the engine's list (GET /containers/json) are ours. */
#ifndef SANDCGI_ENGINE_DOCKER_REAP_H
#define SANDCGI_ENGINE_DOCKER_REAP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Whether container (one member of the list) carries our labels with exactly this instance; then
 * its run id (borrowed, "" when the label is missing) and its deadline. One that cannot be read is
 * 0, long passed: all of ours have one.
 */
bool reap_read(const json_t *container, const char *instance, const char **out_run_id,
               int64_t *out_deadline);

#endif
