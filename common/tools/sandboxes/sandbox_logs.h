/* What the commands of a persistent sandbox printed, as a resource: containers://{id}/logs. */
#ifndef SANDCGI_TOOLS_SANDBOXES_SANDBOX_LOGS_H
#define SANDCGI_TOOLS_SANDBOXES_SANDBOX_LOGS_H

#include "common/base/err.h"
#include "common/tools/tools.h"

#include <jansson.h>
#include <stdbool.h>

/* Its resource template; new reference. */
json_t *sandbox_logs_template(void);

/* Is that the beginning of such a URI? */
bool sandbox_logs_is(const char *uri);

/* As mcp_resources.read. ERR_NOT_FOUND for whatever is not this tenant's, in one text. */
json_t *sandbox_logs_read(const struct tools_app *app, const char *tenant, const char *uri,
                          struct err *e);

#endif
