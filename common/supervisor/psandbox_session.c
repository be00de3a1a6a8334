/* An interpreter that keeps its variables: it runs as a command with a control channel and works on
 * one cell after the other; runners/README.md says what goes over the channel. */
#include "config.h"

#include "common/supervisor/psandbox_self.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/protocol/wire.h"
#include "common/records/retention_notice.h"
#include "common/rpc/json.h"
#include "common/supervisor/run_limits.h"

#include <stdio.h>
#include <string.h>

#define RECORD_HEADER 4
#define RECORD_DEPTH  4
#define CELL_MAX      (8u * WIRE_HEAD_MAX + 6u * 8u * 1024 * 1024) /* any code, escaped */

static const struct {
    const char *language;
    const char *argv[5]; /* ends with NULL */
} interpreters[] = {
    {"python", {"python3", "/sandbox/session.py"}},
    {"typescript", {"bun", "run", "--no-install", "/sandbox/session.mjs"}},
};

static const char *const *argv_of(const char *language)
{
    for (size_t i = 0; language && i < ARRAY_LEN(interpreters); i++)
        if (strcmp(language, interpreters[i].language) == 0)
            return interpreters[i].argv;
    return NULL;
}

bool psandbox_session_known(const char *language)
{
    return argv_of(language) != NULL;
}

/* ---- the answer ---- */

#define STILL_THERE "files in /data are still there."

/* What became of the variables, of this call or of those before, where that has to be said: ""
 * nothing. */
static void note(const struct psandbox *s, const struct psandbox_ask *a, bool lost, struct buf *out)
{
    if (lost)
        buf_addf(out, "%s: its variables are lost. The next call begins anew; " STILL_THERE,
                 a->why == PSANDBOX_TIMED_OUT ? "The time limit ended the interpreter"
                                              : "The interpreter ended");
    else if (*s->session.lost)
        buf_addf(
            out,
            "The variables of the calls before are lost: %s. This call began anew; " STILL_THERE,
            s->session.lost);
}

static void tell_session(const struct psandbox *s, const struct psandbox_ask *a, bool lost,
                         json_t *result)
{
    AUTO_BUF struct buf text = BUF_INIT(1024);
    char id[PSANDBOX_ID_LEN + 1];

    note(s, a, lost, &text);
    psandbox_id(s->start->run_id, id);
    json_object_set_new(result, "sandboxId", json_string(id));
    json_object_set_new(result, "sessionStarted", json_boolean(s->session.fresh));
    json_object_set_new(result, "stateLost", json_boolean(text.len > 0));
    if (text.len > 0)
        json_object_set_new(result, "sessionNote", json_from_bytes(buf_str(&text), text.len));
    json_object_del(result, "runId"); /* nobody can ask for it later */
}

/* The answer has told what there was to tell, unless nobody hears it. */
static void note_told(struct psandbox *s, bool heard, bool lost)
{
    if (heard)
        s->session.lost[0] = '\0';
    else if (lost)
        snprintf(s->session.lost, sizeof s->session.lost,
                 "the interpreter ended with a call that was cancelled or not answered");
}

static void conclude(struct psandbox *s, struct psandbox_ask *a, const struct engine_outcome *o,
                     bool lost)
{
    AUTO_SNAPSHOT struct snapshot after = SNAPSHOT_INIT;
    struct engine_outcome outcome = psandbox_outcome(a, o);
    struct err e = ERR_INIT;
    const struct run_story story = {.run_id = s->start->run_id,
                                    .sandbox = &s->sandbox,
                                    .capture = &a->capture,
                                    .queue_ms = a->began_us / 1000 - a->came_ms};

    psandbox_note_use(s);
    if (snapshot_take(&s->sandbox, &after, &e) < 0) {
        note_told(s, false, lost);
        psandbox_refuse(s, a, &e);
    } else {
        json_t *result = run_result_new(&story, &outcome, &a->before, &after);
        tell_session(s, a, lost, result);
        retention_notice_after(&s->sandbox, &after, result);
        note_told(s, a->waiter && a->why != PSANDBOX_CANCELLED, lost);
        psandbox_answer(s, a, wire_result_new(result));
    }
    s->session.fresh = false;
    psandbox_note(s);
    psandbox_cell_next(s);
}

/* ---- what is lost ---- */

/* Those that their owner closed, or reset, are not missed. */
void psandbox_session_look_back(struct psandbox *s)
{
    json_auto_t *row = psandbox_record_last_session(s->start->root, s->tenant, s->conversation,
                                                    s->language, s->start->run_id);
    const char *reason = json_get_string(row, "reason");

    if (reason && strcmp(reason, PSANDBOX_CLOSED_BY_OWNER) != 0)
        snprintf(s->session.lost, sizeof s->session.lost, "the sandbox that kept them %s (%s)",
                 psandbox_record_end(row), reason);
}

/* Between two calls: the next one hears of it. */
static void note_death(struct psandbox *s, const struct engine_outcome *o)
{
    char how[40];

    if (o->signal)
        snprintf(how, sizeof how, "signal %d", o->signal);
    else
        snprintf(how, sizeof how, "exit code %d", o->exit_code);
    snprintf(s->session.lost, sizeof s->session.lost,
             "the interpreter ended after its last call (%s)",
             o->out_of_memory ? "out of memory" : how);
}

/* ---- the interpreter ---- */

static int start_interpreter(struct psandbox *s, struct err *e)
{
    static const struct run_request plain = {0};
    size_t n_env;
    char **env = run_env_new(&plain, &s->sandbox, NULL, &n_env);
    const char *const *argv = argv_of(s->language);
    size_t n_argv = 0;
    while (argv[n_argv])
        n_argv++;
    const struct engine_command command = {
        .argv = argv,
        .n_argv = n_argv,
        .env = (const char *const *)env,
        .n_env = n_env,
        .control = true,
    };
    int result = psandbox_send(s, &command, &s->session.id, e);

    run_env_free(env, n_env);
    s->session.fresh = true;
    buf_reset(&s->session.control);
    return result;
}

void psandbox_session_ended(struct psandbox *s, const struct engine_outcome *o)
{
    struct psandbox_ask *cell = s->session.cell;

    s->session.id = 0;
    if (cell)
        conclude(s, cell, o, true);
    else if (!s->session.fresh) /* it had finished a cell */
        note_death(s, o);
}

/* ---- what it says ---- */

static void take_word(struct psandbox *s, const char *text, size_t len)
{
    struct err e = ERR_INIT;
    json_auto_t *word = json_parse(text, len, RECORD_DEPTH, &e);
    struct psandbox_ask *cell = s->session.cell;

    if (!cell || !json_get_bool(word, "done", 0))
        return;
    const struct engine_outcome o = {
        .end = ENGINE_EXITED,
        .exit_code = (int)(json_get_integer(word, "exitCode", 1) & 0xff),
        .started_us = cell->began_us,
        .ended_us = clock_mono_us(),
    };
    /* Killed in the very moment when it was done: its end is about to come. */
    if (cell->why == PSANDBOX_NOT_KILLED)
        conclude(s, cell, &o, false);
}

static size_t length_of(const struct buf *b)
{
    const unsigned char *at = (const unsigned char *)b->data;

    return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
}

/* Its end comes as an event. */
static void break_interpreter(struct psandbox *s)
{
    struct err e = ERR_INIT;

    buf_reset(&s->session.control);
    s->unread = true;
    if (s->session.cell)
        psandbox_kill(s, s->session.cell, PSANDBOX_BROKEN);
    else if (s->engine->ops->psandbox_kill(s->engine, s->session.id, &e) < 0)
        log_debug("sandbox %s: %s", s->start->run_id, e.text); /* if it is gone that is noticed */
}

/* Hostile code may write here as well: whatever makes no sense ends the interpreter. */
void psandbox_session_control(struct psandbox *s, const char *data, size_t len)
{
    struct buf *b = &s->session.control;

    buf_add(b, data, len);
    while (buf_ok(b) && b->len >= RECORD_HEADER && b->len - RECORD_HEADER >= length_of(b)) {
        size_t whole = RECORD_HEADER + length_of(b);

        take_word(s, b->data + RECORD_HEADER, whole - RECORD_HEADER);
        if (b->len < whole) /* another interpreter has begun */
            return;
        buf_drop_front(b, whole);
    }
    if (!buf_ok(b))
        break_interpreter(s);
}

/* ---- cells ---- */

static int send_cell(struct psandbox *s, const struct psandbox_ask *a, struct err *e)
{
    AUTO_BUF struct buf record = BUF_INIT(CELL_MAX);
    json_auto_t *cell = json_pack("{s:o}", "code",
                                  json_stringn(a->request.code.data, a->request.code.len));

    if (wire_frame(cell, &record, e) < 0)
        return -1;
    s->unread = true;
    return s->engine->ops->psandbox_control(s->engine, s->session.id, record.data, record.len, e);
}

static int run_cell(struct psandbox *s, struct psandbox_ask *a, struct err *e)
{
    if (psandbox_prepare(s, a, e) < 0 || (s->session.id == 0 && start_interpreter(s, e) < 0))
        return -1;
    a->began_us = clock_mono_us();
    s->session.cell = a;
    return send_cell(s, a, e);
}

void psandbox_cell_next(struct psandbox *s)
{
    struct err e = ERR_INIT;

    for (size_t i = 0; i < s->n_asks && !s->session.cell; i++) {
        struct psandbox_ask *a = s->asks[i];

        if (a->kind != PSANDBOX_SESSION || !a->body || !s->record)
            continue;
        if (run_cell(s, a, &e) == 0)
            return;
        psandbox_refuse(s, a, &e);
        i = (size_t)-1; /* from the start: the list is another */
    }
}

void psandbox_cell_begin(struct psandbox *s, struct psandbox_ask *a)
{
    struct err e = ERR_INIT;

    bool network = json_get_bool(a->head, "network", 0);
    if (network != json_get_bool(s->start->head, "network", 0)) {
        err_set(&e, ERR_INVALID,
                "network: this session was begun %s it; say so again, or reset_session first",
                network ? "without" : "with");
        psandbox_refuse(s, a, &e);
        return;
    }
    if (!s->keeps_variables || a->request.input.len > 0 || a->request.n_args > 0 ||
        a->request.n_env > 0) {
        err_set(&e, ERR_INVALID,
                "stdin, args and environment: a session takes none of them, only code");
        psandbox_refuse(s, a, &e);
        return;
    }
    psandbox_cell_next(s);
}
