/* The modules that a program imports, by a quick scan of its lines: a hint for choosing among the
 * warm containers, and for loading libraries. Wrong or missing names only cost time. */
#pragma once

#include "common/protocol/run.h"

#include <jansson.h>

#define WANTS_MAX      64 /* names */
#define WANTS_NAME_MAX 64 /* bytes of one; longer ones are left out */

/* The names, each once, as a new array; NULL for a language that we do not know. code is hostile
 * text. */
json_t *imports_of(const char *language, struct run_text code);
