/* Suggestions while somebody types: up to COMPLETE_MAX values that begin with what is there
 * already, as a new array of strings; NULL when nothing can be suggested. */
#ifndef SANDCGI_TOOLS_COMPLETE_H
#define SANDCGI_TOOLS_COMPLETE_H

#include "common/tools/tools.h"

#define COMPLETE_MAX 100

json_t *complete_language(const struct tools_app *app, const char *value);
json_t *complete_conversation(const struct tools_app *app, const char *tenant, const char *value);
/* conversation NULL: not said yet. */
json_t *complete_file(const struct tools_app *app, const char *tenant, const char *conversation,
                      const char *value);

#endif
