/* How calls of the set "interpreter" begin, and how they are answered. */
#include "config.h"

#include "common/protocol/client_psandboxes.h"
#include "common/rpc/json.h"
#include "common/tools/profiles/interpreter_call.h"
#include "common/tools/tools_app.h"

#include <stdarg.h>
#include <string.h>

#define TEXT_MAX 8192

void interpreter_call_clear(struct interpreter_call *s)
{
    json_decref(s->known);
    s->known = NULL;
}

void interpreter_fail(struct mcp_result *out, const char *fmt, ...)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    out->structured = json_pack("{s:o}", "error", json_from_bytes(buf_str(&text), text.len));
}

const char *interpreter_text(struct err *e)
{
    report_soften(e);
    return e->text;
}

bool interpreter_begin(struct interpreter_call *s, const struct arg_row *table)
{
    struct err e = ERR_INIT;

    if (adapt_fill(table, s->mcp, &s->a, &s->known, &e) == 0)
        return true;
    report_failure(s->out, &e);
    return false;
}

/* Is a row of broker_psandbox_status a running or paused interpreter? */
static bool is_interpreter(const json_t *row)
{
    const char *status = json_get_string(row, "status");
    const char *language = json_get_string(row, "language");

    return json_is_true(json_object_get(row, "session")) && status && language &&
           (strcmp(status, "running") == 0 || strcmp(status, "paused") == 0) &&
           strcmp(language, "python") == 0;
}

json_t *interpreter_sessions(const struct mcp_tool_call *c, const char *session, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    json_auto_t *answer = broker_psandbox_status(&client, c->tenant, NULL, session, e);
    json_t *names = json_array(), *row;

    for (size_t i = 0; (row = json_array_get(json_object_get(answer, "sandboxes"), i)); i++) {
        if (is_interpreter(row))
            json_array_append(names, json_object_get(row, "conversationId"));
    }
    if (answer)
        return names;
    json_decref(names);
    return NULL;
}

int interpreter_is_active(const struct mcp_tool_call *c, const char *session, struct err *e)
{
    json_auto_t *names = interpreter_sessions(c, session, e);

    if (!names)
        return e->kind == ERR_NOT_FOUND ? 0 : -1;
    return json_array_size(names) > 0;
}

bool interpreter_begin_active(struct interpreter_call *s, const struct arg_row *table)
{
    struct err e = ERR_INIT;

    if (!interpreter_begin(s, table))
        return false;
    int active = interpreter_is_active(s->mcp, s->a.session, &e);
    if (active < 0)
        interpreter_fail(s->out, "%s", interpreter_text(&e));
    else if (active == 0)
        interpreter_fail(s->out, "No active sandbox found with session ID: %s", s->a.session);
    return active > 0;
}

char *interpreter_name(struct mcp_result *out, const char *path)
{
    static const char *const roots[] = {"/data", "/mnt/data", "/", NULL};
    struct err e = ERR_INIT;
    char *name = adapt_name(path, roots, &e);

    if (!name)
        interpreter_fail(out, "%s", e.text);
    return name;
}
