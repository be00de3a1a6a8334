#include "config.h"

#include "common/supervisor/request.h"

#include "common/base/auto.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ENV_NAME_MAX 128

int request_check_size(const char *field, uint64_t len, uint64_t max, struct err *e)
{
    if (len > max)
        return err_set(e, ERR_LIMIT, "%s is %" PRIu64 " bytes; the limit is %" PRIu64, field, len,
                       max);
    return 0;
}

int request_check(const struct supervisor_start *start, struct run_request *r, struct err *e)
{
    const struct broker_limits *limits = &start->config->limits;
    uint64_t env = 0;

    for (size_t i = 0; i < r->n_env; i++) {
        size_t name = strlen(r->env[i].name);
        if (name > ENV_NAME_MAX)
            return err_set(e, ERR_LIMIT, "environment: a name is over %d bytes", ENV_NAME_MAX);
        env += name + strlen(r->env[i].value);
    }
    if (request_check_size("code", r->code.len, limits->code_max, e) < 0 ||
        request_check_size("stdin", r->input.len, limits->stdin_max, e) < 0 ||
        request_check_size("environment", env, limits->env_max, e) < 0)
        return -1;
    if (r->timeout_ms > limits->timeout_max_ms)
        return err_set(e, ERR_LIMIT, "timeoutMs is %" PRIu64 "; the limit is %" PRIu64,
                       r->timeout_ms, limits->timeout_max_ms);
    if (r->timeout_ms == 0)
        r->timeout_ms = limits->timeout_ms;
    return 0;
}

struct request_env request_env_new(const struct run_request *r, const struct sandbox *sandbox,
                                   const char *index_url)
{
    struct request_env env = {.items = mem_array(r->n_env + 2, sizeof *env.items)};

    for (size_t i = 0; i < r->n_env; i++)
        if (strcmp(r->env[i].name, "FILE_BASE_URL") != 0)
            env.items[env.n++] = mem_printf("%s=%s", r->env[i].name, r->env[i].value);
    AUTO_FREE char *url = sandbox_url(sandbox);
    env.items[env.n++] = mem_printf("FILE_BASE_URL=%s", url);
    if (index_url)
        env.items[env.n++] = mem_printf("SANDBOX_INDEX_URL=%s", index_url);
    return env;
}

void request_env_clear(struct request_env *env)
{
    for (size_t i = 0; i < env->n; i++)
        free((char *)(uintptr_t)env->items[i]);
    free(env->items);
}
