#include "config.h"

#include "common/scheduler/job_limits.h"

#include "common/base/auto.h"

#include <string.h>

static const struct {
    const char *name;      /* several of them, as their owner knows them; NULL: they wait */
    size_t server, tenant; /* most at once */
} shares[JOB_LIMIT_COUNT] = {
    [JOB_LIMIT_DEFAULT] = {NULL, JOBS_MAX, 16},
    [JOB_LIMIT_DELETION] = {"conversations are being deleted", 12, 6},
    [JOB_LIMIT_IMPORT] = {"files are being fetched", 8, 4},
    [JOB_LIMIT_PACK] = {"archives are being downloaded", 24, 8},
    [JOB_LIMIT_UNPACK] = {"archives are being unpacked", 8, 4},
};

enum job_answer job_limits_ask(const struct children *children, enum job_limit limit,
                               const char *tenant, struct err *e)
{
    size_t all = 0, server = 0, own = 0;

    if (limit == JOB_LIMIT_NONE)
        return JOB_MAY_BEGIN;
    for (const struct child *c = NULL; (c = children_next(children, c));) {
        all += c->limit != JOB_LIMIT_NONE;
        server += c->limit == limit;
        own += c->limit == limit && strcmp(c->tenant, tenant) == 0;
    }
    if (shares[limit].name && own >= shares[limit].tenant) {
        err_set(e, ERR_BUSY,
                "%zu %s for you already, which is the most at once; try again when one of them has "
                "ended",
                shares[limit].tenant, shares[limit].name);
        return JOB_IS_BUSY;
    }
    if (shares[limit].name && server >= shares[limit].server) {
        err_set(e, ERR_BUSY, "%zu %s on this server already; try again in a while",
                shares[limit].server, shares[limit].name);
        return JOB_IS_BUSY;
    }
    return own >= shares[limit].tenant || all >= JOBS_MAX ? JOB_MUST_WAIT : JOB_MAY_BEGIN;
}
