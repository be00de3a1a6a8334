/* prompts/list, prompts/get, resources/list, resources/templates/list, resources/read and
 * completion/complete. */
#include "config.h"

#include "common/mcp/call.h"
#include "common/mcp/client/client_channel.h"
#include "common/mcp/features/offer.h"
#include "common/mcp/features/result.h"
#include "common/rpc/json.h"

#include <string.h>

#define VALUES_MAX 100 /* of one completion */

/* ---- the list ---- */

static json_t *row_new(const struct mcp_prompt *p, unsigned features)
{
    bool titles = features & MCP_CAN_TITLE;
    json_t *arguments = json_array();

    for (const struct mcp_prompt_argument *a = p->arguments; a && a->name; a++)
        json_array_append_new(arguments, json_pack("{s:s, s:s*, s:s*, s:b}", "name", a->name,
                                                   "title", titles ? a->title : NULL, "description",
                                                   a->help, "required", a->required));
    return json_pack("{s:s, s:s*, s:s*, s:o}", "name", p->name, "title", titles ? p->title : NULL,
                     "description", p->help, "arguments", arguments);
}

int mcp_prompts_list(struct mcp_call *call, json_t **out_result)
{
    json_t *prompts;

    if (mcp_refuse_cursor(call) < 0)
        return -1;
    prompts = json_array();
    for (size_t i = 0; i < call->server->n_prompts; i++)
        json_array_append_new(prompts, row_new(call->server->prompts[i], call->era.features));
    *out_result = json_pack("{s:o}", "prompts", prompts);
    return 0;
}

/* ---- one ---- */

static const struct mcp_prompt *prompt_find(const struct mcp_server *server, const json_t *name)
{
    for (size_t i = 0; json_is_string(name) && i < server->n_prompts; i++) {
        const char *has = server->prompts[i]->name;
        if (strlen(has) == json_string_length(name) && strcmp(has, json_string_value(name)) == 0)
            return server->prompts[i];
    }
    return NULL;
}

static int check_arguments(struct mcp_call *call, const struct mcp_prompt *p,
                           const json_t *arguments)
{
    const char *key;
    json_t *value;

    if (arguments && !json_is_object(arguments))
        return mcp_fail_params(call, "params.arguments must be an object of strings");
    json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
    {
        if (!json_is_string(value))
            return mcp_fail_params(call, "params.arguments must be an object of strings");
    }
    for (const struct mcp_prompt_argument *a = p->arguments; a && a->name; a++)
        if (a->required && !json_object_get(arguments, a->name))
            return mcp_fail_params(call, "missing argument: %s", a->name);
    return 0;
}

struct prompt_round {
    const struct mcp_prompt *prompt;
    struct mcp_prompt_call call;
    json_t *messages; /* owned */
    struct err e;
};

static void prompt_round_run(void *ctx, const struct mcp_elicitation *elicitation,
                             struct mcp_need *need)
{
    struct prompt_round *r = ctx;

    r->call.elicitation = elicitation;
    r->messages = r->prompt->get(&r->call, need, &r->e);
}

/* The handler has returned messages, or an error. */
static int prompt_finish(struct mcp_call *call, const struct prompt_round *r, json_t **out_result)
{
    json_t *messages;
    size_t i;
    json_t *message;

    if (!r->messages)
        return mcp_fail_err(call, &r->e);
    messages = json_array();
    json_array_foreach(r->messages, i, message)
    {
        json_t *content = json_object_get(message, "content"), *copy = json_copy(message);
        json_object_set_new(copy, "content", mcp_result_block(content, call->era.features));
        json_array_append_new(messages, copy);
    }
    *out_result = json_pack("{s:s*, s:o}", "description", r->prompt->help, "messages", messages);
    return 0;
}

static int run_prompt(struct mcp_call *call, struct mcp_channel *channel, struct prompt_round *r,
                      json_t **out_result)
{
    const struct mcp_rounds asking = {.round = prompt_round_run,
                                      .ctx = r,
                                      .name = r->prompt->name,
                                      .arguments = r->call.arguments};
    struct err e = ERR_INIT;

    switch (mcp_rounds_run(call, channel, &asking, out_result, &e)) {
    case MCP_ROUNDS_DONE:
        return prompt_finish(call, r, out_result);
    case MCP_ROUNDS_INPUT_REQUIRED:
        return 0;
    case MCP_ROUNDS_REFUSED:
        return -1;
    case MCP_ROUNDS_NO_ANSWER:
        break;
    }
    call->cancelled = mcp_channel_is_cancelled(channel);
    return mcp_fail(&call->failure, 200, RPC_INTERNAL_ERROR, NULL, "%s", e.text);
}

int mcp_prompts_get(struct mcp_call *call, json_t **out_result)
{
    const json_t *arguments = json_object_get(call->params, "arguments");
    struct prompt_round r = {
        .prompt = prompt_find(call->server, json_object_get(call->params, "name"))};
    AUTO_MCP_CHANNEL struct mcp_channel channel = MCP_CHANNEL_INIT;
    int rc;

    if (!r.prompt)
        return mcp_fail_params(call, "unknown prompt");
    if (json_is_null(arguments))
        arguments = NULL;
    if (check_arguments(call, r.prompt, arguments) < 0 || mcp_channel_open(&channel, call) < 0)
        return -1;
    call->detail = r.prompt->name;
    r.call = (struct mcp_prompt_call){
        .app = call->server->app, .tenant = call->origin->tenant, .arguments = arguments};
    rc = run_prompt(call, &channel, &r, out_result);
    json_decref(r.messages);
    return rc;
}

/* ---- resources ---- */

int mcp_resources_list(struct mcp_call *call, json_t **out_result)
{
    const struct mcp_resources *r = call->server->resources;
    const json_t *cursor = json_object_get(call->params, "cursor");
    AUTO_FREE char *next = NULL;
    struct err e = ERR_INIT;
    json_t *page;

    if (!r && mcp_refuse_cursor(call) < 0)
        return -1;
    if (cursor && !json_is_null(cursor) && !json_get_string(call->params, "cursor"))
        return mcp_fail_params(call, "unknown cursor");
    page = r ? r->list(call->server->app, call->origin->tenant, mcp_call_named(call),
                       json_get_string(call->params, "cursor"), &next, &e)
             : json_array();
    if (!page)
        return mcp_fail_err(call, &e);
    *out_result = json_pack("{s:o, s:s*}", "resources", page, "nextCursor", next);
    return 0;
}

int mcp_resources_templates(struct mcp_call *call, json_t **out_result)
{
    const struct mcp_resources *r = call->server->resources;

    if (mcp_refuse_cursor(call) < 0)
        return -1;
    *out_result = json_pack("{s:o}", "resourceTemplates",
                            r && r->templates ? r->templates(call->server->app) : json_array());
    return 0;
}

static int fail_not_found(struct mcp_call *call, const char *uri)
{
    bool modern = call->era.features & MCP_IS_MODERN;

    return mcp_fail(&call->failure, 200, modern ? RPC_INVALID_PARAMS : MCP_RESOURCE_NOT_FOUND,
                    json_pack("{s:s}", "uri", uri), "resource not found");
}

int mcp_resources_read(struct mcp_call *call, json_t **out_result)
{
    const struct mcp_resources *r = call->server->resources;
    const char *uri = json_get_string(call->params, "uri");
    struct err e = ERR_INIT;
    json_t *contents;

    if (!uri)
        return mcp_fail_params(call, "params.uri must be a string");
    if (!r)
        return fail_not_found(call, uri);
    contents = r->read(call->server->app, call->origin->tenant, uri, &e);
    if (!contents)
        return e.kind == ERR_NOT_FOUND ? fail_not_found(call, uri) : mcp_fail_err(call, &e);
    *out_result = json_pack("{s:o}", "contents", contents);
    return 0;
}

bool mcp_resource_can_subscribe(const struct mcp_server *server, const char *tenant,
                                const char *uri)
{
    const struct mcp_resources *r = server->resources;

    return server->publish && r && r->can_subscribe && r->can_subscribe(server->app, tenant, uri);
}

/* ---- completion ---- */

struct completion {
    const json_t *ref;
    const char *argument, *value;
    const json_t *context; /* NULL: none */
};

static int read_completion(struct mcp_call *call, struct completion *q)
{
    const json_t *argument = json_object_get(call->params, "argument");
    const json_t *context = json_object_get(json_object_get(call->params, "context"), "arguments");

    q->ref = json_object_get(call->params, "ref");
    q->argument = json_get_string(argument, "name");
    q->value = json_get_string(argument, "value");
    q->context = json_is_object(context) ? context : NULL;
    if (!json_get_string(q->ref, "type"))
        return mcp_fail_params(call, "params.ref must be an object with a type");
    if (!q->argument || !q->value)
        return mcp_fail_params(call,
                               "params.argument must be an object with the strings name and value");
    return 0;
}

static int complete_prompt(struct mcp_call *call, const struct completion *q, json_t **out_values)
{
    const struct mcp_prompt *p = prompt_find(call->server, json_object_get(q->ref, "name"));

    if (!p)
        return mcp_fail_params(call, "params.ref: unknown prompt");
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

static int complete_resource(struct mcp_call *call, const struct completion *q, json_t **out_values)
{
    const struct mcp_resources *r = call->server->resources;
    const char *uri = json_get_string(q->ref, "uri");

    if (!r || !uri || !has_template(call->server, uri))
        return mcp_fail_params(call, "params.ref: unknown resource template");
    if (r->complete)
        *out_values = r->complete(call->server->app, call->origin->tenant, uri, q->argument,
                                  q->value, q->context);
    return 0;
}

/* Those that the session has named and that begin with prefix. */
static json_t *complete_named(const struct mcp_call *call, const char *prefix)
{
    json_t *values = json_array(), *one;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)mcp_call_named(call), i, one)
    {
        if (strncmp(json_string_value(one), prefix, strlen(prefix)) == 0)
            json_array_append(values, one);
    }
    return values;
}

int mcp_complete(struct mcp_call *call, json_t **out_result)
{
    const char *named_argument = call->server->named_argument;
    struct completion q;
    json_t *values = NULL;
    const char *type;
    size_t total;
    int rc;

    if (read_completion(call, &q) < 0)
        return -1;
    type = json_get_string(q.ref, "type");
    if (strcmp(type, "ref/prompt") == 0)
        rc = complete_prompt(call, &q, &values);
    else if (strcmp(type, "ref/resource") == 0)
        rc = complete_resource(call, &q, &values);
    else
        rc = mcp_fail_params(call, "params.ref.type must be ref/prompt or ref/resource");
    if (rc < 0)
        return -1;
    if (!values && named_argument && strcmp(q.argument, named_argument) == 0)
        values = complete_named(call, q.value);
    if (!values)
        values = json_array();
    total = json_array_size(values);
    while (json_array_size(values) > VALUES_MAX)
        json_array_remove(values, json_array_size(values) - 1);
    *out_result = json_pack("{s:{s:o, s:I, s:b}}", "completion", "values", values, "total",
                            (json_int_t)total, "hasMore", total > VALUES_MAX);
    return 0;
}
