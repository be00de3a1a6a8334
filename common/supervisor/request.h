/* What a call wants to run: its limits (workers are not trusted, so they are checked again) and its
 * environment. */
#pragma once

#include "common/supervisor/supervisor.h"

/* ERR_LIMIT naming field when len is over max. */
int request_check_size(const char *field, uint64_t len, uint64_t max, struct err *e);
/* Code, stdin, environment and timeout; sets the default timeout. */
int request_check(const struct supervisor_start *start, struct run_request *r, struct err *e);

/* "NAME=value" of every variable; FILE_BASE_URL is always ours. */
struct request_env {
    const char **items;
    size_t n;
};
#define AUTO_REQUEST_ENV AUTO(request_env_clear)

struct request_env request_env_new(const struct run_request *r, const struct sandbox *sandbox,
                                   const char *index_url);
void request_env_clear(struct request_env *env);
