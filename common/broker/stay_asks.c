#include "config.h"

#include "common/broker/stay_self.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/broker/wire.h"
#include "common/rpc/json.h"

#include <string.h>
#include <sys/epoll.h>

#define WORD_MAX 1024 /* bytes of what a caller says behind its body */

/* ---- who asks ---- */

static const struct {
    const char *op;
    enum stay_ask_kind kind;
} ops[] = {
    {"create_box", STAY_CREATE},
    {"exec", STAY_EXEC},
    {"session", STAY_SESSION},
    {"close_box", STAY_CLOSE},
};

static bool has_commands(enum stay_ask_kind kind)
{
    return kind == STAY_EXEC || kind == STAY_SESSION;
}

static struct stay_ask *ask_of(const struct stay *s, const struct reader *r)
{
    for (size_t i = 0; i < s->n_asks; i++)
        if (s->asks[i]->reader == r)
            return s->asks[i];
    return NULL;
}

size_t stay_busy(const struct stay *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_asks; i++)
        n += has_commands(s->asks[i]->kind);
    return n;
}

static void ask_free(struct stay_ask *a)
{
    run_capture_clear(&a->capture);
    snapshot_clear(&a->before);
    live_free(a->live);
    json_decref(a->results);
    wire_run_decoded_clear(&a->request);
    json_decref(a->head);
    json_decref(a->body);
    free(a);
}

static void remove_ask(struct stay *s, struct stay_ask *a)
{
    size_t at = 0;

    while (s->asks[at] != a)
        at++;
    memmove(&s->asks[at], &s->asks[at + 1], (s->n_asks - at - 1) * sizeof *s->asks);
    s->n_asks--;
    if (s->session.cell == a)
        s->session.cell = NULL;
    if (has_commands(a->kind))
        s->used_ms = clock_mono_ms();
    ask_free(a);
}

/* ---- answers ---- */

void stay_answer(struct stay *s, struct stay_ask *a, json_t *take_reply)
{
    json_auto_t *reply = take_reply;

    if (a->reader && a->live)
        live_tell(a->live, a->reader, true);
    if (a->reader)
        reader_answer(a->reader, reply);
    remove_ask(s, a);
}

void stay_refuse(struct stay *s, struct stay_ask *a, const struct err *e)
{
    stay_answer(s, a, wire_error_new(e));
}

void stay_answer_all(struct stay *s, enum stay_ask_kind kind, json_t *take_reply)
{
    json_auto_t *reply = take_reply;

    for (size_t i = s->n_asks; i > 0; i--)
        if (s->asks[i - 1]->kind == kind)
            stay_answer(s, s->asks[i - 1], json_incref(reply)); /* each takes a reference */
}

static void refuse(int take_connection, enum err_kind kind, const char *text)
{
    struct err e = ERR_INIT;

    err_set(&e, kind, "%s", text);
    json_auto_t *message = wire_error_new(&e);
    reader_refuse(take_connection, message);
}

/* ---- the log ---- */

static void answer_log(struct stay *s, int take_connection)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * LIVE_KEEP);
    struct reader *r = readers_add(&s->readers, take_connection, READER_POLL);
    uint64_t next, skipped;

    if (!r) {
        refuse(take_connection, ERR_BUSY, "too many callers ask this sandbox; try again soon");
        return;
    }
    live_text(s->log, live_oldest(s->log), LIVE_KEEP, true, &text, &next, &skipped);
    json_auto_t *reply = json_pack("{s:{s:o}}", "result", "text",
                                   json_stringn(buf_str(&text), text.len));
    reader_answer(r, reply);
}

/* ---- new ones ---- */

/* The main process hands over by id; that it is the owner's call is made sure of here too. */
static bool is_ours(const struct stay *s, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *box_id = json_get_string(head, "sandboxId");
    const char *conversation = json_get_string(head, "conversation");
    const char *run_id = box_id ? stay_run_id(box_id) : NULL;

    if (!tenant || strcmp(tenant, s->tenant) != 0)
        return false;
    if (box_id)
        return run_id && strcmp(run_id, s->start->run_id) == 0;
    return conversation && strcmp(conversation, s->conversation) == 0;
}

static void begin(struct stay *s, struct stay_ask *a)
{
    if (a->kind == STAY_CLOSE)
        stay_stop(s, "closed", STAY_CLOSED_BY_OWNER);
    if (has_commands(a->kind)) {
        a->reader->inbox.message.max = WIRE_MESSAGE_MAX;
        stay_hear_reader(s, a->reader, EPOLLIN); /* most bodies are there */
    }
}

static bool op_kind(const json_t *head, enum stay_ask_kind *out)
{
    const char *op = json_get_string(head, "op");

    for (size_t i = 0; op && i < ARRAY_LEN(ops); i++)
        if (strcmp(op, ops[i].op) == 0) {
            *out = ops[i].kind;
            return true;
        }
    return false;
}

static void add_ask(struct stay *s, const json_t *head, enum stay_ask_kind kind,
                    int take_connection)
{
    bool full = has_commands(kind) && stay_busy(s) >= STAY_AT_ONCE;
    struct reader *r = full ? NULL : readers_add(&s->readers, take_connection, READER_ASKER);

    if (!r) {
        refuse(take_connection, ERR_BUSY,
               "sandboxId: too many commands run in this sandbox at once; try again when one has "
               "ended");
        return;
    }
    struct stay_ask *a = mem_alloc(sizeof *a);
    *a = (struct stay_ask){.kind = kind,
                           .reader = r,
                           .head = json_deep_copy(head),
                           .came_ms = clock_mono_ms(),
                           .end = DEADLINE_NEVER};
    s->asks[s->n_asks++] = a;
    begin(s, a);
}

void stay_take(struct stay *s, const json_t *head, int take_connection)
{
    const char *op = json_get_string(head, "op");
    enum stay_ask_kind kind;

    if (!s->home.path[0])
        home_remember(&s->home, take_connection);
    if (!op || !is_ours(s, head))
        refuse(take_connection, ERR_NOT_FOUND, WIRE_NO_SUCH_BOX);
    else if (strcmp(op, "box_logs") == 0)
        answer_log(s, take_connection);
    else if (op_kind(head, &kind))
        add_ask(s, head, kind, take_connection);
    else
        refuse(take_connection, ERR_INVALID, "no such operation");
}

/* ---- what they say ---- */

/* Its caller has left, or says so: what runs for it ends, the sandbox stays. */
static void unwanted(struct stay *s, struct stay_ask *a)
{
    if (a->kind == STAY_CREATE)
        stay_stop(s, "closed", "nobody waited for it");
    else if (a->begun)
        stay_kill(s, a, STAY_CANCELLED);
    else if (has_commands(a->kind))
        remove_ask(s, a);
}

static void take_body(struct stay *s, struct stay_ask *a)
{
    struct err e = ERR_INIT;

    a->body = wire_parse(&a->reader->inbox.message, &e);
    a->reader->inbox.message.max = WORD_MAX;
    if (!a->body || stay_read_body(s, a, &e) < 0)
        stay_refuse(s, a, &e);
    else if (a->kind == STAY_EXEC)
        stay_exec_begin(s, a);
    else
        stay_cell_begin(s, a);
}

static void hear_body(struct stay *s, struct stay_ask *a)
{
    struct err e = ERR_INIT;
    int whole = sock_inbox_take(&a->reader->inbox, a->reader->fd, &e);

    if (whole > 0 && !s->stop) /* else it gets the same answer as all */
        take_body(s, a);
    if (whole < 0)
        reader_close(a->reader);
}

void stay_hear_reader(struct stay *s, struct reader *r, uint32_t events)
{
    struct stay_ask *a = ask_of(s, r);

    if (r->fd >= 0 && (events & EPOLLOUT)) {
        reader_flush(r);
        if (a && a->live && r->out.len == 0) /* there may be more for it by now */
            s->tick = deadline_min(s->tick, deadline_in_ms(LIVE_TELL_MS));
    }
    if (r->fd < 0 || !(events & ~(uint32_t)EPOLLOUT))
        return;
    if (a && has_commands(a->kind) && !a->body) {
        hear_body(s, a);
        return;
    }
    enum reader_word word = reader_hear(r);
    if (word == READER_LEFT)
        reader_close(r);
    if (word == READER_SAYS_CANCEL && a)
        unwanted(s, a);
}

void stay_bury_readers(struct stay *s)
{
    for (size_t i = s->n_asks; i > 0; i--) {
        struct stay_ask *a = s->asks[i - 1];

        if (!a->reader || a->reader->fd >= 0)
            continue;
        a->reader = NULL;
        unwanted(s, a);
    }
    readers_bury(&s->readers);
}
