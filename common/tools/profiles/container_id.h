/* What the set "container" calls a container: 64 hex digits that lead back to one of our lasting
 * sandboxes, and to nothing else. */
#ifndef SANDCGI_TOOLS_PROFILES_CONTAINER_ID_H
#define SANDCGI_TOOLS_PROFILES_CONTAINER_ID_H

#include "common/base/err.h"
#include "common/broker/client_boxes.h"

#define CONTAINER_ID_LEN  64
#define CONTAINER_BOX_LEN (sizeof(BOX_ID_PREFIX) - 1 + RUN_ID_LEN)

/* The id of a tenant's sandbox. box_id as broker_create_box told it. */
int container_id_of(const char *tenant, const char *box_id, char out[CONTAINER_ID_LEN + 1],
                    struct err *e);

/* Back. ERR_NOT_FOUND, in one text, for everything that container_id_of did not make for this
 * tenant: ids of the engine's containers among them. */
int container_box_of(const char *tenant, const char *id, char out[CONTAINER_BOX_LEN + 1],
                     struct err *e);

#endif
