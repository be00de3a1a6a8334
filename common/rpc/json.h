/*
 * Bounded JSON (RFC 8259) on top of jansson: what comes from outside is checked before it becomes a
 * tree. Values are owned by exactly one json_auto_t or by a container; use the _new setters.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#include <jansson.h>
#include <stddef.h>

#define JSON_MAX_DEPTH  64      /* nesting of arrays and objects accepted from outside */
#define JSON_MAX_VALUES 200000u /* opening brackets, commas and colons: 22 MB as a tree */

/*
 * Parses exactly len bytes as one JSON value. ERR_INVALID (text: what and where, without quoting
 * the input) on malformed, duplicate-key, non-UTF-8 or trailing content; ERR_LIMIT on nesting
 * deeper than max_depth and on more than JSON_MAX_VALUES values. "\u0000" in strings is accepted:
 * the user of the string decides. Returns a new reference or NULL.
 */
json_t *json_parse(const char *text, size_t len, unsigned max_depth, struct err *e);

/* Appends the compact text of value to out; -1 only when out is full. */
int json_write(const json_t *value, struct buf *out);
/* The same, indented by two blanks. */
int json_write_pretty(const json_t *value, struct buf *out);

/* A JSON string of arbitrary bytes: broken UTF-8 is repaired (U+FFFD), NULs are kept. New
 * reference. */
json_t *json_from_bytes(const char *data, size_t len);

/*
 * Object members by name with type checks: NULL or the fallback when absent or of another type.
 * Borrowed. A string with a NUL inside counts as another type, so that its first part is never
 * taken for the whole.
 */
const char *json_get_string(const json_t *object, const char *name);
/* Copies it, cut to size with its NUL; "" when absent. */
void json_copy_string(const json_t *object, const char *name, char *out, size_t size);
json_int_t json_get_integer(const json_t *object, const char *name, json_int_t fallback);
int json_get_bool(const json_t *object, const char *name, int fallback);

/* The index of the string in the array; the array's size when it is not there. */
size_t json_index_of(const json_t *array, const char *text);

/* Inserts the object into rows that are sorted by createdAt, the newest first, and those of the
 * same second by the string of the name id. */
void json_insert_newest(json_t *rows, const char *id, json_t *take_row);
