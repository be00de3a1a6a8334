/* The runner images that the housekeeper has found, as the main process knows them. */
#pragma once

#include "common/base/err.h"
#include "common/engine/engine.h"

#include <jansson.h>

struct runners {
    struct engine_runners list;
    char version[16];                                 /* of the engine's API; "": unknown */
    char engine_error[sizeof((struct err *)0)->text]; /* why the engine cannot be reached; "": it
                                                         can be */
};

/* Valid until the list changes. NULL: ERR_UNAVAILABLE (no engine), or ERR_NOT_FOUND, which names
 * the languages that there are. */
const struct engine_runner *runners_find(const struct runners *r, const char *language,
                                         struct err *e);

/* The list as JSON, as the housekeeper sends it, and back. */
json_t *runners_encode(const struct engine_runners *list);
void runners_decode(const json_t *json, struct engine_runners *out);
