#include "config.h"

#include "common/mcp/features/header_params.h"

#include "common/rpc/json.h"

#include <stdio.h>
#include <string.h>

#define NESTING_MAX 16

static int fail(struct mcp_call *call, const char *name)
{
    return mcp_fail(&call->failure, 400, MCP_HEADER_MISMATCH, NULL,
                    "the header Mcp-Param-%s is missing, malformed or differs from the arguments",
                    name);
}

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

static bool same_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(text, word, len) == 0;
}

static bool agrees(const char *header, const json_t *value)
{
    header += strspn(header, " \t");
    size_t len = strlen(header);
    while (len > 0 && (header[len - 1] == ' ' || header[len - 1] == '\t'))
        len--;
    if (json_is_string(value))
        return era_header_equals(header, len, json_string_value(value), json_string_length(value));
    if (json_is_integer(value))
        return same_integer(header, len, json_integer_value(value));
    if (json_is_boolean(value))
        return same_word(header, len, json_is_true(value) ? "true" : "false");
    return false;
}

static int check_one(struct mcp_call *call, const char *name, const json_t *value)
{
    const struct mcp_origin *origin = call->origin;
    const char *header;

    if (!value || json_is_null(value))
        return 0;
    header = origin->param_header ? origin->param_header(origin->param_ctx, name) : NULL;
    return header && agrees(header, value) ? 0 : fail(call, name);
}

/* Only what is reachable through "properties" may be marked. */
static int check_object(struct mcp_call *call, const json_t *schema, const json_t *object,
                        unsigned depth)
{
    const char *key;
    json_t *property;

    if (depth > NESTING_MAX || !json_is_object(object))
        return 0;
    json_object_foreach(json_object_get(schema, "properties"), key, property)
    {
        const char *name = json_get_string(property, "x-mcp-header");
        const json_t *value = json_object_get(object, key);
        if (name && check_one(call, name, value) < 0)
            return -1;
        if (check_object(call, property, value, depth + 1) < 0)
            return -1;
    }
    return 0;
}

int mcp_check_header_params(struct mcp_call *call, const json_t *schema, const json_t *arguments)
{
    if (!call->origin->http || !(call->era.features & MCP_IS_MODERN))
        return 0;
    return check_object(call, schema, arguments, 0);
}
