/* prompts/list and prompts/get. */
#include "config.h"

#include "common/mcp/client/elicitation_rounds.h"
#include "common/mcp/features/prompt.h"
#include "common/mcp/features/result.h"
#include "common/rpc/json.h"

#include <string.h>

/* ---- the list ---- */

static json_t *argument_new(const struct mcp_prompt_argument *a, unsigned features)
{
    json_t *row = json_object();

    json_object_set_new(row, "name", json_string(a->name));
    if (a->title && (features & MCP_CAN_TITLE))
        json_object_set_new(row, "title", json_string(a->title));
    if (a->help)
        json_object_set_new(row, "description", json_string(a->help));
    json_object_set_new(row, "required", json_boolean(a->required));
    return row;
}

static json_t *row_new(const struct mcp_prompt *p, unsigned features)
{
    json_t *row = json_object();
    json_t *arguments = json_array();

    for (const struct mcp_prompt_argument *a = p->arguments; a && a->name; a++)
        json_array_append_new(arguments, argument_new(a, features));
    json_object_set_new(row, "name", json_string(p->name));
    if (p->title && (features & MCP_CAN_TITLE))
        json_object_set_new(row, "title", json_string(p->title));
    if (p->help)
        json_object_set_new(row, "description", json_string(p->help));
    json_object_set_new(row, "arguments", arguments);
    return row;
}

int mcp_prompts_list(struct mcp_call *call, json_t **out_result)
{
    json_t *prompts;

    if (mcp_refuse_cursor(call) < 0)
        return -1;
    prompts = json_array();
    for (size_t i = 0; i < call->server->n_prompts; i++)
        json_array_append_new(prompts, row_new(call->server->prompts[i], call->era.features));
    *out_result = json_object();
    json_object_set_new(*out_result, "prompts", prompts);
    return 0;
}

/* ---- one ---- */

const struct mcp_prompt *mcp_prompt_find(const struct mcp_server *server, const json_t *name)
{
    for (size_t i = 0; json_is_string(name) && i < server->n_prompts; i++) {
        const char *has = server->prompts[i]->name;
        if (strlen(has) == json_string_length(name) && strcmp(has, json_string_value(name)) == 0)
            return server->prompts[i];
    }
    return NULL;
}

static int fail_params(struct mcp_call *call, const char *what, const char *name)
{
    return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL, "%s%s", what, name);
}

static int check_arguments(struct mcp_call *call, const struct mcp_prompt *p,
                           const json_t *arguments)
{
    const char *key;
    json_t *value;

    if (arguments && !json_is_object(arguments))
        return fail_params(call, "params.arguments must be an object of strings", "");
    json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
    {
        if (!json_is_string(value))
            return fail_params(call, "params.arguments must be an object of strings", "");
    }
    for (const struct mcp_prompt_argument *a = p->arguments; a && a->name; a++)
        if (a->required && !json_object_get(arguments, a->name))
            return fail_params(call, "missing argument: ", a->name);
    return 0;
}

struct prompt_round {
    const struct mcp_prompt *prompt;
    struct mcp_prompt_call call;
    json_t *messages; /* owned */
    struct err e;
};

static void run_round(void *ctx, const struct mcp_ask *ask, struct mcp_need *need)
{
    struct prompt_round *r = ctx;

    r->call.ask = ask;
    r->messages = r->prompt->get(&r->call, need, &r->e);
}

static json_t *messages_for(const json_t *messages, unsigned features)
{
    json_t *shaped = json_array();
    size_t i;
    json_t *message;

    json_array_foreach(messages, i, message)
    {
        json_t *one = json_copy(message);
        json_object_set_new(one, "content",
                            mcp_result_block(json_object_get(message, "content"), features));
        json_array_append_new(shaped, one);
    }
    return shaped;
}

/* The handler is through: with messages, or with a reason. */
static int finish(struct mcp_call *call, const struct prompt_round *r, json_t **out_result)
{
    bool theirs = r->e.kind == ERR_INVALID || r->e.kind == ERR_NOT_FOUND || r->e.kind == ERR_LIMIT;

    if (!r->messages)
        return mcp_fail(&call->failure, 200, theirs ? RPC_INVALID_PARAMS : RPC_INTERNAL_ERROR, NULL,
                        "%s", r->e.text);
    *out_result = json_object();
    if (r->prompt->help)
        json_object_set_new(*out_result, "description", json_string(r->prompt->help));
    json_object_set_new(*out_result, "messages", messages_for(r->messages, call->era.features));
    return 0;
}

static int run_prompt(struct mcp_call *call, struct mcp_channel *channel, struct prompt_round *r,
                      json_t **out_result)
{
    const struct mcp_asking asking = {
        .round = run_round, .ctx = r, .name = r->prompt->name, .arguments = r->call.arguments};
    struct err e = ERR_INIT;

    switch (mcp_asking_run(call, channel, &asking, out_result, &e)) {
    case MCP_ASKED_DONE:
        return finish(call, r, out_result);
    case MCP_ASKED_INPUT:
        return 0;
    case MCP_ASKED_REFUSED:
        return -1;
    case MCP_ASKED_NO_ANSWER:
        break;
    }
    call->cancelled = mcp_channel_is_cancelled(channel);
    return mcp_fail(&call->failure, 200, RPC_INTERNAL_ERROR, NULL, "%s", e.text);
}

int mcp_prompts_get(struct mcp_call *call, json_t **out_result)
{
    const json_t *arguments = json_object_get(call->params, "arguments");
    struct prompt_round r = {
        .prompt = mcp_prompt_find(call->server, json_object_get(call->params, "name"))};
    AUTO_MCP_CHANNEL struct mcp_channel channel = MCP_CHANNEL_INIT;
    int rc;

    if (!r.prompt)
        return fail_params(call, "unknown prompt", "");
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
