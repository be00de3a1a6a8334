/* The process of a job: one operation on one connection, from the request to the answer. */
#ifndef SANDCGI_JOBS_JOB_MAIN_H
#define SANDCGI_JOBS_JOB_MAIN_H

#include "common/jobs/job.h"

/* Carries out what head asks for and answers on fd; failures are answers. passed_fd rode along with
 * head, -1: none. */
void job_main(const struct job_world *world, int fd, const json_t *head, int passed_fd);

#endif
