/* The logs of the set "container": containers://{id}/logs. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/mcp/features/resource.h"
#include "common/rpc/json.h"
#include "common/tools/profiles/container.h"
#include "common/tools/sandboxes/sandboxes.h"

#include <stdio.h>
#include <string.h>

#define URI_HEAD "containers://"
#define URI_TAIL "/logs"

/* As those of its server, nothing is listed. */
static json_t *list(void *app, const char *tenant, const char *cursor, char **out_next,
                    struct err *e)
{
    (void)app;
    (void)tenant;
    *out_next = NULL;
    if (!cursor || !*cursor)
        return json_array();
    err_set(e, ERR_INVALID, "the cursor is not one of this server's");
    return NULL;
}

static json_t *templates(void *app)
{
    (void)app;
    return json_pack("[{s:s, s:s, s:s, s:s, s:{s:[s, s], s:f}}]", "uriTemplate",
                     URI_HEAD "{id}" URI_TAIL, "name", "Container Logs", "description",
                     "What the commands in a container printed", "mimeType", "text/plain",
                     "annotations", "audience", "assistant", "user", "priority", 0.5);
}

/* The psandbox that a URI's id leads to; ERR_NOT_FOUND. */
static int psandbox_of(const char *tenant, const char *uri,
                       char psandbox[CONTAINER_PSANDBOX_LEN + 1], struct err *e)
{
    char id[CONTAINER_ID_LEN + 1];

    if (strlen(uri) != strlen(URI_HEAD URI_TAIL) + CONTAINER_ID_LEN ||
        strncmp(uri, URI_HEAD, strlen(URI_HEAD)) != 0 ||
        strcmp(uri + strlen(URI_HEAD) + CONTAINER_ID_LEN, URI_TAIL) != 0)
        return err_set(e, ERR_NOT_FOUND, "there is no such resource");
    snprintf(id, sizeof(id), "%.*s", CONTAINER_ID_LEN, uri + strlen(URI_HEAD));
    return container_psandbox_of(tenant, id, psandbox, e);
}

/* Our own resource, under its name here. */
static json_t *read_logs(void *app, const char *tenant, const char *uri, struct err *e)
{
    char psandbox[CONTAINER_PSANDBOX_LEN + 1];

    if (psandbox_of(tenant, uri, psandbox, e) < 0)
        return NULL;
    AUTO_FREE char *ours = mem_printf(URI_HEAD "%s" URI_TAIL, psandbox);
    json_t *contents = sandbox_logs_read(app, tenant, ours, e);
    json_object_set_new(json_array_get(contents, 0), "uri", json_string(uri));
    return contents;
}

const struct mcp_resources container_resources = {
    .list = list,
    .templates = templates,
    .read = read_logs,
};
