#include "config.h"

#include "common/tools/profiles/adapt.h"

#include "common/mcp/content.h"
#include "common/rpc/json.h"

/* Tools bound what they return long before this. */
#define TEXT_MAX (128u * 1024 * 1024)

int adapt_fill(const struct arg_row *table, const struct mcp_tool_call *c, void *out,
               json_t **out_known, struct err *e)
{
    json_t *known = json_object();

    *out_known = known;
    for (const struct arg_row *row = table; row->name; row++) {
        json_t *value = json_object_get(c->arguments, row->name);

        if (value)
            json_object_set(known, row->name, value); /* shared with the call, never changed */
    }
    return args_fill(table, c->app, known, out, e);
}

static void leave_out_nulls(json_t *arguments)
{
    const char *name;
    json_t *value;
    void *next;

    json_object_foreach_safe(arguments, next, name, value)
    {
        if (json_is_null(value))
            json_object_del(arguments, name);
    }
}

int adapt_call(const struct mcp_tool_call *c, const struct mcp_tool *tool, json_t *take_arguments,
               struct mcp_result *inner, struct mcp_result *out, json_t **out_object, struct err *e)
{
    json_auto_t *arguments = take_arguments;
    struct mcp_tool_call call = *c;

    leave_out_nulls(arguments);
    call.arguments = arguments;
    call.can_task = false;
    tool->call(&call, inner);
    if (!mcp_need_is_empty(&inner->need)) {
        out->need = inner->need;
        inner->need = (struct mcp_need){.requests = NULL};
        return -1;
    }
    *out_object = inner->structured;
    if (inner->structured)
        return 0;
    return err_set(e, inner->failure ? inner->failure : ERR_INTERNAL, "%s", mcp_result_text(inner));
}

void adapt_tell_text(struct mcp_result *out, json_t *take_object, bool pretty)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);

    if ((pretty ? json_write_pretty : json_write)(take_object, &text) == 0)
        mcp_result_add(out, content_text_new(buf_str(&text), text.len));
    json_decref(take_object);
}
