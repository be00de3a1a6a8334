/* What a call wants to run: its limits (workers are not trusted, so they are checked again) and its
 * environment. */
#pragma once

#include "common/protocol/run_body.h"
#include "common/supervisor/supervisor.h"

/* ERR_LIMIT naming field when len is over max. */
int request_check_size(const char *field, uint64_t len, uint64_t max, struct err *e);
/* Code, stdin, environment and timeout; sets the default timeout. */
int request_check(const struct supervisor_start *start, struct run_request *r,
                  const struct run_body *body, struct err *e);

/* "NAME=value" of every variable: the body's, borrowed, and ours, which replace them. */
struct request_env {
    const char **items;
    size_t n;
    char *base_url, *index_url;
};
#define AUTO_REQUEST_ENV AUTO(request_env_clear)

/* body NULL: none; index_url NULL: it is no installation. */
struct request_env request_env_new(const struct run_body *body, const struct sandbox *sandbox,
                                   const char *index_url);
/* Adds one that is not there already. Borrowed. */
void request_env_add_default(struct request_env *env, const char *item);
void request_env_clear(struct request_env *env);
