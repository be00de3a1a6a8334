/* The nodes of a Kubernetes cluster: the endpoints of a service, one on each machine. */
#pragma once

#include "fcgi/nodes/nodes.h"

#include <jansson.h>

/*
 * Adds the nodes that an EndpointSliceList (discovery.k8s.io/v1) names; place->port 0: the port
 * called "http", or else the first one. An endpoint that is ready is a ready node, another one is
 * absent; of two on one machine the ready one counts. ERR_PROTOCOL: the answer has another form.
 */
int kubernetes_read(const json_t *list, const struct nodes_place *place, struct nodes *out,
                    struct err *e);

int kubernetes_check(const struct nodes_place *place, struct err *e);

/* Asks the API server of the pod (KUBERNETES_SERVICE_HOST, _PORT) with its token and CA, which are
 * read anew each time. */
int kubernetes_look(const struct nodes_place *place, struct nodes *out, struct err *e);
