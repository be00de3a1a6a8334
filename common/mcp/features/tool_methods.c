/* tools/list and tools/call. */
#include "config.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/mcp/client/client_channel.h"
#include "common/mcp/era.h"
#include "common/mcp/features/task.h"
#include "common/mcp/features/tool.h"
#include "common/rpc/json.h"

#include <string.h>

/* ---- tools/list: built once per set of features and kept until a tool's version changes ---- */

#define NESTING_MAX 16 /* of objects with mirrored arguments */

/* What a tool's row looks like depends on these features, and on MCP_WITHOUT_NETWORK. */
#define ROW_FEATURES (MCP_CAN_ANNOTATE | MCP_CAN_TITLE | MCP_CAN_STRUCTURE)

#define TEXTS    32 /* one for each revision, and for clients that name none, at each place */
#define TEXT_MAX (1024u * 1024)

struct cached_text {
    unsigned features;
    struct buf text; /* empty: a free place */
};

struct mcp_tools_cache {
    json_t *tools[2][ROW_FEATURES + 1]; /* with and without network, by features & ROW_FEATURES;
                                           NULL: not built yet */
    struct cached_text texts[TEXTS];
    uint64_t version; /* of all of them */
};

struct mcp_tools_cache *mcp_tools_cache_new(void)
{
    return mem_alloc(sizeof(struct mcp_tools_cache));
}

static void tools_cache_clear(struct mcp_tools_cache *l)
{
    for (size_t i = 0; i < 2 * (ROW_FEATURES + 1); i++)
        json_decref(TAKE_PTR(l->tools[i / (ROW_FEATURES + 1)][i % (ROW_FEATURES + 1)]));
    for (size_t i = 0; i < TEXTS; i++)
        buf_clear(&l->texts[i].text);
}

void mcp_tools_cache_free(struct mcp_tools_cache *l)
{
    if (l)
        tools_cache_clear(l);
    free(l);
}

static json_t *input_schema_new(const struct mcp_server *server, const struct mcp_tool *tool,
                                unsigned features)
{
    return tool->input_schema ? json_loads(tool->input_schema, 0, NULL)
                              : server->arguments->schema(tool->arguments, server->app, features);
}

static json_t *row_new(const struct mcp_server *server, const struct mcp_tool *tool,
                       unsigned features)
{
    const struct mcp_hints *hints = &tool->hints;
    AUTO_FREE char *name = mem_printf("%s%s", server->tool_prefix ? server->tool_prefix : "",
                                      tool->name);
    AUTO_FREE char *made = tool->description ? NULL : tool->describe(server->app);
    json_t *schema = NULL, *annotations = NULL;

    if (tool->output_schema && (features & MCP_CAN_STRUCTURE))
        schema = json_loads(tool->output_schema, 0, NULL);
    if (features & MCP_CAN_ANNOTATE)
        annotations = json_pack(
            "{s:s*, s:b, s:b, s:b, s:b}", "title", features & MCP_CAN_TITLE ? NULL : tool->title,
            "readOnlyHint", hints->read_only, "destructiveHint", hints->destructive,
            "idempotentHint", hints->idempotent, "openWorldHint", hints->open_world);
    return json_pack("{s:s, s:s*, s:s, s:o, s:o*, s:o*}", "name", name, "title",
                     features & MCP_CAN_TITLE ? tool->title : NULL, "description",
                     made ? made : tool->description, "inputSchema",
                     input_schema_new(server, tool, features), "outputSchema", schema,
                     "annotations", annotations);
}

static json_t *rows_new(const struct mcp_server *server, unsigned features)
{
    json_t *tools = json_array();

    for (size_t i = 0; i < server->n_tools; i++)
        json_array_append_new(tools, row_new(server, server->tools[i], features));
    return tools;
}

/* Each tool's version only grows, so their sum changes when one of them does. */
static uint64_t version_of(const struct mcp_server *server)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < server->n_tools; i++) {
        if (server->tools[i]->version)
            sum += server->tools[i]->version(server->app);
    }
    return sum;
}

bool mcp_tools_can_change(const struct mcp_server *server)
{
    for (size_t i = 0; i < server->n_tools; i++)
        if (server->tools[i]->version)
            return true;
    return false;
}

/* A new reference to the tools array, shared with later callers: not to be changed. */
static json_t *tools_rows(const struct mcp_server *server, unsigned features)
{
    struct mcp_tools_cache *l = server->tools_cache;
    uint64_t version = version_of(server);
    json_t **slot;

    if (!l)
        return rows_new(server, features);
    if (l->version != version) {
        tools_cache_clear(l);
        l->version = version;
    }
    slot = &l->tools[(features & MCP_WITHOUT_NETWORK) != 0][features & ROW_FEATURES];
    if (!*slot)
        *slot = rows_new(server, features);
    return json_incref(*slot);
}

const struct buf *mcp_tools_cache_text(const struct mcp_server *server, unsigned features,
                                       const json_t *result)
{
    for (size_t i = 0; server->tools_cache && i < TEXTS; i++) {
        struct cached_text *w = &server->tools_cache->texts[i];

        if (w->text.len > 0 && w->features == features)
            return &w->text;
        if (w->text.len > 0)
            continue;
        *w = (struct cached_text){.features = features, .text = BUF_INIT(TEXT_MAX)};
        if (json_write(result, &w->text) == 0)
            return &w->text;
        buf_clear(&w->text);
        return NULL;
    }
    return NULL;
}

/* The input schema of the i-th tool; a new reference, not to be changed. */
static json_t *input_schema_of(const struct mcp_server *server, size_t i)
{
    json_auto_t *tools = server->tools_cache ? tools_rows(server, ROW_FEATURES) : NULL;

    if (!tools)
        return input_schema_new(server, server->tools[i], ROW_FEATURES);
    /* The list keeps it only as long as no tool changes. */
    return json_incref(json_object_get(json_array_get(tools, i), "inputSchema"));
}

int mcp_tools_list(struct mcp_call *call, json_t **out_result)
{
    if (mcp_refuse_cursor(call) < 0)
        return -1;
    *out_result = json_pack("{s:o}", "tools", tools_rows(call->server, call->era.features));
    return 0;
}

/* ---- finding a tool ---- */

static bool answers_to(const struct mcp_tool *tool, const char *name)
{
    if (strcmp(tool->name, name) == 0)
        return true;
    for (const char *const *alias = tool->aliases; alias && *alias; alias++) {
        if (strcmp(*alias, name) == 0)
            return true;
    }
    return false;
}

/* Without the prefix of the server's tools. */
static const char *bare_name(const struct mcp_server *server, const json_t *name)
{
    const char *text = json_string_value(name);
    size_t len = server->tool_prefix ? strlen(server->tool_prefix) : 0;

    return len > 0 && strncmp(text, server->tool_prefix, len) == 0 ? text + len : text;
}

/* Its index, or the number of tools when there is none. */
static size_t find_tool(const struct mcp_server *server, const json_t *name)
{
    size_t i = 0;

    if (strlen(json_string_value(name)) != json_string_length(name))
        return server->n_tools; /* a NUL inside */
    while (i < server->n_tools && !answers_to(server->tools[i], bare_name(server, name)))
        i++;
    return i;
}

const struct mcp_tool *mcp_tool_called(const struct mcp_server *server, const json_t *params)
{
    const json_t *name = json_object_get(params, "name");
    size_t index = json_is_string(name) ? find_tool(server, name) : server->n_tools;

    return index < server->n_tools ? server->tools[index] : NULL;
}

bool mcp_tool_frees(const struct mcp_server *server, const json_t *params)
{
    const struct mcp_tool *tool = mcp_tool_called(server, params);

    return tool && tool->frees;
}

static int fail_unknown_tool(struct mcp_call *call)
{
    const struct mcp_server *server = call->server;
    const struct mcp_error_style *style = server->error_style;
    const json_t *name = json_object_get(call->params, "name");
    const char *prefix = server->tool_prefix ? server->tool_prefix : "";
    AUTO_FREE char *absent = server->absent_tool
                                 ? server->absent_tool(server->app, bare_name(server, name),
                                                       !call->origin->http, server->scopes)
                                 : NULL;
    AUTO_BUF struct buf names = BUF_INIT(4096);

    log_reason("unknown_tool", NULL);
    if (style && !(call->era.features & MCP_IS_MODERN))
        return mcp_fail_named(&call->failure, style->unknown_tool_code, style->unknown_tool,
                              json_string_value(name));
    if (absent)
        return mcp_fail_params(call, "%s", absent);
    for (size_t i = 0; i < server->n_tools; i++)
        buf_addf(&names, "%s%s%s", i ? ", " : "", prefix, server->tools[i]->name);
    return mcp_fail_params(call, "unknown tool: this server has %s", buf_str(&names));
}

/* ---- arguments that a tool wants mirrored in headers (2026-07-28, "x-mcp-header"), so that a web
 * server can route by them: the headers must agree with the body ---- */

/* By value: "07" and "7" are the same number. */
static bool same_integer(const char *text, size_t len, json_int_t value)
{
    bool negative = len > 0 && text[0] == '-';
    json_int_t sum = 0;

    if (negative) {
        text++;
        len--;
    }
    if (len == 0 || len > 18)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        sum = sum * 10 + (text[i] - '0');
    }
    return (negative ? -sum : sum) == value;
}

static bool header_agrees(const char *header, const json_t *value)
{
    header += strspn(header, " \t");
    size_t len = strlen(header);
    while (len > 0 && (header[len - 1] == ' ' || header[len - 1] == '\t'))
        len--;
    if (json_is_string(value))
        return era_header_equals(header, len, json_string_value(value), json_string_length(value));
    if (json_is_integer(value))
        return same_integer(header, len, json_integer_value(value));
    const char *word = json_is_true(value) ? "true" : "false";
    return json_is_boolean(value) && strlen(word) == len && memcmp(header, word, len) == 0;
}

/* Only what is reachable through "properties" may be marked. */
static int check_object(struct mcp_call *call, const json_t *schema, const json_t *object,
                        unsigned depth)
{
    const struct mcp_origin *origin = call->origin;
    const char *key;
    json_t *property;

    if (depth > NESTING_MAX || !json_is_object(object))
        return 0;
    json_object_foreach(json_object_get(schema, "properties"), key, property)
    {
        const char *name = json_get_string(property, "x-mcp-header"), *header = NULL;
        const json_t *value = json_object_get(object, key);
        if (name && value && !json_is_null(value)) {
            if (origin->param_header)
                header = origin->param_header(origin->param_ctx, name);
            if (!header || !header_agrees(header, value))
                return mcp_fail(&call->failure, 400, MCP_HEADER_MISMATCH, NULL,
                                "the header Mcp-Param-%s is missing, malformed or differs from "
                                "the arguments",
                                name);
        }
        if (check_object(call, property, value, depth + 1) < 0)
            return -1;
    }
    return 0;
}

/* ---- tools/call ---- */

struct tool_round {
    const struct mcp_tool *tool;
    struct mcp_tool_call call;
    struct mcp_result result;
};

static void tool_round_run(void *ctx, const struct mcp_elicitation *elicitation,
                           struct mcp_need *need)
{
    struct tool_round *r = ctx;

    mcp_result_clear(&r->result);
    r->call.elicitation = elicitation;
    if (r->tool->run)
        r->call.server->arguments->call(&r->call, &r->result);
    else
        r->tool->call(&r->call, &r->result);
    *need = r->result.need;
    r->result.need = (struct mcp_need){.requests = NULL};
}

static int check_headers(struct mcp_call *call, size_t index, const json_t *arguments)
{
    json_auto_t *schema = NULL;

    if (!(call->server->tools[index]->mirrors_arguments || call->server->route_headers) ||
        !call->origin->http || !(call->era.features & MCP_IS_MODERN))
        return 0;
    schema = input_schema_of(call->server, index);
    return check_object(call, schema, arguments, 0);
}

static int run_tool(struct mcp_call *call, struct mcp_channel *channel, struct tool_round *r,
                    json_t **out_result)
{
    const struct mcp_rounds asking = {
        .round = tool_round_run, .ctx = r, .name = r->tool->name, .arguments = r->call.arguments};
    struct err e = ERR_INIT;

    switch (mcp_rounds_run(call, channel, &asking, out_result, &e)) {
    case MCP_ROUNDS_DONE:
        break;
    case MCP_ROUNDS_INPUT_REQUIRED:
        return 0;
    case MCP_ROUNDS_REFUSED:
        return -1;
    case MCP_ROUNDS_NO_ANSWER:
        mcp_result_fail(&r->result, "%s", e.text);
        break;
    }
    if (r->result.refusal)
        return mcp_fail(&call->failure, 200, r->result.refusal, TAKE_PTR(r->result.structured),
                        "%s", mcp_result_text(&r->result));
    *out_result = r->result.task ? TAKE_PTR(r->result.task)
                                 : mcp_result_to_json(&r->result, call->era.features);
    return 0;
}

static int call_tool(struct mcp_call *call, size_t index, const json_t *arguments,
                     json_t **out_result)
{
    AUTO_MCP_CHANNEL struct mcp_channel channel = MCP_CHANNEL_INIT;
    struct tool_round r = {.tool = call->server->tools[index]};
    const char *missing = NULL;
    int rc = 0;

    for (const char *const *m = r.tool->requires; m && *m && !missing; m++)
        if (!mcp_client_can(mcp_call_capabilities(call), *m, NULL))
            missing = *m;
    if (missing && (call->era.features & MCP_IS_MODERN))
        return mcp_fail_capability(call, missing, NULL);
    if (r.tool->task_required && (call->era.features & MCP_IS_MODERN) && !mcp_client_can_task(call))
        return mcp_fail_no_tasks(call);
    if (check_headers(call, index, arguments) < 0 || mcp_channel_open(&channel, call) < 0)
        return -1;
    r.call = (struct mcp_tool_call){
        .server = call->server,
        .tool = r.tool,
        .app = call->server->app,
        .tenant = call->origin->tenant,
        .network = call->origin->network,
        .reuse = call->origin->reuse,
        .new_conversation = call->new_conversation,
        .cancel_fd = mcp_channel_cancel_fd(&channel),
        .leave_fd = mcp_channel_leave_fd(&channel),
        .arguments = arguments,
        .channel = &channel,
        .single_client = !call->origin->http,
        .can_task = mcp_client_can_task(call),
        .in_text = call->era.features & MCP_IN_TEXT,
    };
    if (missing) {
        mcp_result_fail(&r.result,
                        "this needs a client that can be asked (%s); this one did not declare it",
                        missing);
        *out_result = mcp_result_to_json(&r.result, call->era.features);
    } else {
        rc = run_tool(call, &channel, &r, out_result);
    }
    if (r.result.is_error)
        call->answer->error = r.result.failure ? err_kind_name(r.result.failure) : "tool";
    /* A client that cancels wants no answer. Without a session the lost connection has cancelled
     * the call, and an answer does no harm. */
    call->cancelled = (call->session || call->origin->stdio_client) &&
                      mcp_channel_is_cancelled(&channel);
    mcp_result_clear(&r.result);
    return rc;
}

int mcp_tools_call(struct mcp_call *call, json_t **out_result)
{
    const json_t *name = json_object_get(call->params, "name");
    const json_t *arguments = json_object_get(call->params, "arguments");
    size_t index;

    if (!json_is_string(name))
        return mcp_fail_params(call, "params.name must be a string: the name of a tool");
    if (json_is_null(arguments))
        arguments = NULL;
    if (arguments && !json_is_object(arguments))
        return mcp_fail_params(call, "params.arguments must be an object");
    index = find_tool(call->server, name);
    if (index == call->server->n_tools)
        return fail_unknown_tool(call);
    call->detail = call->server->tools[index]->name;
    return call_tool(call, index, arguments, out_result);
}
