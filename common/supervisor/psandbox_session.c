/* An interpreter that keeps its variables: it runs as a command with a control channel and works on
 * one cell after the other; runners/sessions.md describes the records on that channel. */
#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/protocol/entry_record.h"
#include "common/protocol/run_id.h"
#include "common/protocol/wire.h"
#include "common/records/run_result.h"
#include "common/rpc/json.h"

#include <stdio.h>
#include <string.h>

#define RECORD_HEADER 4
#define RECORD_DEPTH  4

static const struct {
    const char *language;
    const char *argv[5]; /* ends with NULL */
} interpreters[] = {
    {"python", {"python3", "/sandbox/session.py"}},
    {"typescript", {"bun", "run", "--no-install", "/sandbox/session.mjs"}},
};

_Static_assert(ARRAY_LEN(interpreters) == PSANDBOX_SESSIONS, "one for each");

/* Which of the interpreters; PSANDBOX_SESSIONS: none. */
static size_t index_of(const char *language)
{
    size_t i = 0;

    while (i < PSANDBOX_SESSIONS && strcmp(language, interpreters[i].language) != 0)
        i++;
    return i;
}

bool psandbox_session_known(const char *language)
{
    return index_of(language) < PSANDBOX_SESSIONS;
}

static struct psandbox_session *session_in(struct supervisor *s, const char *language)
{
    return language && psandbox_session_known(language) ? &s->sessions[index_of(language)] : NULL;
}

struct psandbox_session *psandbox_session_with(struct supervisor *s, uint32_t id)
{
    for (size_t i = 0; id != 0 && i < PSANDBOX_SESSIONS; i++)
        if (s->sessions[i].id == id)
            return &s->sessions[i];
    return NULL;
}

static const char *language_of(const struct supervisor *s, const struct psandbox_session *session)
{
    return interpreters[session - s->sessions].language;
}

/* The record names all whose variables are kept. */
static void note_languages(struct supervisor *s)
{
    AUTO_BUF struct buf names = BUF_INIT(100);

    for (size_t i = 0; i < PSANDBOX_SESSIONS; i++)
        if (s->sessions[i].begun)
            buf_addf(&names, "%s%s", names.len > 0 ? " " : "", interpreters[i].language);
    json_object_set_new(s->record, "language", json_string(buf_str(&names)));
    psandbox_write_record(s);
}

/* ---- the answer ---- */

#define FILES_REMAIN "files in /data are still there."

/* Why the variables of this call or of those before are gone; "": they are not. */
static void describe_loss(const struct psandbox_session *session, const struct call *call,
                          bool lost, struct buf *out)
{
    if (lost)
        buf_addf(out, "%s: its variables are lost. The next call begins anew; " FILES_REMAIN,
                 call->run.killed == KILLED_BY_TIME ? "The time limit ended the interpreter"
                                                    : "The interpreter ended");
    else if (*session->lost)
        buf_addf(
            out,
            "The variables of the calls before are lost: %s. This call began anew; " FILES_REMAIN,
            session->lost);
}

static json_t *session_fields(const struct supervisor *s, const struct psandbox_session *session,
                              const struct call *call, bool lost)
{
    AUTO_BUF struct buf text = BUF_INIT(1024);
    char id[PSANDBOX_ID_LEN + 1];

    describe_loss(session, call, lost, &text);
    psandbox_id_write(s->base.start->container_id, id);
    json_t *fields = json_pack("{s:s, s:b, s:b}", "sandboxId", id, "sessionStarted", session->fresh,
                               "stateLost", text.len > 0);
    if (text.len > 0)
        json_object_set_new(fields, "sessionNote", json_from_bytes(buf_str(&text), text.len));
    return fields;
}

static void note_unheard(struct psandbox_session *session)
{
    snprintf(session->lost, sizeof session->lost,
             "the interpreter ended with a call that was cancelled or not answered");
}

static void cell_conclude(struct supervisor *s, struct call *call, struct snapshot *files,
                          const struct err *problem)
{
    struct psandbox_session *session = call->session;

    if (!files) {
        if (json_get_bool(call->results, "stateLost", 0) && !*session->lost)
            note_unheard(session);
        call_refuse(s, call, problem);
        return;
    }
    json_t *result = awaited_run_result(&call->run, files);
    json_object_update(result, call->results);
    call_answer(s, call, wire_result_new(result));
    psandbox_write_record(s);
}

static void cell_ended(struct supervisor *s, struct call *call, const struct engine_outcome *o,
                       bool lost)
{
    struct psandbox_session *session = call->session;

    call->phase = CALL_AFTER;
    awaited_run_set_outcome(&call->run, o);
    call->results = session_fields(s, session, call, lost);
    if ((call->waiter || call->run.keep == KEEP_DONE) && call->run.killed != KILLED_BY_CANCEL)
        session->lost[0] = '\0'; /* the answer says it */
    else if (lost)
        note_unheard(session);
    session->fresh = false;
    call_note_use(s, call);
    psandbox_list_files(s, call, false, cell_conclude);
}

/* ---- what is lost ---- */

/* Looks for the session before this one. Variables that their owner gave up, by a close or a reset,
 * are not missed. */
static void look_back(struct supervisor *s, struct psandbox_session *session)
{
    const struct supervisor_start *start = s->base.start;
    json_auto_t *row = psandbox_record_last_session(start->root, s->use.tenant, s->use.conversation,
                                                    language_of(s, session), start->container_id);
    const char *reason = json_get_string(row, "reason");

    if (reason && strcmp(reason, PSANDBOX_CLOSED_BY_OWNER) != 0)
        snprintf(session->lost, sizeof session->lost, "the sandbox that kept them %s (%s)",
                 psandbox_record_end(row), reason);
}

/* It ended between two calls: the result of the next one says so. */
static void note_end(struct psandbox_session *session, const struct engine_outcome *o)
{
    char how[40];

    if (o->signal)
        snprintf(how, sizeof how, "signal %d", o->signal);
    else
        snprintf(how, sizeof how, "exit code %d", o->exit_code);
    snprintf(session->lost, sizeof session->lost, "the interpreter ended after its last call (%s)",
             o->out_of_memory ? "out of memory" : how);
}

/* ---- the interpreter ---- */

static int interpreter_start(struct supervisor *s, struct psandbox_session *session, struct err *e)
{
    AUTO_REQUEST_ENV struct request_env env = request_env_new(NULL, &s->sandbox, NULL);
    size_t n_argv = 0;
    const char *const *argv = interpreters[session - s->sessions].argv;

    while (argv[n_argv])
        n_argv++;
    const struct engine_command command = {
        .argv = argv,
        .n_argv = n_argv,
        .env = env.items,
        .n_env = env.n,
        .control = true,
    };

    if (!session->begun) {
        look_back(s, session);
        session->begun = true;
        note_languages(s);
    }
    session->fresh = true;
    buf_reset(&session->control);
    return psandbox_send(s, &command, &session->id, e);
}

/* The cell that runs; NULL: none. */
static struct call *cell_running(const struct psandbox_session *session)
{
    struct call *cell = session->cell;

    return cell && cell->phase == CALL_RUNNING ? cell : NULL;
}

void psandbox_interpreter_ended(struct supervisor *s, struct psandbox_session *session,
                                const struct engine_outcome *o)
{
    struct call *cell = cell_running(session);

    session->id = 0;
    if (cell)
        cell_ended(s, cell, o, true);
    else if (!session->fresh) /* it had finished a cell */
        note_end(session, o);
}

bool psandbox_session_reset(struct supervisor *s, const char *language)
{
    struct psandbox_session *session = session_in(s, language);
    bool others = false;

    for (size_t i = 0; i < PSANDBOX_SESSIONS; i++)
        others |= s->sessions[i].begun && &s->sessions[i] != session;
    if (!session || !others)
        return false;
    if (session->id)
        psandbox_kill_command(s, session->id);
    if (!cell_running(session))
        session->id = 0; /* the next cell is not for this interpreter */
    session->begun = false;
    session->fresh = true; /* its end is not missed */
    session->lost[0] = '\0';
    note_languages(s);
    return true;
}

/* ---- its records ---- */

static void on_record(struct supervisor *s, const struct psandbox_session *session,
                      const char *text, size_t len)
{
    struct err e = ERR_INIT;
    json_auto_t *record = json_parse(text, len, RECORD_DEPTH, &e);
    struct call *cell = cell_running(session);

    if (!cell || !json_get_bool(record, "done", 0))
        return;
    const struct engine_outcome o = {
        .end = ENGINE_EXITED,
        .exit_code = (int)(json_get_integer(record, "exitCode", 1) & 0xff),
        .started_us = cell->began_us,
        .ended_us = clock_mono_us(),
    };
    /* If it was killed in the moment when it was done, its end is about to come. */
    if (cell->run.killed == NOT_KILLED)
        cell_ended(s, cell, &o, false);
}

/* Code in the sandbox may write here too: a record that makes no sense ends the interpreter. */
void psandbox_on_control(struct supervisor *s, struct psandbox_session *session, const char *data,
                         size_t len)
{
    struct buf *b = &session->control;

    buf_add(b, data, len);
    while (buf_ok(b) && b->len >= RECORD_HEADER && b->len - RECORD_HEADER >= u32_get(b->data)) {
        size_t whole = RECORD_HEADER + u32_get(b->data);

        on_record(s, session, b->data + RECORD_HEADER, whole - RECORD_HEADER);
        buf_drop_front(b, whole);
    }
    if (buf_ok(b))
        return;
    buf_reset(b);
    if (cell_running(session))
        call_kill(s, session->cell, KILLED_BY_CONTROL);
    else
        psandbox_kill_command(s, session->id);
}

/* ---- cells ---- */

/* NULL: there are none. */
static json_t *texts_new(const char *const *texts, size_t n)
{
    json_t *list = n > 0 ? json_array() : NULL;

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_from_bytes(texts[i], strlen(texts[i])));
    return list;
}

static json_t *cell_new(const struct run_body *body)
{
    AUTO_BUF struct buf code = BUF_INIT(body->code_len), input = BUF_INIT(body->input_len);

    entry_records_join(body->message.data, body->streams_len, 'C', &code);
    entry_records_join(body->message.data, body->streams_len, 'I', &input);
    return json_pack("{s:o, s:o, s:o*, s:o*}", "code", json_from_bytes(buf_str(&code), code.len),
                     "input", json_from_bytes(buf_str(&input), input.len), "args",
                     texts_new(body->args, body->n_args), "env", texts_new(body->env, body->n_env));
}

static int send_cell(struct supervisor *s, uint32_t id, const struct call *call, struct err *e)
{
    AUTO_BUF struct buf record = BUF_INIT(WIRE_MESSAGE_MAX); /* the engine takes no more */
    json_auto_t *cell = cell_new(&call->run.body);

    if (wire_frame(cell, &record, e) < 0)
        return err_set(e, ERR_LIMIT,
                       "code and stdin: too large for a session; use a file of /data");
    s->base.unread = true;
    return s->base.engine->ops->control(s->base.engine, id, record.data, record.len, e);
}

static void cell_start(struct supervisor *s, struct call *call, struct snapshot *files,
                       const struct err *problem)
{
    struct psandbox_session *session = call->session;
    struct err e = ERR_INIT;

    if (psandbox_run_start(s, call, files, problem) &&
        ((session->id == 0 && interpreter_start(s, session, &e) < 0) ||
         send_cell(s, session->id, call, &e) < 0))
        call_refuse(s, call, &e);
}

static void next_of(struct supervisor *s, struct psandbox_session *session)
{
    for (;;) { /* a cell may be refused at once: then it is the next one's turn */
        for (size_t i = 0; i < s->n_calls && !session->cell; i++)
            if (s->calls[i]->session == session && s->calls[i]->run.output)
                session->cell = s->calls[i];
        struct call *cell = session->cell;
        if (!cell || cell->phase != CALL_QUEUED)
            return;
        cell->phase = CALL_BEFORE;
        psandbox_list_files(s, cell, true, cell_start);
    }
}

void psandbox_cell_next(struct supervisor *s)
{
    for (size_t i = 0; i < PSANDBOX_SESSIONS; i++)
        next_of(s, &s->sessions[i]);
}

int psandbox_cell_check(struct supervisor *s, struct call *call, struct err *e)
{
    const struct run_body *body = &call->run.body;
    enum network_tier network = wire_network(s->base.start->call.head);

    /* The main process begins another one as soon as nothing runs in this. */
    if (!wire_network_suits(call->run.head, network))
        return err_set(e, ERR_BUSY,
                       "network: this session runs something %s it; call again when that has ended",
                       network == NETWORK_NONE ? "without" : "with");
    call->session = session_in(s, call->run.request.language);
    if (!s->keeps_variables || !call->session || !body->has_code || body->cwd)
        return err_set(e, ERR_INVALID, "session: it takes a program of one of its languages");
    return 0;
}

void psandbox_cell_begin(struct supervisor *s, struct call *call)
{
    psandbox_run_begin(s, call, call->run.request.language);
}
