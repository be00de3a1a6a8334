/* A small JSON Schema checker: the keywords that our own schemas use, and an error for any other.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Does value fit? If not, says on standard error where and why. */
bool schema_fits(const json_t *schema, const json_t *value);
