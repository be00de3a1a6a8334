#include "config.h"

#include "common/tools/sandboxes/sandbox_logs.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/protocol/client_psandboxes.h"
#include "common/rpc/json.h"
#include "common/tools/broker_access.h"
#include "common/tools/report.h"

#include <string.h>

#define SCHEME "containers://"
#define ENDING "/logs"

json_t *sandbox_logs_template(void)
{
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:{s:[s, s], s:f}}", "uriTemplate", SCHEME "{id}" ENDING, "name",
        "sandbox-logs", "title", "A sandbox's output", "description",
        "The newest output of the commands in a sandbox that create_sandbox made; id "
        "is its sandboxId.",
        "mimeType", "text/plain", "annotations", "audience", "assistant", "user", "priority", 0.5);
}

bool sandbox_logs_is(const char *uri)
{
    return strncmp(uri, SCHEME, strlen(SCHEME)) == 0;
}

/* Heap; NULL: it names none. */
static char *id_of(const char *uri)
{
    size_t len = strlen(uri);
    size_t around = strlen(SCHEME ENDING);

    if (len <= around || len > around + PSANDBOX_ID_MAX ||
        strcmp(uri + len - strlen(ENDING), ENDING) != 0)
        return NULL;
    return mem_strndup(uri + strlen(SCHEME), len - around);
}

json_t *sandbox_logs_read(const struct tools_app *app, const char *tenant, const char *uri,
                          struct err *e)
{
    const struct broker_client client = tools_client(app, -1);
    AUTO_FREE char *id = id_of(uri);
    json_auto_t *logs = id ? broker_psandbox_logs(&client, tenant, id, e) : NULL;

    if (!id || (!logs && e->kind == ERR_NOT_FOUND))
        err_set(e, ERR_NOT_FOUND, "there is no such resource");
    if (!logs) {
        report_soften(e);
        return NULL;
    }
    return json_pack("[{s:s, s:s, s:O}]", "uri", uri, "mimeType", "text/plain", "text",
                     json_object_get(logs, "text"));
}
