#include "config.h"

#include "common/supervisor/psandbox_self.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/records/run_result.h"
#include "common/rpc/json.h"

#include <string.h>

#define LIVE_BYTES   262144u
#define CWD_MAX      4096
#define COMMANDS_MAX (1024u * 1024) /* bytes of all of them */

static bool has_commands(enum psandbox_kind kind)
{
    return kind == PSANDBOX_EXEC || kind == PSANDBOX_SESSION;
}

struct psandbox_call *psandbox_call_of(const struct psandbox *s, const struct waiter *r)
{
    for (size_t i = 0; i < s->n_calls; i++)
        if (s->calls[i]->waiter == r)
            return s->calls[i];
    return NULL;
}

size_t psandbox_busy(const struct psandbox *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_calls; i++)
        n += has_commands(s->calls[i]->kind);
    return n;
}

static void call_free(struct psandbox *s, struct psandbox_call *call)
{
    psandbox_listing_clear(s, call);
    run_capture_clear(&call->capture);
    snapshot_clear(&call->before);
    output_ring_free(call->live);
    json_decref(call->results);
    wire_run_decoded_clear(&call->request);
    json_decref(call->head);
    json_decref(call->body);
    free(call);
}

static void call_remove(struct psandbox *s, struct psandbox_call *call)
{
    size_t at = 0;

    while (s->calls[at] != call)
        at++;
    memmove(&s->calls[at], &s->calls[at + 1], (s->n_calls - at - 1) * sizeof *s->calls);
    s->n_calls--;
    if (s->session.cell == call)
        s->session.cell = NULL;
    if (has_commands(call->kind))
        s->used_ms = clock_mono_ms();
    call_free(s, call);
}

/* ---- answers ---- */

void psandbox_answer(struct psandbox *s, struct psandbox_call *call, json_t *take_reply)
{
    json_auto_t *reply = take_reply;

    if (call->waiter) {
        waiter_send_rest(call->waiter);
        waiter_answer(call->waiter, reply);
        call->waiter->output = NULL; /* it goes with the call */
    }
    call_remove(s, call);
}

void psandbox_refuse(struct psandbox *s, struct psandbox_call *call, const struct err *e)
{
    psandbox_answer(s, call, wire_error_new(e));
}

void psandbox_answer_all(struct psandbox *s, enum psandbox_kind kind, json_t *take_reply)
{
    json_auto_t *reply = take_reply;

    for (size_t i = s->n_calls; i > 0; i--)
        if (s->calls[i - 1]->kind == kind)
            psandbox_answer(s, s->calls[i - 1], json_incref(reply)); /* each takes a reference */
}

static void answer_log(struct psandbox *s, struct waiter *r)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * OUTPUT_RING_KEEP);
    uint64_t next, skipped;

    output_ring_text(s->log, output_ring_oldest(s->log), OUTPUT_RING_KEEP, true, &text, &next,
                     &skipped);
    json_auto_t *reply = json_pack("{s:{s:o}}", "result", "text",
                                   json_stringn(buf_str(&text), text.len));
    waiter_answer(r, reply);
}

/* ---- new calls ---- */

/* The main process finds the sandbox by its id; that the call is its owner's is checked here too.
 */
static bool is_ours(const struct psandbox *s, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *psandbox_id = json_get_string(head, "sandboxId");
    const char *conversation = json_get_string(head, "conversationId");
    const char *run_id = psandbox_id ? psandbox_run_id(psandbox_id) : NULL;

    if (!tenant || strcmp(tenant, s->tenant) != 0)
        return false;
    if (psandbox_id)
        return run_id && strcmp(run_id, s->base.start->container_id) == 0;
    return conversation && strcmp(conversation, s->conversation) == 0;
}

static void call_add(struct psandbox *s, json_t *head, enum psandbox_kind kind, struct waiter *r)
{
    struct psandbox_call *call = mem_alloc(sizeof *call);

    *call = (struct psandbox_call){.kind = kind,
                                   .waiter = r,
                                   .head = json_incref(head),
                                   .came_ms = clock_mono_ms(),
                                   .end = DEADLINE_NEVER};
    s->calls[s->n_calls++] = call;
    if (has_commands(kind)) {
        r->body_due = true;
        r->inbox.message.max = WIRE_MESSAGE_MAX;
    }
    if (kind == PSANDBOX_CLOSE)
        psandbox_stop(s, "closed", PSANDBOX_CLOSED_BY_OWNER);
}

void psandbox_take_call(void *owner, const json_t *message, int take_connection)
{
    static const enum broker_op ops[] = {[PSANDBOX_CREATE] = OP_CREATE_PSANDBOX,
                                         [PSANDBOX_EXEC] = OP_EXEC,
                                         [PSANDBOX_SESSION] = OP_SESSION,
                                         [PSANDBOX_CLOSE] = OP_CLOSE_PSANDBOX};
    struct psandbox *s = owner;
    json_t *head = json_object_get(message, "head");
    enum broker_op op = op_of(head);
    bool log = op == OP_PSANDBOX_LOGS;
    enum psandbox_kind kind = PSANDBOX_CREATE;
    struct waiter *r = NULL;
    struct err e = ERR_INIT;

    while (kind < ARRAY_LEN(ops) && op != ops[kind])
        kind++;
    bool full = !log && (s->n_calls == PSANDBOX_CALLS_MAX ||
                         (has_commands(kind) && psandbox_busy(s) == PSANDBOX_AT_ONCE));
    if (!is_ours(s, head))
        err_set(&e, ERR_NOT_FOUND, "%s", WIRE_NO_SUCH_SANDBOX);
    else if (!log && kind == ARRAY_LEN(ops))
        err_set(&e, ERR_INVALID, "no such operation");
    else if (full || !(r = waiters_add(&s->base.waiters, take_connection, WAITER_CALLER)))
        err_set(&e, ERR_BUSY,
                "sandboxId: too many calls for this sandbox at once; try again when one has ended");
    if (!r)
        waiter_refuse(take_connection, &e);
    else if (log)
        answer_log(s, r);
    else
        call_add(s, head, kind, r);
}

void psandbox_cancel(struct psandbox *s, struct psandbox_call *call)
{
    struct err e = ERR_INIT;

    if (call->kind == PSANDBOX_CREATE) {
        psandbox_stop(s, "closed", "its creator left before it had started");
    } else if (call->phase == PSANDBOX_RUNNING) {
        psandbox_kill(s, call, PSANDBOX_CANCELLED);
    } else if (has_commands(call->kind) && call->phase != PSANDBOX_AFTER) {
        err_set(&e, ERR_CANCELLED, "the call was cancelled before it ran");
        psandbox_refuse(s, call, &e);
    }
}

/* ---- what commands and cells have in common ---- */

/* Runner images set HOME; an allowed image may have one that cannot be written. */
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

int psandbox_read_body(struct psandbox *s, struct psandbox_call *call, struct err *e)
{
    json_int_t timeout = json_get_integer(call->head, "timeoutMs", 0);

    if (!(call->body = wire_parse(&call->waiter->inbox.message, e)))
        return -1;
    if (timeout < 0 || wire_run_body_decode(call->body, &call->request, e) < 0)
        return err_set(e, ERR_INVALID, "the call is not complete");
    call->request.timeout_ms = (uint64_t)timeout;
    if (container_check_request(s->base.start, &call->request, e) < 0)
        return -1;
    if (!s->language)
        add_home(&call->request);
    return 0;
}

static void capture_begin(struct psandbox *s, struct psandbox_call *call)
{
    const struct broker_limits *limits = &s->base.start->config->limits;

    run_capture_clear(&call->capture);
    run_capture_init(&call->capture, limits->output_keep, limits->output_max);
}

bool psandbox_call_run(struct psandbox *s, struct psandbox_call *call, struct snapshot *files,
                       const struct err *problem)
{
    struct err e = *problem;

    call->began_us = clock_mono_us();
    if (!files || psandbox_unpause(s, &e) < 0) {
        psandbox_refuse(s, call, &e);
        return false;
    }
    call->before = *files;
    *files = (struct snapshot){0};
    capture_begin(s, call);
    if (call->waiter && json_get_bool(call->head, "live", 0)) {
        call->live = output_ring_new(LIVE_BYTES);
        call->waiter->live = true;
        call->waiter->output = call->live;
    }
    call->phase = PSANDBOX_RUNNING;
    call->end = deadline_in_ms((int64_t)call->request.timeout_ms);
    return true;
}

void psandbox_kill(struct psandbox *s, struct psandbox_call *call, enum psandbox_killed why)
{
    if (call->killed != PSANDBOX_NOT_KILLED)
        return;
    call->killed = why;
    call->end = deadline_in_ms(PSANDBOX_HANGS_MS);
    psandbox_kill_command(s, call->id ? call->id : s->session.id);
}

struct engine_outcome psandbox_outcome(const struct psandbox_call *call,
                                       const struct engine_outcome *o)
{
    static const enum engine_end ends[] = {[PSANDBOX_CANCELLED] = ENGINE_CANCELLED,
                                           [PSANDBOX_TIMED_OUT] = ENGINE_TIMED_OUT,
                                           [PSANDBOX_TOO_MUCH] = ENGINE_OUTPUT_LIMIT,
                                           [PSANDBOX_DISK] = ENGINE_DISK_LIMIT,
                                           [PSANDBOX_BROKEN] = ENGINE_KILLED};
    struct engine_outcome out = *o;

    if (call->killed != PSANDBOX_NOT_KILLED)
        out.end = ends[call->killed];
    return out;
}

/* ---- commands ---- */

static int check_commands(const struct psandbox_call *call, struct err *e)
{
    const char *cwd = json_get_string(call->body, "cwd");
    size_t total = 0;

    for (size_t i = 0; i < call->request.n_args; i++)
        total += call->request.args[i].len;
    if (call->request.n_args == 0 || call->request.n_args > PSANDBOX_COMMANDS_MAX)
        return err_set(e, ERR_LIMIT, "commands: from one to %d of them", PSANDBOX_COMMANDS_MAX);
    if (cwd && strlen(cwd) > CWD_MAX)
        return err_set(e, ERR_LIMIT, "cwd is over %d bytes", CWD_MAX);
    return container_check_size("commands", total, COMMANDS_MAX, e);
}

static void send_command(struct psandbox *s, struct psandbox_call *call)
{
    const char *argv[] = {"sh", "-c", call->request.args[call->at].data};
    const char *cwd = json_get_string(call->body, "cwd");
    const char *base = cwd && *cwd == '/' ? "" : cwd && *cwd ? "/data/" : "/data";
    AUTO_FREE char *path = mem_printf("%s%s", base, cwd ? cwd : "");
    struct err e = ERR_INIT;
    AUTO_CONTAINER_ENV struct container_env env = container_env_new(&call->request, &s->sandbox,
                                                                    NULL);
    int64_t left_ms = call->end.at_ms - clock_mono_ms();
    const struct engine_command command = {
        .argv = argv,
        .n_argv = ARRAY_LEN(argv),
        .cwd = path,
        .env = env.items,
        .n_env = env.n,
        .input = call->at == 0 ? call->request.input.data : NULL,
        .input_len = call->at == 0 ? call->request.input.len : 0,
        .timeout_ms = left_ms > 1 ? (uint64_t)left_ms : 1,
    };

    call->began_us = clock_mono_us();
    if (psandbox_send(s, &command, &call->id, &e) < 0)
        psandbox_refuse(s, call, &e);
}

static void exec_start(struct psandbox *s, struct psandbox_call *call, struct snapshot *files,
                       const struct err *problem)
{
    if (psandbox_call_run(s, call, files, problem))
        send_command(s, call);
}

void psandbox_exec(struct psandbox *s, struct psandbox_call *call)
{
    struct err e = ERR_INIT;

    call->results = json_array();
    call->phase = PSANDBOX_BEFORE;
    if (check_commands(call, &e) < 0)
        psandbox_refuse(s, call, &e);
    else
        psandbox_list_files(s, call, true, exec_start);
}

static bool all_succeeded(const struct psandbox_call *call)
{
    size_t i;
    json_t *row;

    json_array_foreach(call->results, i, row)
    {
        if (strcmp(json_get_string(row, "status"), run_status_name(RUN_OK)) != 0)
            return false;
    }
    return json_array_size(call->results) == call->request.n_args;
}

static void exec_conclude(struct psandbox *s, struct psandbox_call *call, struct snapshot *files,
                          const struct err *problem)
{
    if (!files) {
        psandbox_refuse(s, call, problem);
        return;
    }
    json_t *last = json_array_get(call->results, json_array_size(call->results) - 1);
    if (call->over.kind != ERR_NONE && call->killed != PSANDBOX_CANCELLED) {
        json_object_set_new(last, "status", json_string(run_status_name(RUN_DISK_LIMIT)));
        json_object_set_new(last, "exitCode", json_null());
    }
    json_t *result = json_pack("{s:b, s:O, s:s}", "success", all_succeeded(call), "results",
                               call->results, "conversationId", s->conversation);
    run_result_add_files(result, &s->sandbox, &call->before, files);
    retention_notice_over(result, &call->over);
    retention_notice_after(&s->sandbox, files, result);
    psandbox_answer(s, call, wire_result_new(result));
    psandbox_write_record(s);
}

void psandbox_command_ended(struct psandbox *s, struct psandbox_call *call,
                            const struct engine_outcome *o)
{
    struct engine_outcome outcome = psandbox_outcome(call, o);
    bool stops = json_get_bool(call->body, "stopAtFailure", 1);
    bool failed = run_result_status(&outcome) != RUN_OK;
    bool over = outcome.end != ENGINE_EXITED || deadline_passed(call->end);

    call->id = 0;
    json_array_append_new(
        call->results, run_result_command(&call->request.args[call->at], &call->capture, &outcome));
    call->at++;
    if (over || (failed && stops) || call->at == call->request.n_args) {
        psandbox_note_use(s);
        call->phase = PSANDBOX_AFTER;
        psandbox_list_files(s, call, false, exec_conclude);
        return;
    }
    capture_begin(s, call);
    send_command(s, call);
}
