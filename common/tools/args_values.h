/* Values in another form than their argument's: see args_mend.h, whose part this is. */
#pragma once

#include "common/tools/args.h"

/* A value in its row's form, a new reference; NULL: it is as if left out. language is that of the
 * program, NULL: not known. */
json_t *args_mend_value(const struct arg_row *row, const struct tools_app *app, json_t *value,
                        const char *language, json_t *notices);
