/*
 * How many jobs there may be: of a kind whose end a slow peer or the size of something decides, of
 * one tenant, and in all. Runs need no job, and never wait for one. Plain data.
 */
#ifndef SANDCGI_SCHEDULER_JOB_LIMITS_H
#define SANDCGI_SCHEDULER_JOB_LIMITS_H

#include "common/scheduler/children.h"

#define JOBS_MAX 64 /* at once, those of JOB_LIMIT_NONE apart; the kinds together need less */

enum job_answer {
    JOB_MAY_BEGIN,
    JOB_MUST_WAIT, /* for the end of another: soon, since those that last have shares */
    JOB_IS_BUSY,   /* the tenant or the server has its share of this kind: ERR_BUSY */
};

enum job_answer job_limits_ask(const struct children *children, enum job_limit limit,
                               const char *tenant, struct err *e);

#endif
