#include "config.h"

#include "common/supervisor/psandbox_self.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <string.h>
#include <sys/epoll.h>

#define WORD_MAX 1024 /* bytes of what a caller says behind its body */

/* ---- who asks ---- */

static const struct {
    enum broker_op op;
    enum psandbox_ask_kind kind;
} ops[] = {
    {OP_CREATE_PSANDBOX, PSANDBOX_CREATE},
    {OP_EXEC, PSANDBOX_EXEC},
    {OP_SESSION, PSANDBOX_SESSION},
    {OP_CLOSE_PSANDBOX, PSANDBOX_CLOSE},
};

static bool has_commands(enum psandbox_ask_kind kind)
{
    return kind == PSANDBOX_EXEC || kind == PSANDBOX_SESSION;
}

static struct psandbox_ask *ask_of(const struct psandbox *s, const struct waiter *r)
{
    for (size_t i = 0; i < s->n_asks; i++)
        if (s->asks[i]->waiter == r)
            return s->asks[i];
    return NULL;
}

size_t psandbox_busy(const struct psandbox *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_asks; i++)
        n += has_commands(s->asks[i]->kind);
    return n;
}

static void ask_free(struct psandbox_ask *a)
{
    run_capture_clear(&a->capture);
    snapshot_clear(&a->before);
    output_ring_free(a->live);
    json_decref(a->results);
    wire_run_decoded_clear(&a->request);
    json_decref(a->head);
    json_decref(a->body);
    free(a);
}

static void remove_ask(struct psandbox *s, struct psandbox_ask *a)
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

void psandbox_answer(struct psandbox *s, struct psandbox_ask *a, json_t *take_reply)
{
    json_auto_t *reply = take_reply;

    if (a->waiter && a->live)
        output_stream_send(a->live, a->waiter, true);
    if (a->waiter)
        waiter_answer(a->waiter, reply);
    remove_ask(s, a);
}

void psandbox_refuse(struct psandbox *s, struct psandbox_ask *a, const struct err *e)
{
    psandbox_answer(s, a, wire_error_new(e));
}

void psandbox_answer_all(struct psandbox *s, enum psandbox_ask_kind kind, json_t *take_reply)
{
    json_auto_t *reply = take_reply;

    for (size_t i = s->n_asks; i > 0; i--)
        if (s->asks[i - 1]->kind == kind)
            psandbox_answer(s, s->asks[i - 1], json_incref(reply)); /* each takes a reference */
}

static void refuse(int take_connection, enum err_kind kind, const char *text)
{
    struct err e = ERR_INIT;

    err_set(&e, kind, "%s", text);
    json_auto_t *message = wire_error_new(&e);
    waiter_refuse(take_connection, message);
}

/* ---- the log ---- */

static void answer_log(struct psandbox *s, int take_connection)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * OUTPUT_RING_KEEP);
    struct waiter *r = waiters_add(&s->waiters, take_connection, WAITER_POLL);
    uint64_t next, skipped;

    if (!r) {
        refuse(take_connection, ERR_BUSY, "too many callers ask this sandbox; try again soon");
        return;
    }
    output_ring_text(s->log, output_ring_oldest(s->log), OUTPUT_RING_KEEP, true, &text, &next,
                     &skipped);
    json_auto_t *reply = json_pack("{s:{s:o}}", "result", "text",
                                   json_stringn(buf_str(&text), text.len));
    waiter_answer(r, reply);
}

/* ---- new ones ---- */

/* The main process hands over by id; that it is the owner's call is made sure of here too. */
static bool is_ours(const struct psandbox *s, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *psandbox_id = json_get_string(head, "sandboxId");
    const char *conversation = json_get_string(head, "conversationId");
    const char *run_id = psandbox_id ? psandbox_run_id(psandbox_id) : NULL;

    if (!tenant || strcmp(tenant, s->tenant) != 0)
        return false;
    if (psandbox_id)
        return run_id && strcmp(run_id, s->start->run_id) == 0;
    return conversation && strcmp(conversation, s->conversation) == 0;
}

static void begin(struct psandbox *s, struct psandbox_ask *a)
{
    if (a->kind == PSANDBOX_CLOSE)
        psandbox_stop(s, "closed", PSANDBOX_CLOSED_BY_OWNER);
    if (has_commands(a->kind)) {
        a->waiter->inbox.message.max = WIRE_MESSAGE_MAX;
        psandbox_hear_waiter(s, a->waiter, EPOLLIN); /* most bodies are there */
    }
}

static bool op_kind(const json_t *head, enum psandbox_ask_kind *out)
{
    enum broker_op op = op_of(head);

    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (op == ops[i].op) {
            *out = ops[i].kind;
            return true;
        }
    return false;
}

static void add_ask(struct psandbox *s, const json_t *head, enum psandbox_ask_kind kind,
                    int take_connection)
{
    bool full = has_commands(kind) && psandbox_busy(s) >= PSANDBOX_AT_ONCE;
    struct waiter *r = full ? NULL : waiters_add(&s->waiters, take_connection, WAITER_CALLER);

    if (!r) {
        refuse(take_connection, ERR_BUSY,
               "sandboxId: too many commands run in this sandbox at once; try again when one has "
               "ended");
        return;
    }
    struct psandbox_ask *a = mem_alloc(sizeof *a);
    *a = (struct psandbox_ask){.kind = kind,
                               .waiter = r,
                               .head = json_deep_copy(head),
                               .came_ms = clock_mono_ms(),
                               .end = DEADLINE_NEVER};
    s->asks[s->n_asks++] = a;
    begin(s, a);
}

void psandbox_take(struct psandbox *s, const json_t *head, int take_connection)
{
    enum psandbox_ask_kind kind;

    if (!s->home.path[0])
        broker_address_remember(&s->home, take_connection);
    if (!is_ours(s, head))
        refuse(take_connection, ERR_NOT_FOUND, WIRE_NO_SUCH_SANDBOX);
    else if (op_of(head) == OP_PSANDBOX_LOGS)
        answer_log(s, take_connection);
    else if (op_kind(head, &kind))
        add_ask(s, head, kind, take_connection);
    else
        refuse(take_connection, ERR_INVALID, "no such operation");
}

/* ---- what they say ---- */

/* Its caller has left, or says so: what runs for it ends, the sandbox stays. */
static void unwanted(struct psandbox *s, struct psandbox_ask *a)
{
    if (a->kind == PSANDBOX_CREATE)
        psandbox_stop(s, "closed", "nobody waited for it");
    else if (a->begun)
        psandbox_kill(s, a, PSANDBOX_CANCELLED);
    else if (has_commands(a->kind))
        remove_ask(s, a);
}

static void take_body(struct psandbox *s, struct psandbox_ask *a)
{
    struct err e = ERR_INIT;

    a->body = wire_parse(&a->waiter->inbox.message, &e);
    a->waiter->inbox.message.max = WORD_MAX;
    if (!a->body || psandbox_read_body(s, a, &e) < 0)
        psandbox_refuse(s, a, &e);
    else if (a->kind == PSANDBOX_EXEC)
        psandbox_exec_begin(s, a);
    else
        psandbox_cell_begin(s, a);
}

static void hear_body(struct psandbox *s, struct psandbox_ask *a)
{
    struct err e = ERR_INIT;
    int whole = sock_inbox_take(&a->waiter->inbox, a->waiter->fd, &e);

    if (whole > 0 && !s->stop) /* else it gets the same answer as all */
        take_body(s, a);
    if (whole < 0)
        waiter_close(a->waiter);
}

void psandbox_hear_waiter(struct psandbox *s, struct waiter *r, uint32_t events)
{
    struct psandbox_ask *a = ask_of(s, r);

    if (r->fd >= 0 && (events & EPOLLOUT)) {
        waiter_flush(r);
        if (a && a->live && r->out.len == 0) /* there may be more for it by now */
            s->tick = deadline_min(s->tick, deadline_in_ms(OUTPUT_RING_TELL_MS));
    }
    if (r->fd < 0 || !(events & ~(uint32_t)EPOLLOUT))
        return;
    if (a && has_commands(a->kind) && !a->body) {
        hear_body(s, a);
        return;
    }
    enum waiter_word word = waiter_hear(r);
    if (word == WAITER_LEFT)
        waiter_close(r);
    if (word == WAITER_SAYS_CANCEL && a)
        unwanted(s, a);
}

void psandbox_reap_waiters(struct psandbox *s)
{
    for (size_t i = s->n_asks; i > 0; i--) {
        struct psandbox_ask *a = s->asks[i - 1];

        if (!a->waiter || a->waiter->fd >= 0)
            continue;
        a->waiter = NULL;
        unwanted(s, a);
    }
    waiters_reap(&s->waiters);
}
