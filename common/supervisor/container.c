#include "config.h"

#include "common/supervisor/container.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/records/run_lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ENV_NAME_MAX 128

int container_open(struct container *c, const struct supervisor_start *start, void *owner,
                   const struct channel_ops *ops, loop_handler *ready, bool (*tick)(void *owner),
                   struct err *e)
{
    struct engine_address address = start->config->engine;

    *c = (struct container){.start = start, .lock_fd = -1};
    waiters_init(&c->waiters, &c->channel.loop, ready);
    if (channel_open(&c->channel, start->channel, ops, owner, e) < 0)
        return -1;
    c->attend = (struct engine_attend){.fd = c->channel.loop.fd, .tick = tick, .ctx = owner};
    c->lock_fd = run_lock_take(start->root->fd, start->run_id, e);
    address.version = start->version;
    c->engine = c->lock_fd < 0 ? NULL : docker_engine_new(&address, e);
    return c->engine ? 0 : -1;
}

void container_clear(struct container *c)
{
    if (c->engine)
        c->engine->ops->free(c->engine);
    waiters_clear(&c->waiters);
    channel_clear(&c->channel);
    if (c->lock_fd >= 0)
        run_lock_remove(c->start->root->fd, c->start->run_id);
    auto_close_fd(&c->lock_fd);
}

int container_start(struct container *c, struct engine_spec *spec, struct err *e)
{
    const struct supervisor_start *start = c->start;
    const struct broker_config *config = start->config;
    char user[48];

    snprintf(user, sizeof user, "%u:%u", config->sandbox_uid, config->sandbox_gid);
    spec->image_name = start->runner ? start->runner->image : spec->image;
    if (start->runner)
        spec->image = start->runner->image_id;
    spec->user = user;
    spec->instance = config->instance;
    spec->run_id = start->run_id;
    spec->runtime = config->runtime;
    spec->limits = config->limits.container;
    return c->engine->ops->start(c->engine, spec, &c->attend, deadline_in_ms(CONTAINER_START_MS),
                                 e);
}

int container_check_size(const char *field, uint64_t len, uint64_t max, struct err *e)
{
    if (len > max)
        return err_set(e, ERR_LIMIT, "%s is %" PRIu64 " bytes; the limit is %" PRIu64, field, len,
                       max);
    return 0;
}

int container_check_request(const struct supervisor_start *start, struct run_request *r,
                            struct err *e)
{
    const struct broker_limits *limits = &start->config->limits;
    uint64_t env = 0;

    for (size_t i = 0; i < r->n_env; i++) {
        size_t name = strlen(r->env[i].name);
        if (name > ENV_NAME_MAX)
            return err_set(e, ERR_LIMIT, "environment: a name is over %d bytes", ENV_NAME_MAX);
        env += name + strlen(r->env[i].value);
    }
    if (container_check_size("code", r->code.len, limits->code_max, e) < 0 ||
        container_check_size("stdin", r->input.len, limits->stdin_max, e) < 0 ||
        container_check_size("environment", env, limits->env_max, e) < 0)
        return -1;
    if (r->timeout_ms > limits->timeout_max_ms)
        return err_set(e, ERR_LIMIT, "timeout is %" PRIu64 " ms; the limit is %" PRIu64,
                       r->timeout_ms, limits->timeout_max_ms);
    if (r->timeout_ms == 0)
        r->timeout_ms = limits->timeout_ms;
    return 0;
}

struct container_env container_env_new(const struct run_request *r, const struct sandbox *sandbox,
                                       const char *index_url)
{
    struct container_env env = {.items = mem_array(r->n_env + 2, sizeof *env.items)};

    for (size_t i = 0; i < r->n_env; i++)
        if (strcmp(r->env[i].name, "FILE_BASE_URL") != 0)
            env.items[env.n++] = mem_printf("%s=%s", r->env[i].name, r->env[i].value);
    AUTO_FREE char *url = sandbox_url(sandbox);
    env.items[env.n++] = mem_printf("FILE_BASE_URL=%s", url);
    if (index_url)
        env.items[env.n++] = mem_printf("SANDBOX_INDEX_URL=%s", index_url);
    return env;
}

void container_env_clear(struct container_env *env)
{
    for (size_t i = 0; i < env->n; i++)
        free((char *)(uintptr_t)env->items[i]);
    free(env->items);
}
