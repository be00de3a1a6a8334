/* completion/complete. */
#include "config.h"

#include "common/mcp/features/prompt.h"
#include "common/mcp/features/resource.h"
#include "common/mcp/methods.h"
#include "common/rpc/json.h"

#include <string.h>

#define VALUES_MAX 100

struct question {
    const json_t *ref;
    const char *argument, *value;
    const json_t *context; /* NULL: none */
};

static int fail(struct mcp_call *call, const char *what)
{
    return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL, "%s", what);
}

static int read_question(struct mcp_call *call, struct question *q)
{
    const json_t *argument = json_object_get(call->params, "argument");
    const json_t *context = json_object_get(json_object_get(call->params, "context"), "arguments");

    q->ref = json_object_get(call->params, "ref");
    q->argument = json_get_string(argument, "name");
    q->value = json_get_string(argument, "value");
    q->context = json_is_object(context) ? context : NULL;
    if (!json_get_string(q->ref, "type"))
        return fail(call, "params.ref must be an object with a type");
    if (!q->argument || !q->value)
        return fail(call, "params.argument must be an object with the strings name and value");
    return 0;
}

static int complete_prompt(struct mcp_call *call, const struct question *q, json_t **out_values)
{
    const struct mcp_prompt *p = mcp_prompt_find(call->server, json_object_get(q->ref, "name"));

    if (!p)
        return fail(call, "params.ref: unknown prompt");
    if (p->complete)
        *out_values = p->complete(call->server->app, call->origin->tenant, q->argument, q->value,
                                  q->context);
    return 0;
}

static bool has_template(const struct mcp_server *server, const char *uri)
{
    json_auto_t *templates = server->resources->templates
                                 ? server->resources->templates(server->app)
                                 : NULL;
    size_t i;
    json_t *one;

    json_array_foreach(templates, i, one)
    {
        const char *has = json_get_string(one, "uriTemplate");
        if (has && strcmp(has, uri) == 0)
            return true;
    }
    return false;
}

static int complete_resource(struct mcp_call *call, const struct question *q, json_t **out_values)
{
    const struct mcp_resources *r = call->server->resources;
    const char *uri = json_get_string(q->ref, "uri");

    if (!r || !uri || !has_template(call->server, uri))
        return fail(call, "params.ref: unknown resource template");
    if (r->complete)
        *out_values = r->complete(call->server->app, call->origin->tenant, uri, q->argument,
                                  q->value, q->context);
    return 0;
}

static json_t *result_new(json_t *take_values)
{
    json_t *result = json_object();
    json_t *completion = json_object();
    size_t total = json_array_size(take_values);

    while (json_array_size(take_values) > VALUES_MAX)
        json_array_remove(take_values, json_array_size(take_values) - 1);
    json_object_set_new(completion, "values", take_values);
    json_object_set_new(completion, "total", json_integer((json_int_t)total));
    json_object_set_new(completion, "hasMore", json_boolean(total > VALUES_MAX));
    json_object_set_new(result, "completion", completion);
    return result;
}

int mcp_complete(struct mcp_call *call, json_t **out_result)
{
    struct question q;
    json_t *values = NULL;
    const char *type;

    if (read_question(call, &q) < 0)
        return -1;
    type = json_get_string(q.ref, "type");
    if (strcmp(type, "ref/prompt") == 0) {
        if (complete_prompt(call, &q, &values) < 0)
            return -1;
    } else if (strcmp(type, "ref/resource") == 0) {
        if (complete_resource(call, &q, &values) < 0)
            return -1;
    } else {
        return fail(call, "params.ref.type must be ref/prompt or ref/resource");
    }
    *out_result = result_new(values ? values : json_array());
    return 0;
}
