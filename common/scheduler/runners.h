/* What the housekeeper has found out about the engine, as the main process knows it. */
#pragma once

#include "common/base/err.h"
#include "common/engine/engine.h"

#include <jansson.h>

/* Does the engine bound what the programs in its containers take? */
enum limits_verdict {
    LIMITS_UNKNOWN, /* not tried yet, or the trial itself failed */
    LIMITS_HOLD,
    LIMITS_FAIL,
    LIMITS_VERDICTS
};

struct runners {
    struct engine_runners list;
    struct engine_facts facts;
    int engine_sys;                                   /* the errno behind it */
    char engine_error[sizeof((struct err *)0)->text]; /* why nothing can run: the engine cannot be
                                                         reached, or its limits must hold first; "":
                                                         programs can run */
    enum limits_verdict limits;
    char limits_error[400]; /* why they do not hold, or why it is not known; "": they do, or not
                               tried yet */
    bool network_tested[NETWORK_TIERS];
    /* Why no program may have a network of the tier; "": it may. */
    char network_error[NETWORK_TIERS][200];
};

/* Valid until the list changes. NULL: ERR_UNAVAILABLE (no engine), or ERR_NOT_FOUND, which names
 * the languages that there are. */
const struct engine_runner *runners_find(const struct runners *r, const char *language,
                                         struct err *e);

/* That language of the image, or (NULL) the one whose libraries can be preloaded, else any; NULL:
 * it has none. */
const struct engine_runner *runners_of_image(const struct engine_runners *runners,
                                             const char *image_id, const char *language);

/* May a call have the network that it wants, with limit as the most? */
int runners_check_network(const struct runners *r, enum network_tier limit,
                          enum network_tier wanted, struct err *e);

/* The list as JSON, as the housekeeper sends it, and back. */
json_t *runners_encode(const struct engine_runners *list);
void runners_decode(const json_t *json, struct engine_runners *out);
