/* Resources to this layer: one provider per server. */
#pragma once

#include "common/base/err.h"

#include <jansson.h>
#include <stdbool.h>

struct mcp_resources {
    /* One page: array of {uri, name, title?, mimeType?, size?, annotations?}. cursor NULL or "":
     * the first; *out_next (heap) NULL: the last. ERR_INVALID: not a cursor of ours. */
    json_t *(*list)(void *app, const char *tenant, const char *cursor, char **out_next,
                    struct err *e);
    /* Array of {uriTemplate, name, …}; new reference. */
    json_t *(*templates)(void *app);
    /* The contents array: [{uri, mimeType, text | blob}]. ERR_NOT_FOUND: unknown to this tenant;
     * ERR_LIMIT: too large to be read whole. */
    json_t *(*read)(void *app, const char *tenant, const char *uri, struct err *e);
    /* May this tenant subscribe to uri? (It need not exist yet.) */
    bool (*can_subscribe)(void *app, const char *tenant, const char *uri);
    /* As mcp_prompt.complete, for a variable of the template uri. */
    json_t *(*complete)(void *app, const char *tenant, const char *uri_template,
                        const char *argument, const char *value, const json_t *context);
};
