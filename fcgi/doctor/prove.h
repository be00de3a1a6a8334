/* The walls around programs, as they are on this machine: what is found out about each. */
#pragma once

#include "fcgi/doctor/findings.h"
#include "fcgi/doctor/prove_walls.h"

/* What a run of w's program proves: FINDING_OK (the wall holds), FINDING_WRONG (it is missing) or
 * FINDING_NOTE (it could not be tried). result: of broker_run; NULL: *e says why there is none. */
void wall_judge(const struct wall *w, const json_t *result, const struct err *e,
                struct findings *out);

/* The same for what the broker's status tells: quotas, users, limits, network. */
void walls_of_status(const struct settings *s, const json_t *status, struct findings *out);

/* The sentence under the list; "isolated" only if each wall holds. Returns the exit status. */
int walls_sum_up(const struct findings *f, struct buf *out);
