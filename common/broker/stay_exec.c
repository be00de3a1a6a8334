#include "config.h"

#include "common/broker/stay_self.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/broker/keeping.h"
#include "common/broker/run_given.h"
#include "common/broker/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/state.h"

#include <inttypes.h>
#include <string.h>

#define CWD_MAX      4096
#define COMMANDS_MAX (1024u * 1024) /* bytes of all of them */

/* ---- what both kinds of work have in common ---- */

static int check(const struct stay *s, const struct run_request *r, struct err *e)
{
    const struct broker_limits *limits = &s->start->config->limits;

    if (run_given_size("code", r->code.len, limits->code_max, e) < 0 ||
        run_given_size("stdin", r->input.len, limits->stdin_max, e) < 0 ||
        run_given_env(r, limits->env_max, e) < 0)
        return -1;
    if (r->timeout_ms > limits->timeout_max_ms)
        return err_set(e, ERR_LIMIT, "timeout is %" PRIu64 " ms; the limit is %" PRIu64,
                       r->timeout_ms, limits->timeout_max_ms);
    return 0;
}

/* Runner images set it; those of the allow-list may have a home that cannot be written. */
static void add_home(struct run_request *r)
{
    struct run_env *env;

    for (size_t i = 0; i < r->n_env; i++)
        if (strcmp(r->env[i].name, "HOME") == 0)
            return;
    env = mem_resize((void *)(uintptr_t)r->env, r->n_env + 1, sizeof *env);
    env[r->n_env++] = (struct run_env){"HOME", "/tmp"};
    r->env = env;
}

int stay_read_body(struct stay *s, struct stay_ask *a, struct err *e)
{
    json_int_t timeout = json_get_integer(a->head, "timeoutMs", 0);

    if (timeout < 0 || wire_run_body_decode(a->body, &a->request, e) < 0)
        return err_set(e, ERR_INVALID, "the call is not complete");
    a->request.timeout_ms = (uint64_t)timeout;
    if (check(s, &a->request, e) < 0)
        return -1;
    if (!s->language)
        add_home(&a->request);
    if (timeout == 0)
        a->request.timeout_ms = s->start->config->limits.timeout_ms;
    return 0;
}

static void begin_capture(struct stay *s, struct stay_ask *a)
{
    const struct broker_limits *limits = &s->start->config->limits;

    run_capture_clear(&a->capture);
    run_capture_init(&a->capture, limits->output_keep, limits->output_max);
}

int stay_prepare(struct stay *s, struct stay_ask *a, struct err *e)
{
    if (stay_wake(s, e) < 0 || keeping_look_before(&s->sandbox, &a->before, e) < 0)
        return -1;
    begin_capture(s, a);
    if (a->reader && json_get_bool(a->head, "live", 0)) {
        a->live = live_new(STAY_LIVE_BYTES);
        a->reader->live = true;
    }
    a->begun = true;
    a->end = deadline_in_ms((int64_t)a->request.timeout_ms);
    return 0;
}

void stay_kill(struct stay *s, struct stay_ask *a, enum stay_why why)
{
    struct err e = ERR_INIT;

    if (a->why != STAY_NOT_KILLED)
        return;
    a->why = why;
    a->end = deadline_in_ms(0); /* it has STAY_HANGS_MS from now on */
    s->unread = true;
    if (s->engine->ops->stay_kill(s->engine, a->id ? a->id : s->session.id, &e) < 0)
        log_debug("sandbox %s: %s", s->start->run_id, e.text); /* if it is gone that is noticed */
}

struct engine_outcome stay_outcome(const struct stay_ask *a, const struct engine_outcome *o)
{
    static const enum engine_end ends[] = {[STAY_CANCELLED] = ENGINE_CANCELLED,
                                           [STAY_TIMED_OUT] = ENGINE_TIMED_OUT,
                                           [STAY_TOO_MUCH] = ENGINE_OUTPUT_LIMIT,
                                           [STAY_BROKEN] = ENGINE_KILLED};
    struct engine_outcome out = *o;

    if (a->why != STAY_NOT_KILLED)
        out.end = ends[a->why];
    return out;
}

/* ---- commands ---- */

static int check_commands(const struct stay_ask *a, struct err *e)
{
    const char *cwd = json_get_string(a->body, "cwd");
    size_t total = 0;

    for (size_t i = 0; i < a->request.n_args; i++)
        total += a->request.args[i].len;
    if (a->request.n_args == 0 || a->request.n_args > BOX_COMMANDS_MAX)
        return err_set(e, ERR_LIMIT, "commands: from one to %d of them", BOX_COMMANDS_MAX);
    if (cwd && strlen(cwd) > CWD_MAX)
        return err_set(e, ERR_LIMIT, "cwd is over %d bytes", CWD_MAX);
    return run_given_size("commands", total, COMMANDS_MAX, e);
}

/* Absolute, whatever was said. */
static char *cwd_of(const struct stay_ask *a)
{
    const char *cwd = json_get_string(a->body, "cwd");

    if (!cwd || !*cwd)
        return mem_strdup("/data");
    return *cwd == '/' ? mem_strdup(cwd) : mem_printf("/data/%s", cwd);
}

static int send_command(struct stay *s, struct stay_ask *a, struct err *e)
{
    const char *argv[] = {"sh", "-c", a->request.args[a->at].data};
    AUTO_FREE char *cwd = cwd_of(a);
    size_t n_env;
    char **env = run_env_new(&a->request, &s->sandbox, NULL, &n_env);
    int64_t left_ms = a->end.at_ms - clock_mono_ms();
    const struct engine_command command = {
        .argv = argv,
        .n_argv = ARRAY_LEN(argv),
        .cwd = cwd,
        .env = (const char *const *)env,
        .n_env = n_env,
        .input = a->at == 0 ? a->request.input.data : NULL,
        .input_len = a->at == 0 ? a->request.input.len : 0,
        .timeout_ms = left_ms > 1 ? (uint64_t)left_ms : 1,
    };

    a->began_us = clock_mono_us();
    int result = stay_send(s, &command, &a->id, e);
    run_env_free(env, n_env);
    return result;
}

void stay_note_use(const struct stay *s)
{
    struct err e = ERR_INIT;

    if (state_note_use(&s->sandbox, s->tenant, s->conversation, &e) < 0)
        log_warn("a sandbox's record was not written: %s", e.text);
    state_forget_size(s->sandbox.root, s->sandbox.name);
}

static bool all_well(const struct stay_ask *a)
{
    size_t n = json_array_size(a->results);
    size_t i;
    json_t *row;

    json_array_foreach(a->results, i, row)
    {
        if (strcmp(json_get_string(row, "status"), run_status_name(RUN_OK)) != 0)
            return false;
    }
    return n == a->request.n_args;
}

static void conclude(struct stay *s, struct stay_ask *a)
{
    AUTO_SNAPSHOT struct snapshot after = SNAPSHOT_INIT;
    struct err e = ERR_INIT;

    stay_note_use(s);
    if (snapshot_take(&s->sandbox, &after, &e) < 0) {
        stay_refuse(s, a, &e);
        return;
    }
    json_t *result = json_pack("{s:b, s:O, s:s}", "success", all_well(a), "results", a->results,
                               "conversationId", s->conversation);
    run_result_add_files(result, &s->sandbox, &a->before, &after);
    keeping_tell_after(&s->sandbox, &after, result);
    stay_answer(s, a, wire_result_new(result));
    stay_note(s);
}

void stay_exec_begin(struct stay *s, struct stay_ask *a)
{
    struct err e = ERR_INIT;

    a->results = json_array();
    if (check_commands(a, &e) < 0 || stay_prepare(s, a, &e) < 0 || send_command(s, a, &e) < 0)
        stay_refuse(s, a, &e);
}

void stay_exec_ended(struct stay *s, struct stay_ask *a, const struct engine_outcome *o)
{
    struct engine_outcome outcome = stay_outcome(a, o);
    bool stops = json_get_bool(a->body, "stopAtFailure", 1);
    bool failed = run_result_status(&outcome) != RUN_OK;
    bool over = outcome.end != ENGINE_EXITED || deadline_passed(a->end);
    struct err e = ERR_INIT;

    a->id = 0;
    json_array_append_new(a->results,
                          run_result_command(&a->request.args[a->at], &a->capture, &outcome));
    a->at++;
    if (over || (failed && stops) || a->at == a->request.n_args) {
        conclude(s, a);
        return;
    }
    begin_capture(s, a);
    if (send_command(s, a, &e) < 0)
        stay_refuse(s, a, &e);
}
