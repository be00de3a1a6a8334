#include "config.h"

#include "common/supervisor/request.h"

#include "common/base/auto.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ENV_NAME_MAX 128
#define ENV_OURS     3 /* variables of ours at most */

int request_check_size(const char *field, uint64_t len, uint64_t max, struct err *e)
{
    if (len > max)
        return err_set(e, ERR_LIMIT, "%s is %" PRIu64 " bytes; the limit is %" PRIu64, field, len,
                       max);
    return 0;
}

static int check_env(const struct run_body *body, uint64_t max, struct err *e)
{
    uint64_t total = 0;

    for (size_t i = 0; i < body->n_env; i++) {
        if (strcspn(body->env[i], "=") > ENV_NAME_MAX)
            return err_set(e, ERR_LIMIT, "environment: a name is over %d bytes", ENV_NAME_MAX);
        total += strlen(body->env[i]) - 1; /* without the '=' */
    }
    return request_check_size("environment", total, max, e);
}

int request_check(const struct supervisor_start *start, struct run_request *r,
                  const struct run_body *body, struct err *e)
{
    const struct broker_limits *limits = &start->config->limits;

    if (request_check_size("code", body->code_len, limits->code_max, e) < 0 ||
        request_check_size("stdin", body->input_len, limits->stdin_max, e) < 0 ||
        check_env(body, limits->env_max, e) < 0)
        return -1;
    if (r->timeout_ms > limits->timeout_max_ms)
        return err_set(e, ERR_LIMIT, "timeoutMs is %" PRIu64 "; the limit is %" PRIu64,
                       r->timeout_ms, limits->timeout_max_ms);
    if (r->timeout_ms == 0)
        r->timeout_ms = limits->timeout_ms;
    return 0;
}

/* Are both of the same variable? */
static bool same_name(const char *a, const char *b)
{
    size_t len = strcspn(a, "=") + 1;

    return strncmp(a, b, len) == 0;
}

void request_env_add_default(struct request_env *env, const char *item)
{
    for (size_t i = 0; i < env->n; i++)
        if (same_name(env->items[i], item))
            return;
    env->items[env->n++] = item;
}

struct request_env request_env_new(const struct run_body *body, const struct sandbox *sandbox,
                                   const char *index_url)
{
    size_t n = body ? body->n_env : 0;
    struct request_env env = {.items = mem_array(n + ENV_OURS, sizeof *env.items)};
    AUTO_FREE char *url = sandbox_url(sandbox);

    env.base_url = mem_printf("FILE_BASE_URL=%s", url);
    if (index_url)
        env.index_url = mem_printf("SANDBOX_INDEX_URL=%s", index_url);
    for (size_t i = 0; i < n; i++)
        if (!same_name(body->env[i], env.base_url))
            env.items[env.n++] = body->env[i];
    env.items[env.n++] = env.base_url;
    if (index_url)
        env.items[env.n++] = env.index_url;
    return env;
}

void request_env_clear(struct request_env *env)
{
    free(env->items);
    free(env->base_url);
    free(env->index_url);
}
