/* A call of a tool that has a table of arguments. */
#include "config.h"

#include "common/base/mem.h"
#include "common/mcp/route.h"
#include "common/tools/args_mend.h"
#include "common/tools/tools_app.h"

#include <stdio.h>
#include <string.h>

/* Names a new conversation where the call names none; made stays empty where it does. */
static void make_conversation(const struct mcp_tool_call *c, void *filled, char *made)
{
    for (const struct arg_row *row = c->tool->arguments; row->name; row++) {
        const char **value = row->made ? (const char **)((char *)filled + row->offset) : NULL;

        if (!value || *value)
            continue;
        if (c->new_conversation && *c->new_conversation)
            snprintf(made, MCP_MADE_MAX, "%s", c->new_conversation);
        else
            mcp_conversation_make(made);
        *value = made;
    }
}

void args_tell_conversation(const char *conversation, struct mcp_result *out)
{
    if (out->text.len > 0) /* else structured is the text */
        mcp_result_say(out, "conversationId: %s", conversation);
    /* Last: conversation may be the member that this replaces. */
    json_object_set_new(out->structured, "conversationId", json_string(conversation));
}

/* What is too long for an argument may have another way. */
static void add_way(const struct arg_row *table, struct err *e)
{
    for (const struct arg_row *row = table; e->kind == ERR_LIMIT && row->name; row++) {
        AUTO_FREE char *quoted = mem_printf("'%s'", row->name);
        if (row->larger && strstr(e->text, quoted)) {
            AUTO_FREE char *text = mem_printf("%s; %s", e->text, row->larger);
            err_set(e, ERR_LIMIT, "%s", text);
            return;
        }
    }
}

/* Takes " (SANDBOX_QUOTA)" and the like out of a text: names of settings are for operators. */
static void drop_settings(char *text)
{
    static const char mark[] = " (SANDBOX_";

    for (char *at = text; (at = strstr(at, mark));) {
        char *end = at + strlen(mark);
        end += strspn(end, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        if (*end == ')')
            memmove(at, end + 1, strlen(end + 1) + 1);
        else
            at = end;
    }
}

/* What the tool says itself, and why it failed. */
static void words_of_model(struct mcp_result *out, struct err *e)
{
    drop_settings(e->text);
    if (out->text.len > out->shown) {
        drop_settings(out->text.data + out->shown);
        out->text.len = out->shown + strlen(out->text.data + out->shown);
    }
}

/* What failed may have been meant otherwise. */
static void add_notices(const json_t *notices, struct err *e)
{
    json_t *notice;

    for (size_t i = 0; (notice = json_array_get(notices, i)); i++)
        err_set(e, e->kind, "%s; %s", e->text, json_string_value(notice));
}

/* notices: what args_mend said; NULL: the arguments are taken as they are. */
static void call_with(const struct mcp_tool_call *c, const json_t *notices, struct mcp_result *out)
{
    char made[MCP_MADE_MAX] = "";
    const struct mcp_tool *tool = c->tool;
    AUTO_FREE void *filled = mem_alloc(tool->arguments_size);
    struct err e = ERR_INIT;
    int rc = args_fill(tool->arguments, c->app, c->arguments, filled, &e);
    json_t *notice;

    if (rc == 0) {
        make_conversation(c, filled, made);
        rc = tool->run(c, filled, out, &e);
    }
    if (rc < 0 && notices)
        add_way(tool->arguments, &e);
    if (rc < 0)
        add_notices(notices, &e);
    if (c->in_text)
        words_of_model(out, &e);
    if (rc < 0)
        report_failure(out, &e);
    if (made[0] && out->structured)
        args_tell_conversation(made, out);
    report_stand_in(out);
    for (size_t i = 0; rc == 0 && (notice = json_array_get(notices, i)); i++)
        report_note(out, json_string_value(notice));
    args_clear(tool->arguments, filled);
}

void args_call_exactly(const struct mcp_tool_call *c, struct mcp_result *out)
{
    call_with(c, NULL, out);
}

void args_call(const struct mcp_tool_call *c, struct mcp_result *out)
{
    json_auto_t *notices = json_array();
    struct mcp_tool_call call = *c;
    struct err e = ERR_INIT;
    json_auto_t *mended = args_mend(c->tool->arguments, c->app, c->arguments, notices, &e);

    call.arguments = mended;
    if (mended)
        call_with(&call, notices, out);
    else
        report_failure(out, &e);
}
