#include "config.h"

#include "common/tools/profiles/container_call.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/base/node.h"
#include "common/mcp/features/offer.h"
#include "common/rpc/json.h"
#include "common/tools/list.h"
#include "common/tools/tools_app.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The sandbox's digits come first; the rest is a checksum over the tenant and them. It is no
 * key: the broker checks the owner of a sandbox. */
int container_id_of(const char *tenant, const char *psandbox_id, char out[CONTAINER_ID_LEN + 1],
                    struct err *e)
{
    static const char label[] = "container id 1";
    psandbox_id = node_strip(psandbox_id); /* these have no node: see MCP_ROUTES_TENANT */
    const char *digits = psandbox_id + strlen(PSANDBOX_ID_PREFIX);
    const struct crypto_part parts[] = {{tenant, strlen(tenant)}, {digits, strlen(digits)}};
    uint8_t digest[CRYPTO_SHA256_LEN];
    char hex[CRYPTO_HEX_LEN(CRYPTO_SHA256_LEN)];

    if (strncmp(psandbox_id, PSANDBOX_ID_PREFIX, strlen(PSANDBOX_ID_PREFIX)) != 0 ||
        strlen(digits) != RUN_ID_LEN)
        return err_set(e, ERR_PROTOCOL, "a sandbox's id has an unknown form");
    if (crypto_hmac(label, sizeof(label) - 1, parts, 2, digest, e) < 0)
        return -1;
    crypto_hex(digest, sizeof(digest), hex);
    snprintf(out, CONTAINER_ID_LEN + 1, "%s%.*s", digits, CONTAINER_ID_LEN - RUN_ID_LEN, hex);
    return 0;
}

int container_psandbox_of(const char *tenant, const char *id, char out[CONTAINER_PSANDBOX_LEN + 1],
                          struct err *e)
{
    char same[CONTAINER_ID_LEN + 1];
    struct err why = ERR_INIT;

    snprintf(out, CONTAINER_PSANDBOX_LEN + 1, PSANDBOX_ID_PREFIX "%.*s", RUN_ID_LEN, id);
    if (strlen(id) == CONTAINER_ID_LEN && strspn(id, "0123456789abcdef") == CONTAINER_ID_LEN &&
        container_id_of(tenant, out, same, &why) == 0 && strcmp(same, id) == 0)
        return 0;
    return err_set(e, ERR_NOT_FOUND, "No such container: there is none of yours with this id");
}

void container_call_clear(struct container_call *s)
{
    if (s->table)
        args_clear(s->table, &s->a);
    json_decref(s->known);
    s->known = NULL;
}

void container_fail(struct mcp_result *out, const struct err *e)
{
    struct err told = *e;

    report_soften(&told);
    adapt_tell(out, "Error: %s", told.text);
}

bool container_begin(struct container_call *s, const struct arg_row *table)
{
    struct err e = ERR_INIT;

    s->table = table;
    if (adapt_fill(table, s->mcp, &s->a, &s->known, &e) == 0 &&
        (!s->a.container ||
         container_psandbox_of(s->mcp->tenant, s->a.container, s->psandbox, &e) == 0))
        return true;
    container_fail(s->out, &e);
    return false;
}

char *container_conversation(const struct container_call *s, struct err *e)
{
    struct broker_client client = tools_client(s->mcp->app, s->mcp->tenant, s->mcp->cancel_fd);
    json_auto_t *answer = broker_psandbox_status(&client, s->psandbox, NULL, e);
    const json_t *row = json_array_get(json_object_get(answer, "sandboxes"), 0);
    const char *status = json_get_string(row, "status");
    const char *conversation = json_get_string(row, "conversationId");

    if (!answer)
        return NULL;
    if (conversation && status && (strcmp(status, "running") == 0 || strcmp(status, "paused") == 0))
        return mem_strdup(conversation);
    err_set(e, ERR_NOT_FOUND, "No such container: it is %s", status ? status : "unknown");
    return NULL;
}

char *container_file_name(const char *folder, const char *name, struct err *e)
{
    static const char *const roots[] = {CONTAINER_FOLDER, "/data", NULL};
    AUTO_FREE char *path = name[0] == '/'
                               ? mem_strdup(name)
                               : mem_printf("%s/%s", folder && *folder ? folder : CONTAINER_FOLDER,
                                            name);

    return adapt_name(path, roots, e);
}

/* Takes ".", ".." and empty parts out of an absolute path. */
static void normalise(char *path)
{
    char *end = path; /* of the result */

    for (const char *part = path; *part;) {
        size_t len = strcspn(part, "/");
        const char *next = part + len + (part[len] == '/');

        if (len == 2 && memcmp(part, "..", 2) == 0) {
            while (end > path && *--end != '/')
                continue;
        } else if (len > 0 && !(len == 1 && part[0] == '.')) {
            *end++ = '/';
            memmove(end, part, len);
            end += len;
        }
        part = next;
    }
    if (end == path)
        *end++ = '/';
    *end = '\0';
}

char *container_local_path(const char *path)
{
    char folder[PATH_MAX];
    char *absolute;

    if (!path || !*path)
        return NULL;
    if (path[0] == '/')
        absolute = mem_strdup(path);
    else if (getcwd(folder, sizeof(folder)))
        absolute = mem_printf("%s/%s", folder, path);
    else
        return mem_strdup(path); /* relative: our tools refuse it */
    normalise(absolute);
    return absolute;
}

/* The last line gets its newline. */
static void add_stream(const json_t *result, const char *stream, const char *before,
                       struct buf *out)
{
    const json_t *text = json_object_get(result, stream);
    size_t len = json_string_length(text);

    if (len == 0)
        return;
    buf_add_str(out, before);
    buf_add(out, json_string_value(text), len);
    if (json_string_value(text)[len - 1] != '\n')
        buf_add_char(out, '\n');
}

void container_add_command(const json_t *result, struct buf *out)
{
    const json_t *code = json_object_get(result, "exitCode");
    const char *command = json_get_string(result, "command");
    const char *status = json_get_string(result, "status");

    buf_addf(out, "%s$ %s\n", out->len > 0 ? "\n" : "", command ? command : "");
    add_stream(result, "stdout", "", out);
    add_stream(result, "stderr", "Error: ", out);
    if (json_is_integer(code) && json_integer_value(code) != 0)
        buf_addf(out, "Command exited with code %" JSON_INTEGER_FORMAT "\n",
                 json_integer_value(code));
    else if (!json_is_integer(code))
        buf_addf(out, "Error: the command was ended (%s)\n", status ? status : "unknown");
}

#define URI_HEAD "containers://"
#define URI_TAIL "/logs"

/* That server lists no resources. */
static json_t *logs_list(void *app, const char *tenant, const json_t *named, const char *cursor,
                         char **out_next, struct err *e)
{
    (void)named;
    (void)app;
    (void)tenant;
    *out_next = NULL;
    if (!cursor || !*cursor)
        return json_array();
    err_set(e, ERR_INVALID, "the cursor is not one of this server's");
    return NULL;
}

static json_t *logs_templates(void *app)
{
    (void)app;
    return json_pack("[{s:s, s:s, s:s, s:s, s:{s:[s, s], s:f}}]", "uriTemplate",
                     URI_HEAD "{id}" URI_TAIL, "name", "Container Logs", "description",
                     "What the commands in a container printed", "mimeType", "text/plain",
                     "annotations", "audience", "assistant", "user", "priority", 0.5);
}

/* Our own resource under this profile's URI. */
static json_t *logs_read(void *app, const char *tenant, const char *uri, struct err *e)
{
    char psandbox[CONTAINER_PSANDBOX_LEN + 1], id[CONTAINER_ID_LEN + 1];

    if (strlen(uri) != strlen(URI_HEAD URI_TAIL) + CONTAINER_ID_LEN ||
        strncmp(uri, URI_HEAD, strlen(URI_HEAD)) != 0 ||
        strcmp(uri + strlen(URI_HEAD) + CONTAINER_ID_LEN, URI_TAIL) != 0) {
        err_set(e, ERR_NOT_FOUND, "there is no such resource");
        return NULL;
    }
    snprintf(id, sizeof(id), "%.*s", CONTAINER_ID_LEN, uri + strlen(URI_HEAD));
    if (container_psandbox_of(tenant, id, psandbox, e) < 0)
        return NULL;
    AUTO_FREE char *ours = mem_printf(URI_HEAD "%s" URI_TAIL, psandbox);
    json_t *contents = sandbox_logs_read(app, tenant, ours, e);
    json_object_set_new(json_array_get(contents, 0), "uri", json_string(uri));
    return contents;
}

const struct mcp_resources container_resources = {
    .list = logs_list,
    .templates = logs_templates,
    .read = logs_read,
};
