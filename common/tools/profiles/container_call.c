/* How calls of the set "container" begin, and how they are answered. */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/profiles/container.h"
#include "common/tools/report.h"
#include "common/tools/tools_app.h"

#include <inttypes.h>
#include <string.h>

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
    struct broker_client client = tools_client(s->mcp->app, s->mcp->cancel_fd);
    json_auto_t *answer = broker_psandbox_status(&client, s->mcp->tenant, s->psandbox, NULL, e);
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

/* A stream ends its last line. */
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

void container_add_failure(const struct err *e, struct buf *out)
{
    struct err told = *e;

    report_soften(&told);
    buf_addf(out, "%sError: %s\n", out->len > 0 ? "\n" : "", told.text);
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
