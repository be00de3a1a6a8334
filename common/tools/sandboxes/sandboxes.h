/* What the commands of a persistent sandbox printed, as a resource: containers://{id}/logs. */
#ifndef SANDCGI_TOOLS_SANDBOXES_SANDBOXES_H
#define SANDCGI_TOOLS_SANDBOXES_SANDBOXES_H

#include "common/base/err.h"
#include "common/tools/tools_app.h"

#include <jansson.h>
#include <stdbool.h>

/* Its resource template; new reference. */
json_t *sandbox_logs_template(void);

/* Does uri begin as these do? */
bool sandbox_logs_is(const char *uri);

/* As mcp_resources.read. ERR_NOT_FOUND, with one text for all URIs that are not this
 * tenant's. */
json_t *sandbox_logs_read(const struct tools_app *app, const char *tenant, const char *uri,
                          struct err *e);

#endif
