#include "config.h"

#include "common/mcp/features/tools_list.h"

#include "common/base/mem.h"
#include "common/mcp/features/tool.h"
#include "common/mcp/revision.h"
#include "common/rpc/json.h"

#include <stdint.h>
#include <stdlib.h>

/* What a tool's row looks like depends on these features only. */
#define ROW_FEATURES (MCP_CAN_ANNOTATE | MCP_CAN_TITLE | MCP_CAN_STRUCTURE)

#define TEXTS    8 /* one for each revision, and for clients that name none */
#define TEXT_MAX (1024u * 1024)

struct written {
    unsigned features;
    struct buf text; /* empty: a free place */
};

struct mcp_lists {
    json_t *tools[ROW_FEATURES + 1]; /* by features & ROW_FEATURES; NULL: not built yet */
    struct written texts[TEXTS];
    uint64_t version; /* of all of them */
};

struct mcp_lists *mcp_lists_new(void)
{
    return mem_alloc(sizeof(struct mcp_lists));
}

static void forget(struct mcp_lists *l)
{
    for (size_t i = 0; i <= ROW_FEATURES; i++) {
        json_decref(l->tools[i]);
        l->tools[i] = NULL;
    }
    for (size_t i = 0; i < TEXTS; i++)
        buf_clear(&l->texts[i].text);
}

void mcp_lists_free(struct mcp_lists *l)
{
    if (l)
        forget(l);
    free(l);
}

static json_t *annotations_new(const struct mcp_tool *tool)
{
    json_t *a = json_object();

    if (tool->title)
        json_object_set_new(a, "title", json_string(tool->title));
    json_object_set_new(a, "readOnlyHint", json_boolean(tool->hints.read_only));
    json_object_set_new(a, "destructiveHint", json_boolean(tool->hints.destructive));
    json_object_set_new(a, "idempotentHint", json_boolean(tool->hints.idempotent));
    json_object_set_new(a, "openWorldHint", json_boolean(tool->hints.open_world));
    return a;
}

static json_t *input_schema_new(const struct mcp_server *server, const struct mcp_tool *tool)
{
    return tool->input_schema ? json_loads(tool->input_schema, 0, NULL)
                              : server->arguments->schema(tool->arguments, server->app);
}

static json_t *row_new(const struct mcp_server *server, const struct mcp_tool *tool,
                       unsigned features)
{
    AUTO_FREE char *made = tool->description ? NULL : tool->describe(server->app);
    const char *description = made ? made : tool->description;
    json_t *row = json_object();

    json_object_set_new(row, "name", json_string(tool->name));
    if (tool->title && (features & MCP_CAN_TITLE))
        json_object_set_new(row, "title", json_string(tool->title));
    json_object_set_new(row, "description", json_string(description));
    json_object_set_new(row, "inputSchema", input_schema_new(server, tool));
    if (tool->output_schema && (features & MCP_CAN_STRUCTURE))
        json_object_set_new(row, "outputSchema", json_loads(tool->output_schema, 0, NULL));
    if (features & MCP_CAN_ANNOTATE)
        json_object_set_new(row, "annotations", annotations_new(tool));
    return row;
}

static json_t *array_new(const struct mcp_server *server, unsigned features)
{
    json_t *tools = json_array();

    for (size_t i = 0; i < server->n_tools; i++)
        json_array_append_new(tools, row_new(server, server->tools[i], features));
    return tools;
}

/* Each tool's number only ever grows, so their sum changes when one of them does. */
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

json_t *mcp_lists_tools(const struct mcp_server *server, unsigned features)
{
    struct mcp_lists *l = server->lists;
    uint64_t version = version_of(server);
    json_t **slot;

    if (!l)
        return array_new(server, features);
    if (l->version != version) {
        forget(l);
        l->version = version;
    }
    slot = &l->tools[features & ROW_FEATURES];
    if (!*slot)
        *slot = array_new(server, features);
    return json_incref(*slot);
}

const struct buf *mcp_lists_text(const struct mcp_server *server, unsigned features,
                                 const json_t *result)
{
    for (size_t i = 0; server->lists && i < TEXTS; i++) {
        struct written *w = &server->lists->texts[i];

        if (w->text.len > 0 && w->features == features)
            return &w->text;
        if (w->text.len > 0)
            continue;
        *w = (struct written){.features = features, .text = BUF_INIT(TEXT_MAX)};
        if (json_write(result, &w->text) == 0)
            return &w->text;
        buf_clear(&w->text);
        return NULL;
    }
    return NULL;
}

json_t *mcp_lists_input_schema(const struct mcp_server *server, size_t i)
{
    json_auto_t *tools = server->lists ? mcp_lists_tools(server, ROW_FEATURES) : NULL;

    if (!tools)
        return input_schema_new(server, server->tools[i]);
    /* The list keeps it only as long as no tool changes. */
    return json_incref(json_object_get(json_array_get(tools, i), "inputSchema"));
}
