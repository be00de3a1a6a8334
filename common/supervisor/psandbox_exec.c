#include "config.h"

#include "common/supervisor/psandbox_self.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/wire.h"
#include "common/records/retention_notice.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/state.h"
#include "common/supervisor/run_limits.h"

#include <inttypes.h>
#include <string.h>

#define CWD_MAX      4096
#define COMMANDS_MAX (1024u * 1024) /* bytes of all of them */

/* ---- what both kinds of work have in common ---- */

static int check(const struct psandbox *s, const struct run_request *r, struct err *e)
{
    const struct broker_limits *limits = &s->start->config->limits;

    if (run_limits_check_size("code", r->code.len, limits->code_max, e) < 0 ||
        run_limits_check_size("stdin", r->input.len, limits->stdin_max, e) < 0 ||
        run_limits_check_env(r, limits->env_max, e) < 0)
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

int psandbox_read_body(struct psandbox *s, struct psandbox_ask *a, struct err *e)
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

static void begin_capture(struct psandbox *s, struct psandbox_ask *a)
{
    const struct broker_limits *limits = &s->start->config->limits;

    run_capture_clear(&a->capture);
    run_capture_init(&a->capture, limits->output_keep, limits->output_max);
}

int psandbox_prepare(struct psandbox *s, struct psandbox_ask *a, struct err *e)
{
    if (psandbox_wake(s, e) < 0 || retention_notice_before(&s->sandbox, &a->before, e) < 0)
        return -1;
    begin_capture(s, a);
    if (a->waiter && json_get_bool(a->head, "live", 0)) {
        a->live = output_ring_new(PSANDBOX_LIVE_BYTES);
        a->waiter->live = true;
    }
    a->begun = true;
    a->end = deadline_in_ms((int64_t)a->request.timeout_ms);
    return 0;
}

void psandbox_kill(struct psandbox *s, struct psandbox_ask *a, enum psandbox_why why)
{
    struct err e = ERR_INIT;

    if (a->why != PSANDBOX_NOT_KILLED)
        return;
    a->why = why;
    a->end = deadline_in_ms(0); /* it has PSANDBOX_HANGS_MS from now on */
    s->unread = true;
    if (s->engine->ops->psandbox_kill(s->engine, a->id ? a->id : s->session.id, &e) < 0)
        log_debug("sandbox %s: %s", s->start->run_id, e.text); /* if it is gone that is noticed */
}

struct engine_outcome psandbox_outcome(const struct psandbox_ask *a, const struct engine_outcome *o)
{
    static const enum engine_end ends[] = {[PSANDBOX_CANCELLED] = ENGINE_CANCELLED,
                                           [PSANDBOX_TIMED_OUT] = ENGINE_TIMED_OUT,
                                           [PSANDBOX_TOO_MUCH] = ENGINE_OUTPUT_LIMIT,
                                           [PSANDBOX_BROKEN] = ENGINE_KILLED};
    struct engine_outcome out = *o;

    if (a->why != PSANDBOX_NOT_KILLED)
        out.end = ends[a->why];
    return out;
}

/* ---- commands ---- */

static int check_commands(const struct psandbox_ask *a, struct err *e)
{
    const char *cwd = json_get_string(a->body, "cwd");
    size_t total = 0;

    for (size_t i = 0; i < a->request.n_args; i++)
        total += a->request.args[i].len;
    if (a->request.n_args == 0 || a->request.n_args > PSANDBOX_COMMANDS_MAX)
        return err_set(e, ERR_LIMIT, "commands: from one to %d of them", PSANDBOX_COMMANDS_MAX);
    if (cwd && strlen(cwd) > CWD_MAX)
        return err_set(e, ERR_LIMIT, "cwd is over %d bytes", CWD_MAX);
    return run_limits_check_size("commands", total, COMMANDS_MAX, e);
}

/* Absolute, whatever was said. */
static char *cwd_of(const struct psandbox_ask *a)
{
    const char *cwd = json_get_string(a->body, "cwd");

    if (!cwd || !*cwd)
        return mem_strdup("/data");
    return *cwd == '/' ? mem_strdup(cwd) : mem_printf("/data/%s", cwd);
}

static int send_command(struct psandbox *s, struct psandbox_ask *a, struct err *e)
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
    int result = psandbox_send(s, &command, &a->id, e);
    run_env_free(env, n_env);
    return result;
}

void psandbox_note_use(const struct psandbox *s)
{
    struct err e = ERR_INIT;

    if (state_note_use(&s->sandbox, s->tenant, s->conversation, &e) < 0)
        log_warn("a sandbox's record was not written: %s", e.text);
    state_forget_size(s->sandbox.root, s->sandbox.name);
}

static bool all_well(const struct psandbox_ask *a)
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

static void conclude(struct psandbox *s, struct psandbox_ask *a)
{
    AUTO_SNAPSHOT struct snapshot after = SNAPSHOT_INIT;
    struct err e = ERR_INIT;

    psandbox_note_use(s);
    if (snapshot_take(&s->sandbox, &after, &e) < 0) {
        psandbox_refuse(s, a, &e);
        return;
    }
    json_t *result = json_pack("{s:b, s:O, s:s}", "success", all_well(a), "results", a->results,
                               "conversationId", s->conversation);
    run_result_add_files(result, &s->sandbox, &a->before, &after);
    retention_notice_after(&s->sandbox, &after, result);
    psandbox_answer(s, a, wire_result_new(result));
    psandbox_note(s);
}

void psandbox_exec_begin(struct psandbox *s, struct psandbox_ask *a)
{
    struct err e = ERR_INIT;

    a->results = json_array();
    if (check_commands(a, &e) < 0 || psandbox_prepare(s, a, &e) < 0 || send_command(s, a, &e) < 0)
        psandbox_refuse(s, a, &e);
}

void psandbox_exec_ended(struct psandbox *s, struct psandbox_ask *a, const struct engine_outcome *o)
{
    struct engine_outcome outcome = psandbox_outcome(a, o);
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
        psandbox_refuse(s, a, &e);
}
