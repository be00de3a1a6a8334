#include "config.h"

#include "tests/fakes/schema.h"

#include "common/base/auto.h"

#include <stdio.h>
#include <string.h>

static bool fail(const char *where, const char *why)
{
    fprintf(stderr, "schema: %s: %s\n", where, why);
    return false;
}

static bool is_type(const json_t *value, const char *type)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return strcmp(type, "object") == 0;
    case JSON_ARRAY:
        return strcmp(type, "array") == 0;
    case JSON_STRING:
        return strcmp(type, "string") == 0;
    case JSON_INTEGER:
        return strcmp(type, "integer") == 0 || strcmp(type, "number") == 0;
    case JSON_REAL:
        return strcmp(type, "number") == 0;
    case JSON_TRUE:
    case JSON_FALSE:
        return strcmp(type, "boolean") == 0;
    case JSON_NULL:
        return strcmp(type, "null") == 0;
    }
    return false;
}

static bool type_fits(const json_t *wanted, const json_t *value)
{
    size_t i;
    json_t *one;

    if (json_is_string(wanted))
        return is_type(value, json_string_value(wanted));
    json_array_foreach(wanted, i, one)
    {
        if (is_type(value, json_string_value(one)))
            return true;
    }
    return false;
}

static bool enum_fits(const json_t *choices, const json_t *value)
{
    size_t i;
    json_t *one;

    json_array_foreach(choices, i, one)
    {
        if (json_equal(one, value))
            return true;
    }
    return false;
}

static bool members_fit(const json_t *schema, const json_t *value)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *others = json_object_get(schema, "additionalProperties");
    const json_t *required = json_object_get(schema, "required");
    size_t i;
    const char *key;
    json_t *member;

    json_array_foreach(required, i, member)
    {
        if (!json_object_get(value, json_string_value(member)))
            return fail(json_string_value(member), "is missing");
    }
    json_object_foreach((json_t *)value, key, member)
    {
        const json_t *rule = json_object_get(properties, key);

        if (!rule)
            rule = others;
        if (json_is_false(rule))
            return fail(key, "is not allowed");
        if (json_is_object(rule) && !schema_fits(rule, member))
            return fail(key, "does not fit");
    }
    return true;
}

static bool items_fit(const json_t *schema, const json_t *value)
{
    const json_t *rule = json_object_get(schema, "items");
    size_t i;
    json_t *item;

    json_array_foreach(value, i, item)
    {
        if (rule && !schema_fits(rule, item))
            return fail("an item", "does not fit");
    }
    return true;
}

static bool range_fits(const json_t *schema, const json_t *value)
{
    const json_t *min = json_object_get(schema, "minimum");
    const json_t *max = json_object_get(schema, "maximum");
    double v = json_number_value(value);

    return !json_is_number(value) ||
           ((!min || v >= json_number_value(min)) && (!max || v <= json_number_value(max)));
}

static bool size_fits(const json_t *schema, const char *key, size_t size)
{
    const json_t *limit = json_object_get(schema, key);

    if (!limit)
        return true;
    if (strncmp(key, "min", 3) == 0)
        return (json_int_t)size >= json_integer_value(limit);
    return (json_int_t)size <= json_integer_value(limit);
}

static bool keywords_known(const json_t *schema)
{
    static const char *const known[] = {
        "type",
        "enum",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minimum",
        "maximum",
        "maxLength",
        "minLength",
        "maxItems",
        "default",
        "maxProperties",
        "description",
        "contentEncoding",
        "anyOf",
        "x-fastmcp-wrap-result",
    };
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)schema, key, value)
    {
        bool found = false;
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
            found = found || strcmp(known[i], key) == 0;
        if (!found)
            return fail(key, "is a keyword that this checker does not know");
    }
    return true;
}

static bool any_fits(const json_t *choices, const json_t *value)
{
    size_t i;
    json_t *one;

    json_array_foreach(choices, i, one)
    {
        if (schema_fits(one, value))
            return true;
    }
    return !choices || fail("anyOf", "nothing fits");
}

bool schema_fits(const json_t *schema, const json_t *value)
{
    const json_t *type = json_object_get(schema, "type");
    const json_t *choices = json_object_get(schema, "enum");

    if (!keywords_known(schema))
        return false;
    if (type && !type_fits(type, value))
        return fail("type", "is another");
    if (choices && !enum_fits(choices, value))
        return fail("enum", "has no such value");
    if (!range_fits(schema, value) || !size_fits(schema, "minLength", json_string_length(value)) ||
        !size_fits(schema, "maxLength", json_string_length(value)) ||
        !size_fits(schema, "maxItems", json_array_size(value)) ||
        !size_fits(schema, "maxProperties", json_object_size(value)))
        return fail("size", "is out of range");
    return any_fits(json_object_get(schema, "anyOf"), value) && members_fit(schema, value) &&
           items_fit(schema, value);
}
