/* The commands of a call, one after the other (supervisor_self.h). */
#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/mem.h"
#include "common/protocol/run_id.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/sizes.h"

#include <string.h>

#define CWD_MAX      4096
#define COMMANDS_MAX (1024u * 1024) /* bytes of all of them */

int psandbox_commands_check(struct supervisor *s, struct call *call, struct err *e)
{
    const struct run_body *body = &call->run.body;
    size_t total = 0;

    (void)s;
    for (size_t i = 0; i < body->n_args; i++)
        total += strlen(body->args[i]);
    if (body->has_code || body->n_args == 0 || body->n_args > PSANDBOX_COMMANDS_MAX)
        return err_set(e, ERR_LIMIT, "commands: from one to %d of them", PSANDBOX_COMMANDS_MAX);
    if (body->cwd && strlen(body->cwd) > CWD_MAX)
        return err_set(e, ERR_LIMIT, "cwd is over %d bytes", CWD_MAX);
    return request_check_size("commands", total, COMMANDS_MAX, e);
}

/* ---- what commands and cells have in common ---- */

void psandbox_run_begin(struct supervisor *s, struct call *call, const char *language)
{
    const struct broker_limits *limits = &s->base.start->config->limits;
    const struct awaited_run_plan plan = {
        .tenant = s->use.tenant,
        .conversation = s->use.conversation,
        .language = language,
        .sandbox = &s->sandbox,
        /* Cells run one after the other. */
        .most_ms = CALLS_AT_ONCE * (limits->timeout_max_ms + CALL_HANGS_MS),
        .keep_bytes = limits->output_keep,
    };

    sizes_count_others(&s->sandbox, s->use.tenant);
    psandbox_run_id_write(s->base.start->container_id, ++s->n_runs, call->run.id);
    call_begin_run(s, call, &plan);
}

bool psandbox_run_start(struct supervisor *s, struct call *call, struct snapshot *files,
                        const struct err *problem)
{
    struct err e = *problem;

    call->began_us = clock_mono_us();
    if (!files || psandbox_unpause(s, &e) < 0) {
        call_refuse(s, call, &e);
        return false;
    }
    call->run.before = *files;
    *files = (struct snapshot){0};
    call->run.began_ms = clock_mono_ms();
    call->run.story.queue_ms = call->run.began_ms - call->came_ms;
    call->phase = CALL_RUNNING;
    call->end = deadline_in_ms((int64_t)call->run.request.timeout_ms);
    return true;
}

/* ---- commands ---- */

static void send_command(struct supervisor *s, struct call *call)
{
    const struct run_body *body = &call->run.body;
    const char *argv[] = {"bash", "-c", body->args[call->at]}, *cwd = body->cwd;
    const char *base = cwd && *cwd == '/' ? "" : cwd && *cwd ? "/data/" : "/data";
    AUTO_FREE char *path = mem_printf("%s%s", base, cwd ? cwd : "");
    struct err e = ERR_INIT;
    AUTO_REQUEST_ENV struct request_env env = request_env_new(body, &s->sandbox, NULL);
    int64_t left_ms = call->end.at_ms - clock_mono_ms();

    /* Runner images set HOME; an allowed image may have one that cannot be written. */
    if (!s->language) {
        request_env_add_default(&env, "HOME=/data");
        request_env_add_default(&env, "XDG_CACHE_HOME=/tmp/.cache");
    }
    const struct engine_command command = {
        .streams = body->message.data,
        .streams_len = call->at == 0 ? body->streams_len : 0,
        .argv = argv,
        .n_argv = ARRAY_LEN(argv),
        .cwd = path,
        .env = env.items,
        .n_env = env.n,
        .timeout_ms = left_ms > 1 ? (uint64_t)left_ms : 1,
    };

    output_free(call->output);
    call->output = output_new(s->base.start->config->limits.output_keep, 0);
    call->began_us = clock_mono_us();
    if (psandbox_send(s, &command, &call->id, &e) < 0)
        call_refuse(s, call, &e);
}

static void exec_start(struct supervisor *s, struct call *call, struct snapshot *files,
                       const struct err *problem)
{
    if (psandbox_run_start(s, call, files, problem))
        send_command(s, call);
}

void psandbox_commands_begin(struct supervisor *s, struct call *call)
{
    psandbox_run_begin(s, call, PSANDBOX_COMMAND_LANGUAGE);
    call->results = json_array();
    call->phase = CALL_BEFORE;
    psandbox_list_files(s, call, true, exec_start);
}

static bool all_succeeded(const struct call *call)
{
    size_t i;
    json_t *row;

    json_array_foreach(call->results, i, row)
    {
        if (strcmp(json_get_string(row, "status"), run_status_name(RUN_OK)) != 0)
            return false;
    }
    return json_array_size(call->results) == call->run.body.n_args;
}

static void exec_conclude(struct supervisor *s, struct call *call, struct snapshot *files,
                          const struct err *problem)
{
    if (!files) {
        call_refuse(s, call, problem);
        return;
    }
    json_t *last = json_array_get(call->results, json_array_size(call->results) - 1);
    call->run.outcome.started_us = 1000 * call->run.began_ms; /* of the first */
    json_t *result = awaited_run_result(&call->run, files);
    if (call->run.outcome.end == ENGINE_DISK_LIMIT) {
        json_object_set_new(last, "status", json_string(run_status_name(RUN_DISK_LIMIT)));
        json_object_set_new(last, "exitCode", json_null());
    }
    json_object_set_new(result, "success", json_boolean(all_succeeded(call)));
    json_object_set(result, "results", call->results);
    json_object_set_new(result, "conversationId", json_string(s->use.conversation));
    call_answer(s, call, wire_result_new(result));
    psandbox_write_record(s);
}

void psandbox_command_ended(struct supervisor *s, struct call *call, const struct engine_outcome *o)
{
    const struct engine_outcome *outcome = &call->run.outcome;

    awaited_run_set_outcome(&call->run, o);
    bool stops = json_get_bool(call->run.head, "stopAtFailure", 1);
    bool failed = run_result_status(outcome) != RUN_OK;
    bool over = outcome->end != ENGINE_EXITED || deadline_passed(call->end);

    call->id = 0;
    json_array_append_new(call->results,
                          run_result_command(call->run.body.args[call->at], call->output, outcome));
    call->at++;
    if (over || (failed && stops) || call->at == call->run.body.n_args) {
        call_note_use(s, call);
        call->phase = CALL_AFTER;
        psandbox_list_files(s, call, false, exec_conclude);
        return;
    }
    send_command(s, call);
}
