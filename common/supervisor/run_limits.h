/* What a caller hands over for its program: its bounds (the broker trusts no worker), and the
 * environment made of it. Private to common/broker. */
#ifndef SANDCGI_SUPERVISOR_RUN_LIMITS_H
#define SANDCGI_SUPERVISOR_RUN_LIMITS_H

#include "common/protocol/run.h"
#include "common/sandbox/sandbox.h"

/* ERR_LIMIT naming field when len is over max. */
int run_limits_check_size(const char *field, uint64_t len, uint64_t max, struct err *e);
/* All names and values together; and each name. */
int run_limits_check_env(const struct run_request *r, uint64_t max, struct err *e);

/* "NAME=value" of every variable, FILE_BASE_URL last and ours. *out_n of them; to be freed with
 * run_env_free. */
char **run_env_new(const struct run_request *r, const struct sandbox *sandbox,
                   const char *index_url, size_t *out_n);
void run_env_free(char **env, size_t n);

#endif
