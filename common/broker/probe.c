#include "config.h"

#include "common/broker/probe.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"

#include <poll.h>
#include <stdio.h>

#define START_MS   30000
#define COMMAND_MS 10000

void probe_clear(struct probe *p)
{
    if (p->engine) {
        p->engine->ops->finish(p->engine);
        p->engine->ops->free(p->engine);
    }
    if (*p->dir)
        warm_dir_remove(p->root, p->dir);
}

int probe_start(struct probe *p, const struct spawner *s, const char *image, enum network_tier tier,
                const struct engine_limits *limits, struct err *e)
{
    const struct broker_config *config = s->config;
    char run_id[RUN_ID_LEN + 1], user[48];
    struct stat dir;

    p->root = s->root;
    p->engine = docker_engine_new(&config->engine, e);
    if (!p->engine || warm_dir_make(s->root, p->dir, e) < 0)
        return -1;
    if (!warm_dir_stat(s->root, p->dir, &dir))
        return err_set(e, ERR_IO, "the test's directory is gone");
    AUTO_FREE char *data_path = warm_dir_host_path(s->root, p->dir);
    crypto_random_hex(RUN_ID_LEN / 2, run_id);
    snprintf(user, sizeof user, "%u:%u", dir.st_uid, dir.st_gid);
    const struct engine_spec spec = {.image = image,
                                     .data_path = data_path,
                                     .user = user,
                                     .instance = config->instance,
                                     .run_id = run_id,
                                     .deadline_unix = clock_unix_s() + 2 * START_MS / 1000,
                                     .runtime = config->runtime,
                                     .network = tier,
                                     .limits = *limits,
                                     .psandbox = true,
                                     .helpers_path = s->helpers_path};
    return p->engine->ops->start(p->engine, &spec, NULL, deadline_in_ms(START_MS), e);
}

int probe_run(struct probe *p, const char *const *argv, size_t n_argv, struct buf *out,
              struct engine_outcome *outcome, struct err *e)
{
    const struct engine_command command = {
        .argv = argv, .n_argv = n_argv, .timeout_ms = COMMAND_MS};
    struct deadline d = deadline_in_ms(COMMAND_MS);
    const struct engine_ops *ops = p->engine->ops;
    struct engine_event ev;
    uint32_t id;

    if (ops->exec(p->engine, &command, &id, e) < 0)
        return -1;
    while (!deadline_passed(d)) {
        if (ops->read(p->engine, &ev, e) < 0)
            return -1;
        if (ev.kind == ENGINE_EVENT_NOTHING) {
            struct pollfd w = {.fd = ops->fd(p->engine), .events = ops->waits(p->engine)};
            poll(&w, 1, deadline_poll_ms(d));
        } else if (ev.kind == ENGINE_EVENT_OUT) {
            buf_add(out, ev.data, ev.len);
        } else if (ev.kind == ENGINE_EVENT_FAILED) {
            return err_set(e, ERR_REFUSED, "the test failed in its container");
        } else if (ev.kind == ENGINE_EVENT_ENDED) {
            *outcome = ev.outcome;
            return 0;
        }
    }
    return err_set(e, ERR_TIMEOUT, "the test did not end in time");
}
