/* What the set "container" calls a container: 64 hex digits that lead back to one of our lasting
 * sandboxes, and to nothing else. */
#ifndef SANDCGI_TOOLS_PROFILES_CONTAINER_ID_H
#define SANDCGI_TOOLS_PROFILES_CONTAINER_ID_H

#include "common/base/err.h"
#include "common/protocol/client_psandboxes.h"

#define CONTAINER_ID_LEN       64
#define CONTAINER_PSANDBOX_LEN (sizeof(PSANDBOX_ID_PREFIX) - 1 + RUN_ID_LEN)

/* The id of a tenant's sandbox. psandbox_id as broker_create_psandbox told it. */
int container_id_of(const char *tenant, const char *psandbox_id, char out[CONTAINER_ID_LEN + 1],
                    struct err *e);

/* Back. ERR_NOT_FOUND, in one text, for everything that container_id_of did not make for this
 * tenant: ids of the engine's containers among them. */
int container_psandbox_of(const char *tenant, const char *id, char out[CONTAINER_PSANDBOX_LEN + 1],
                          struct err *e);

#endif
