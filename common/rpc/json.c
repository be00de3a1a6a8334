#include "config.h"

#include "common/rpc/json.h"

#include "common/base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Texts of our own: the library's quote what the client sent. */
static const char *reason(enum json_error_code code)
{
    switch (code) {
    case json_error_premature_end_of_input:
        return "it ends too early";
    case json_error_end_of_input_expected:
        return "something follows the value";
    case json_error_invalid_utf8:
        return "it is not valid UTF-8";
    case json_error_duplicate_key:
        return "a key appears twice in one object";
    case json_error_numeric_overflow:
        return "a number is too large";
    case json_error_null_byte_in_key:
    case json_error_null_character:
        return "a key holds a NUL";
    default:
        return "the syntax is wrong";
    }
}

/*
 * A tree needs up to 75 times its text's memory, so the bounds are checked before it is built. Each
 * value and key but the first follows one of `[ { , :` outside strings. On text that is not JSON
 * the counts mean little, but the parser refuses that anyway.
 */
static int check_bounds(const char *text, size_t len, unsigned max_depth, struct err *e)
{
    unsigned depth = 0, marks = 0;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '"') {
            for (i++; i < len && text[i] != '"'; i++)
                i += text[i] == '\\';
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        } else if (c == '[' || c == '{' || c == ',' || c == ':') {
            if ((c == '[' || c == '{') && ++depth > max_depth)
                return err_set(e, ERR_LIMIT, "JSON: arrays and objects nest deeper than %u",
                               max_depth);
            if (++marks > JSON_MAX_VALUES)
                return err_set(e, ERR_LIMIT, "JSON: there are more than %u values and keys",
                               JSON_MAX_VALUES);
        }
    }
    return 0;
}

json_t *json_parse(const char *text, size_t len, unsigned max_depth, struct err *e)
{
    if (check_bounds(text, len, max_depth, e) < 0)
        return NULL;
    /* jansson 2.14 ignores a NUL after a number. */
    if (len > 0 && memchr(text, 0, len)) {
        err_set(e, ERR_INVALID, "JSON: a NUL byte is not part of any text");
        return NULL;
    }
    json_error_t problem;
    json_t *value = json_loadb(text ? text : "", len,
                               JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &problem);
    if (!value)
        err_set(e, ERR_INVALID, "JSON: %s, near line %d, column %d",
                reason(json_error_code(&problem)), problem.line, problem.column);
    return value;
}

static int append(const char *text, size_t len, void *out)
{
    buf_add(out, text, len);
    return buf_ok(out) ? 0 : -1;
}

/* As many digits as each double keeps: 1.009, not 1.0089999999999999. */
#define WRITE_FLAGS (JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))

int json_write(const json_t *value, struct buf *out)
{
    return json_dump_callback(value, append, out, JSON_COMPACT | WRITE_FLAGS);
}

int json_write_pretty(const json_t *value, struct buf *out)
{
    return json_dump_callback(value, append, out, JSON_INDENT(2) | WRITE_FLAGS);
}

json_t *json_from_bytes(const char *data, size_t len)
{
    if (len == 0)
        return json_string("");
    if (utf8_valid(data, len))
        return json_stringn_nocheck(data, len);
    /* Each broken byte becomes three at worst. */
    AUTO_BUF struct buf whole = BUF_INIT(len > PTRDIFF_MAX / 4 ? PTRDIFF_MAX - 1 : 3 * len);
    utf8_repair(data, len, &whole);
    return buf_ok(&whole) ? json_stringn_nocheck(whole.data, whole.len) : NULL;
}

const char *json_get_string(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    const char *s = json_string_value(value);
    return s && strlen(s) == json_string_length(value) ? s : NULL;
}

void json_copy_string(const json_t *object, const char *name, char *out, size_t size)
{
    const char *s = json_get_string(object, name);

    snprintf(out, size, "%s", s ? s : "");
}

json_int_t json_get_integer(const json_t *object, const char *name, json_int_t fallback)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

int json_get_bool(const json_t *object, const char *name, int fallback)
{
    const json_t *value = json_object_get(object, name);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

size_t json_index_of(const json_t *array, const char *text)
{
    size_t i;
    json_t *one;

    json_array_foreach(array, i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), text) == 0)
            break;
    }
    return i;
}

void json_insert_newest(json_t *rows, const char *id, json_t *take_row)
{
    const char *own_id = json_get_string(take_row, id);
    const json_int_t own = json_get_integer(take_row, "createdAt", 0);
    size_t at = 0;

    for (const json_t *row; (row = json_array_get(rows, at)); at++) {
        const json_int_t created = json_get_integer(row, "createdAt", 0);
        const char *row_id = json_get_string(row, id);

        if (created < own || (created == own && row_id && own_id && strcmp(row_id, own_id) > 0))
            break;
    }
    json_array_insert_new(rows, at, take_row);
}
