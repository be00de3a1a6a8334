#include "config.h"

#include "common/broker/job.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/broker/run_result.h"
#include "common/broker/runlock.h"
#include "common/broker/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define START_ALLOWANCE_MS                                                                         \
    30000 /* for the engine to get the container going; not the program's time */
#define KEEP_BYTES_MAX (8u * 1024 * 1024)
#define ENV_NAME_MAX   128

/* One run, from the request to the result. */
struct running {
    const struct job_world *world;
    struct run_request request;
    const struct engine_runner *runner;
    struct sandbox sandbox;
    char run_id[RUN_ID_LEN + 1];
    struct slot *slot;
    int lock_fd;
    struct run_capture capture;
};

static const struct engine_runner *find_runner(const struct engine_runners *runners,
                                               const char *language, struct err *e)
{
    AUTO_BUF struct buf known = BUF_INIT(400);
    for (size_t i = 0; i < runners->n; i++) {
        if (strcmp(runners->items[i].language, language) == 0)
            return &runners->items[i];
        buf_addf(&known, "%s%s", i ? ", " : "", runners->items[i].language);
    }
    if (runners->n == 0)
        err_set(e, ERR_NOT_FOUND,
                "no runner image is installed; run runners/build.sh on the server");
    else
        err_set(e, ERR_NOT_FOUND, "language: unknown; there are: %s", buf_str(&known));
    return NULL;
}

static int check_size(const char *field, uint64_t len, uint64_t max, struct err *e)
{
    if (len > max)
        return err_set(e, ERR_LIMIT, "%s is %" PRIu64 " bytes; the limit is %" PRIu64, field, len,
                       max);
    return 0;
}

static int check_env(const struct run_request *r, uint64_t max, struct err *e)
{
    uint64_t total = 0;
    for (size_t i = 0; i < r->n_env; i++) {
        size_t name = strlen(r->env[i].name);
        if (name > ENV_NAME_MAX)
            return err_set(e, ERR_LIMIT, "environment: a name is over %d bytes", ENV_NAME_MAX);
        total += name + strlen(r->env[i].value);
    }
    return check_size("environment", total, max, e);
}

/* The broker trusts no worker: everything the tools check about limits is checked here again. */
static int check_request(const struct job_world *world, struct run_request *r,
                         const struct engine_runner *runner, struct err *e)
{
    const struct broker_limits *limits = &world->config->limits;

    if (check_size("code", r->code.len, limits->code_max, e) < 0 ||
        check_size("stdin", r->input.len, limits->stdin_max, e) < 0 ||
        check_env(r, limits->env_max, e) < 0)
        return -1;
    if (r->network && !limits->network)
        return err_set(e, ERR_DENIED, "network: this server does not allow it (SANDBOX_NETWORK)");
    if (r->timeout_ms > limits->timeout_max_ms)
        return err_set(e, ERR_LIMIT, "timeout is %" PRIu64 " ms; the limit is %" PRIu64,
                       r->timeout_ms, limits->timeout_max_ms);
    if (runner->protocol == 0 && (r->input.data || r->n_args > 0))
        return err_set(e, ERR_INVALID,
                       "stdin and args: the runner image for %s takes only code (it has no "
                       "sandbox.protocol label)",
                       runner->language);
    if (r->timeout_ms == 0)
        r->timeout_ms = limits->timeout_ms;
    if (r->keep_bytes == 0 || r->keep_bytes > KEEP_BYTES_MAX)
        r->keep_bytes = limits->output_keep;
    return 0;
}

/* "NAME=value" of every variable, FILE_BASE_URL last and ours; NULL-free, n + 1 long. The array and
 * its texts are the caller's. */
static char **env_new(const struct running *run, size_t *out_n)
{
    const struct run_request *r = &run->request;
    char **env = mem_array(r->n_env + 1, sizeof *env);
    size_t n = 0;
    for (size_t i = 0; i < r->n_env; i++)
        if (strcmp(r->env[i].name, "FILE_BASE_URL") != 0)
            env[n++] = mem_printf("%s=%s", r->env[i].name, r->env[i].value);
    AUTO_FREE char *url = sandbox_url(&run->sandbox);
    env[n++] = mem_printf("FILE_BASE_URL=%s", url);
    *out_n = n;
    return env;
}

/* The asker has nothing more to say: what comes is the end of the connection. */
static bool asker_left(void *ctx)
{
    (void)ctx;
    return false;
}

static int start_and_run(struct running *run, struct engine *engine, const struct engine_spec *spec,
                         const struct engine_program *program, int cancel_fd,
                         struct engine_outcome *outcome, struct err *e)
{
    struct deadline d = deadline_in_ms((int64_t)program->timeout_ms + START_ALLOWANCE_MS);
    const struct engine_attend attend = {.fd = cancel_fd, .turn = asker_left};
    struct engine_sink sink = run_capture_sink(&run->capture);

    if (engine->ops->start(engine, spec, &attend, d, e) < 0)
        return -1;
    return engine->ops->run(engine, program, &sink, &attend, d, outcome, e);
}

static int run_in_engine(struct running *run, struct engine *engine, int cancel_fd,
                         struct engine_outcome *outcome, struct err *e)
{
    const struct broker_config *config = run->world->config;
    const struct run_request *r = &run->request;
    AUTO_FREE char *data_path = sandbox_host_path(&run->sandbox);
    char user[48];
    snprintf(user, sizeof user, "%u:%u", config->sandbox_uid, config->sandbox_gid);
    size_t n_env;
    char **env = env_new(run, &n_env);
    const char **args = mem_array(r->n_args + 1, sizeof *args);
    for (size_t i = 0; i < r->n_args; i++)
        args[i] = r->args[i].data;

    uint64_t whole_ms = r->timeout_ms + START_ALLOWANCE_MS;
    struct engine_spec spec = {
        .image = run->runner->image_id,
        .protocol = run->runner->protocol,
        .data_path = data_path,
        .user = user,
        .instance = config->instance,
        .run_id = run->run_id,
        .deadline_unix = clock_unix_s() + (int64_t)(whole_ms / 1000) + 1,
        .runtime = config->runtime,
        .network = r->network,
        .limits = config->limits.container,
        .env = (const char *const *)env,
        .n_env = n_env,
    };
    struct engine_program program = {
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
    int result = start_and_run(run, engine, &spec, &program, cancel_fd, outcome, e);
    for (size_t i = 0; i < n_env; i++)
        free(env[i]);
    free(env);
    free(args);
    return result;
}

static int begin(struct running *run, struct err *e)
{
    run->slot = slots_take(run->world->slots);
    if (!run->slot)
        return err_set(e, ERR_BUSY, "%zu programs are running, which is the limit; try again soon",
                       run->world->slots->n);
    crypto_random_hex(RUN_ID_LEN / 2, run->run_id);
    memcpy(run->slot->run_id, run->run_id, sizeof run->run_id);
    run->lock_fd = runlock_take(run->world->root->fd, run->run_id, e);
    return run->lock_fd < 0 ? -1 : 0;
}

static json_t *carry_out(struct running *run, int cancel_fd, struct engine *engine, struct err *e)
{
    const struct run_request *r = &run->request;
    AUTO_SNAPSHOT struct snapshot before = SNAPSHOT_INIT;
    AUTO_SNAPSHOT struct snapshot after = SNAPSHOT_INIT;
    struct engine_outcome outcome;

    if (sandbox_open(run->world->root, r->tenant, r->conversation, &run->sandbox, e) < 0 ||
        snapshot_take(&run->sandbox, &before, e) < 0)
        return NULL;
    job_note_use(&run->sandbox, r->tenant, r->conversation);
    run_capture_init(&run->capture, r->keep_bytes, run->world->config->limits.output_max);
    if (run_in_engine(run, engine, cancel_fd, &outcome, e) < 0) {
        if (e->kind == ERR_NOT_FOUND) /* the engine knows it by its id only */
            err_set(e, ERR_NOT_FOUND, "the runner image %s is missing on the server",
                    run->runner->image);
        return NULL;
    }
    if (outcome.end == ENGINE_CANCELLED) {
        err_set(e, ERR_CANCELLED, "the asker went away");
        return NULL;
    }
    if (snapshot_take(&run->sandbox, &after, e) < 0)
        return NULL;
    log_info("run %s language=%s status=%s exit=%d ms=%" PRId64, run->run_id, run->runner->language,
             run_status_name(run_result_status(&outcome)), outcome.exit_code,
             (outcome.ended_us - outcome.started_us) / 1000);
    return run_result_new(run->run_id, &run->sandbox, &outcome, &run->capture, &before, &after);
}

static void end(struct running *run)
{
    run_capture_clear(&run->capture);
    sandbox_close(&run->sandbox);
    wire_run_decoded_clear(&run->request);
}

json_t *job_run(const struct job_world *world, int fd, const json_t *request,
                struct engine **finish_later, struct err *e)
{
    struct running run = {.world = world, .sandbox = SANDBOX_INIT, .lock_fd = -1};
    struct run_manner manner;
    json_t *result = NULL;

    if (*world->engine_trouble) {
        err_set(e, ERR_UNAVAILABLE, "%s", world->engine_trouble);
        return NULL;
    }
    json_auto_t *body = wire_recv(fd, NULL, deadline_in_ms(30000), e);
    if (body && wire_run_head_decode(request, &run.request, &manner, e) == 0 &&
        wire_run_body_decode(body, &run.request, e) == 0 &&
        (run.runner = find_runner(world->runners, run.request.language, e)) &&
        check_request(world, &run.request, run.runner, e) == 0 && begin(&run, e) == 0) {
        struct engine *engine = docker_engine_new(&world->config->engine, e);
        if (engine)
            result = carry_out(&run, fd, engine, e);
        *finish_later = engine;
    }
    end(&run);
    return result;
}
