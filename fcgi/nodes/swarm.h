/* The nodes of a Docker Swarm: the machines on which a global service runs. */
#pragma once

#include "fcgi/nodes/nodes.h"

#include <jansson.h>

/*
 * Adds the nodes that the answers of the engine's API name: services of GET /services (port 0: the
 * port that the service publishes on its host), machines of GET /nodes, tasks of GET /tasks. A
 * machine that is drained is leaving; one with a running task is ready; one that is down, or whose
 * task is not running yet, is absent. ERR_PROTOCOL: an answer has another form; ERR_NOT_FOUND: no
 * service, or it publishes no port.
 */
int swarm_read(const json_t *services, const json_t *machines, const json_t *tasks,
               const struct nodes_place *place, struct nodes *out, struct err *e);

int swarm_check(const struct nodes_place *place, struct err *e);
int swarm_look(const struct nodes_place *place, struct nodes *out, struct err *e);
