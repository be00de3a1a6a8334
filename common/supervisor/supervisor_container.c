#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/records/index_dir.h"
#include "common/supervisor/run_limits.h"

#include <stdio.h>
#include <string.h>

#define WAIT_MAX_S 7200 /* the pool replaces what waits long before that */

/* What an installation is told of where its packages come from; NULL: it is none. */
static const char *index_url(const struct supervisor *s)
{
    return s->source ? s->source->url : NULL;
}

/* How long somebody else has to leave the container alone. */
static int64_t deadline_of(const struct supervisor *s)
{
    uint64_t run_ms = s->claimed ? s->request.timeout_ms : s->start->config->limits.timeout_max_ms;

    return clock_unix_s() + (s->claimed ? 0 : WAIT_MAX_S) +
           (int64_t)(run_ms + SUPERVISOR_START_MS) / 1000 + 1;
}

int supervisor_start_container(struct supervisor *s, const char *data_path, struct err *e)
{
    const struct supervisor_start *start = s->start;
    const struct broker_config *config = start->config;
    size_t n_env = 0;
    char **env = start->runner->protocol == 0 && s->claimed
                     ? run_env_new(&s->request, &s->sandbox, index_url(s), &n_env)
                     : NULL;
    AUTO_FREE char *index_path = s->source ? index_dir_host_path(start->root, start->run_id) : NULL;
    char user[48];

    snprintf(user, sizeof user, "%u:%u", config->sandbox_uid, config->sandbox_gid);
    struct engine_spec spec = {
        .image = start->runner->image_id,
        .image_name = start->runner->image,
        .protocol = start->runner->protocol,
        .data_path = data_path,
        .user = user,
        .instance = config->instance,
        .run_id = start->run_id,
        .deadline_unix = deadline_of(s),
        .runtime = config->runtime,
        .network = s->request.network,
        .index_path = index_path,
        .limits = config->limits.container,
        .env = (const char *const *)env,
        .n_env = n_env,
    };
    s->started = s->engine->ops->start(s->engine, &spec, &s->attend,
                                       deadline_in_ms(SUPERVISOR_START_MS), e) == 0;
    run_env_free(env, n_env);
    if (s->started && s->claimed)
        supervisor_say_started(s);
    return s->started ? 0 : -1;
}

static int hand_over(struct supervisor *s, const struct engine_program *program,
                     struct engine_outcome *out, struct err *e)
{
    struct engine_sink sink = {.output = supervisor_take_output, .ctx = s};
    struct deadline d = deadline_in_ms((int64_t)program->timeout_ms + SUPERVISOR_START_MS);

    s->began_ms = clock_mono_ms();
    supervisor_ring(s); /* while the program runs there is time for what need not be before it */
    return s->engine->ops->run(s->engine, program, &sink, &s->attend, d, out, e);
}

/* In the container that waits or in a new one; in another if it was gone before it got the program.
 */
static int run_somewhere(struct supervisor *s, const struct engine_program *program,
                         struct engine_outcome *out, struct err *e)
{
    AUTO_FREE char *data_path = sandbox_host_path(&s->sandbox);

    for (int tries = 1;; tries++) {
        if (!s->started && supervisor_start_container(s, data_path, e) < 0)
            return -1;
        if (hand_over(s, program, out, e) == 0)
            return 0;
        if (e->kind != ERR_LOST || tries == SUPERVISOR_STARTS || s->stop)
            return -1;
        log_debug("run %s: %s; starting another", s->start->run_id, e->text);
        s->started = false;
    }
}

int supervisor_run_program(struct supervisor *s, struct engine_outcome *out, struct err *e)
{
    const struct run_request *r = &s->request;
    size_t n_env;
    char **env = run_env_new(&s->request, &s->sandbox, index_url(s), &n_env);
    const char **args = mem_array(r->n_args + 1, sizeof *args);

    for (size_t i = 0; i < r->n_args; i++)
        args[i] = r->args[i].data;
    const struct engine_program program = {
        .code = r->code.data,
        .code_len = r->code.len,
        .input = r->input.data,
        .input_len = r->input.len,
        .args = args,
        .n_args = r->n_args,
        .env = (const char *const *)env,
        .n_env = n_env,
        .timeout_ms = r->timeout_ms,
    };
    int result = run_somewhere(s, &program, out, e);
    run_env_free(env, n_env);
    free(args);
    return result;
}
