#include "config.h"

#include "common/supervisor/run_limits.h"

#include "common/base/mem.h"

#include <inttypes.h>
#include <string.h>

#define ENV_NAME_MAX 128

int run_limits_check_size(const char *field, uint64_t len, uint64_t max, struct err *e)
{
    if (len > max)
        return err_set(e, ERR_LIMIT, "%s is %" PRIu64 " bytes; the limit is %" PRIu64, field, len,
                       max);
    return 0;
}

int run_limits_check_env(const struct run_request *r, uint64_t max, struct err *e)
{
    uint64_t total = 0;
    for (size_t i = 0; i < r->n_env; i++) {
        size_t name = strlen(r->env[i].name);
        if (name > ENV_NAME_MAX)
            return err_set(e, ERR_LIMIT, "environment: a name is over %d bytes", ENV_NAME_MAX);
        total += name + strlen(r->env[i].value);
    }
    return run_limits_check_size("environment", total, max, e);
}

char **run_env_new(const struct run_request *r, const struct sandbox *sandbox,
                   const char *index_url, size_t *out_n)
{
    char **env = mem_array(r->n_env + 2, sizeof *env);
    size_t n = 0;
    for (size_t i = 0; i < r->n_env; i++)
        if (strcmp(r->env[i].name, "FILE_BASE_URL") != 0)
            env[n++] = mem_printf("%s=%s", r->env[i].name, r->env[i].value);
    AUTO_FREE char *url = sandbox_url(sandbox);
    env[n++] = mem_printf("FILE_BASE_URL=%s", url);
    if (index_url)
        env[n++] = mem_printf("SANDBOX_INDEX_URL=%s", index_url);
    *out_n = n;
    return env;
}

void run_env_free(char **env, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(env[i]);
    free(env);
}
