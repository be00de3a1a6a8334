/*
 * Looking in on runs that no supervisor answers for: they are over, or whoever looked after them
 * died. What job children do for get_run, cancel_run and list_runs; a run that goes on is handed to
 * its supervisor instead. Private to common/broker.
 */
#ifndef SANDCGI_JOBS_RUN_LOOKUP_H
#define SANDCGI_JOBS_RUN_LOOKUP_H

#include "common/base/err.h"
#include "common/sandbox/sandbox.h"
#include "common/scheduler/children.h"

#include <jansson.h>

/*
 * The result that a get_run or cancel_run (which changes nothing any more) is answered with. A run
 * that has just ended gets a moment to leave its result. New reference, or NULL: ERR_NOT_FOUND in
 * one text for all.
 */
json_t *run_lookup_get(const struct sandbox_root *root, const json_t *head, struct err *e);

/* {"runs":[…]} with the rows of run_record_list: the tenant's kept runs, and those that go on by
 * the books; the newest first, up to RUN_LIST_MAX. New reference, or NULL. */
json_t *run_lookup_list(const struct sandbox_root *root, const struct children *children,
                        const json_t *head, struct err *e);

#endif
