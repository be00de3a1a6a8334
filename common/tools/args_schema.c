/* The JSON schema (2020-12) of a table of arguments. */
#include "config.h"

#include "common/mcp/revision.h"
#include "common/mcp/route.h"
#include "common/tools/args.h"

#define NUMBER_TOLD_MAX (UINT64_C(1) << 53) /* a limit that is none is not told */

static void set_integer(json_t *schema, const char *key, uint64_t value)
{
    json_object_set_new(schema, key, json_integer((json_int_t)value));
}

static void set_type(json_t *schema, const char *type)
{
    json_object_set_new(schema, "type", json_string(type));
}

/* Limits of length are not told: a model does not count, and an error names them. */
static void describe_string(json_t *schema, const struct arg_row *row, const struct tools_app *app)
{
    json_auto_t *choices = row->choices ? row->choices(app, NULL) : NULL;

    set_type(schema, "string");
    if (json_array_size(choices) > 0) /* an empty enum is not a valid schema */
        json_object_set(schema, "enum", choices);
}

static void describe_number(json_t *schema, const struct arg_row *row, const struct tools_app *app)
{
    set_type(schema, "integer");
    if (row->type == ARG_TIME)
        set_integer(schema, "minimum", ARG_TIME_MIN_MS);
    if (args_limit(row, app) < NUMBER_TOLD_MAX)
        set_integer(schema, "maximum", args_limit(row, app));
    if (row->initial_setting)
        set_integer(schema, "default", args_setting(app, row->initial_setting));
}

static void describe_items(json_t *schema, const struct arg_row *row)
{
    bool list = row->type == ARG_LIST;
    json_t *item = json_object();

    set_type(item, "string");
    set_type(schema, list ? "array" : "object");
    json_object_set_new(schema, list ? "items" : "additionalProperties", item);
    set_integer(schema, list ? "maxItems" : "maxProperties", row->max_items);
}

static json_t *row_schema(const struct arg_row *row, const struct tools_app *app)
{
    json_t *schema = json_object();

    switch (row->type) {
    case ARG_STRING:
    case ARG_NAME:
    case ARG_IDENTIFIER:
    case ARG_TEXT:
    case ARG_BASE64:
        describe_string(schema, row, app);
        break;
    case ARG_BOOL:
        set_type(schema, "boolean");
        break;
    case ARG_TIME:
    case ARG_INTEGER:
        describe_number(schema, row, app);
        break;
    case ARG_LIST:
    case ARG_MAP:
        describe_items(schema, row);
        break;
    }
    if (app->route_headers && mcp_route_header(row->name))
        json_object_set_new(schema, "x-mcp-header", json_string(mcp_route_header(row->name)));
    if (row->help)
        json_object_set_new(schema, "description", json_string(row->help));
    if (row->initial)
        json_object_set_new(schema, "default", json_string(row->initial));
    return schema;
}

static bool is_listed(const struct arg_row *row, void *app, unsigned features)
{
    return (!row->listed || row->listed(app)) &&
           !(row->of_network && features & MCP_WITHOUT_NETWORK);
}

static json_t *table_schema(const struct arg_row *table, void *app, unsigned features)
{
    json_t *schema = json_object();
    json_t *properties = json_object();
    json_t *required = json_array();
    bool all_listed = true;

    for (const struct arg_row *row = table; row->name; row++) {
        if (!is_listed(row, app, features)) {
            all_listed = false;
            continue;
        }
        json_object_set_new(properties, row->name, row_schema(row, app));
        if (row->required)
            json_array_append_new(required, json_string(row->name));
    }
    set_type(schema, "object");
    if (json_object_size(properties) > 0)
        json_object_set(schema, "properties", properties);
    if (json_array_size(required) > 0)
        json_object_set(schema, "required", required);
    if (all_listed)
        json_object_set_new(schema, "additionalProperties", json_false());
    json_decref(properties);
    json_decref(required);
    return schema;
}

const struct mcp_arguments args_tables = {.schema = table_schema, .call = args_call};
