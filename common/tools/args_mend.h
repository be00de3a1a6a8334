/*
 * What clients and models write for an argument that has one meaning, and is not its form: numbers
 * as text, a name in another style, a path as programs write it. common/arguments.md has the table,
 * which tests/unit/tools/test_args_mend.c runs.
 */
#pragma once

#include "common/tools/args.h"

/*
 * The arguments in the form that args_fill takes; shares what needs no change. Sentences about what
 * was not taken as it is are appended to notices. NULL with *e: an unknown argument is meant for a
 * required one.
 */
json_t *args_mend(const struct arg_row *table, const struct tools_app *app, const json_t *arguments,
                  json_t *notices, struct err *e);

/* Does a name differ from another by a letter or two? */
bool args_near(const char *name, const char *other);
