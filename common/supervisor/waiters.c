#include "config.h"

#include "common/supervisor/waiters.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <sys/socket.h>

#define WORD_MAX      1024 /* bytes of a message that is no body */
#define BUSY_RETRY_MS 1000

#define OUTPUT_MS    50     /* the shortest time between two batches of output */
#define BATCH_BYTES  65536u /* of output, at one tick for one waiter */
#define BATCH_PIECES 64
#define BEHIND_BYTES (4 * BATCH_BYTES) /* a waiter further behind skips to the newest output */
#define LINE_MS      200               /* a line without its end is sent after this */

void waiters_init(struct waiters *ws, struct loop *loop, loop_handler *ready)
{
    *ws = (struct waiters){.loop = loop,
                           .ready = ready,
                           .output_at = DEADLINE_NEVER,
                           .output_not_before = deadline_in_ms(0)};
}

struct waiter *waiters_add(struct waiters *ws, int fd, enum waiter_kind kind)
{
    struct err e = ERR_INIT;

    if (ws->n == WAITERS_MAX)
        return NULL;
    struct waiter *r = mem_alloc(sizeof *r);
    *r = (struct waiter){.fd = fd,
                         .all = ws,
                         .kind = kind,
                         .rest_by = DEADLINE_NEVER,
                         .answer_by = DEADLINE_NEVER,
                         .give_up = DEADLINE_NEVER,
                         .out = BUF_INIT(WIRE_MESSAGE_MAX),
                         .passed = FDS_INIT(FDS_MAX),
                         .inbox = SOCK_INBOX_INIT(WORD_MAX)};
    if (loop_add(ws->loop, &r->watch, fd, EPOLLIN, ws->ready, r, &e) < 0) {
        log_warn("a caller cannot be watched: %s", e.text);
        free(r);
        return NULL;
    }
    ws->items[ws->n++] = r;
    return r;
}

void waiter_close(struct waiter *r)
{
    if (r->fd < 0)
        return;
    loop_remove(r->all->loop, &r->watch);
    shutdown(r->fd, SHUT_RDWR); /* another process may hold the connection too */
    auto_close_fd(&r->fd);
    fds_clear(&r->passed);
    r->rest_by = r->answer_by = r->give_up = DEADLINE_NEVER;
}

static void waiter_free(struct waiter *r)
{
    waiter_close(r);
    buf_clear(&r->out);
    sock_inbox_clear(&r->inbox);
    free(r);
}

void waiters_reap(struct waiters *ws)
{
    size_t kept = 0;

    for (size_t i = 0; i < ws->n; i++)
        if (ws->items[i]->fd < 0)
            waiter_free(ws->items[i]);
        else
            ws->items[kept++] = ws->items[i];
    ws->n = kept;
}

void waiters_clear(struct waiters *ws)
{
    while (ws->n > 0)
        waiter_free(ws->items[--ws->n]);
}

/* ---- to its peer ---- */

static void waiter_flush(struct waiter *r)
{
    struct err e = ERR_INIT;

    if (r->out.len == 0)
        return;
    ssize_t n = sock_send_some(r->fd, r->out.data + r->sent, r->out.len - r->sent, &r->passed);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        waiter_close(r);
        return;
    }
    if (n > 0) {
        r->sent += (size_t)n;
        fds_clear(&r->passed);
    }
    bool all = r->sent == r->out.len;
    bool waited = r->give_up.at_ms >= 0;
    if ((all && r->answered) ||
        (all == waited &&
         loop_change(r->all->loop, &r->watch, all ? EPOLLIN : EPOLLIN | EPOLLOUT, &e) < 0)) {
        waiter_close(r);
        return;
    }
    if (all) {
        buf_reset(&r->out);
        r->sent = 0;
        r->give_up = DEADLINE_NEVER;
    } else if (n > 0 || !waited) {
        r->give_up = deadline_in_ms(WAITER_TIMEOUT_MS);
    }
}

void waiter_send(struct waiter *r, const json_t *message)
{
    struct err e = ERR_INIT;

    if (r->fd < 0 || r->answered)
        return;
    if (wire_frame(message, &r->out, &e) < 0) {
        log_warn("cannot send an answer: %s", e.text);
        waiter_close(r);
    } else if (r->give_up.at_ms < 0) { /* else the socket is known to be full */
        waiter_flush(r);
    }
}

void waiter_answer(struct waiter *r, const json_t *message)
{
    waiter_send(r, message);
    r->answered = true;
    r->answer_by = r->rest_by = DEADLINE_NEVER;
    if (r->fd >= 0 && r->out.len == 0)
        waiter_close(r);
}

void waiter_answer_with_fds(struct waiter *r, const json_t *message, struct fds *fds)
{
    if (r->fd >= 0 && !r->answered && r->out.len == 0)
        fds_move(&r->passed, fds);
    waiter_answer(r, message);
}

void waiter_refuse(int fd, const struct err *problem)
{
    reply_send_refusal(fd, problem, problem->kind == ERR_BUSY ? BUSY_RETRY_MS : 0);
}

/* ---- output ---- */

static bool waiter_wants_output(const struct waiter *r)
{
    return r->fd >= 0 && !r->answered && r->output;
}

static void waiter_send_gap(struct waiter *r, uint64_t to)
{
    json_auto_t *gap = json_pack("{s:{s:I}, s:I}", "live", "skipped",
                                 (json_int_t)(to - r->output_sent), "nextByte", (json_int_t)to);

    waiter_send(r, gap);
    r->output_sent = to;
}

/* One message with the next piece; false: none is due. */
static bool waiter_send_piece(struct waiter *r, size_t max, enum output_cut cut)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * BATCH_BYTES);
    struct output_piece piece;

    if (!output_piece_at(r->output, r->output_sent, max, cut, &text, &piece))
        return false;
    if (piece.skipped > 0)
        waiter_send_gap(r, r->output_sent + piece.skipped);
    json_auto_t *message = json_pack(
        "{s:{s:o}, s:I}", "live", piece.stream == ENGINE_STDOUT ? "stdout" : "stderr",
        json_stringn(buf_str(&text), text.len), "nextByte", (json_int_t)piece.next);
    waiter_send(r, message);
    r->output_sent = piece.next;
    return true;
}

/*
 * The next batch for a live waiter that has taken the one before: whole lines, and never more than
 * it takes. over: no more will come. True when there is more to send later. A line without its end
 * is sent after a while: rest_by says when to call again.
 */
static bool waiter_send_output(struct waiter *r, bool over)
{
    uint64_t total = output_total(r->output);

    if (r->out.len > 0) { /* called again when its peer has taken this */
        r->rest_by = DEADLINE_NEVER;
        return false;
    }
    if (total - r->output_sent > BEHIND_BYTES)
        waiter_send_gap(r, output_line_behind(r->output, total - BATCH_BYTES));
    uint64_t from = r->output_sent;
    bool rest = deadline_passed(r->rest_by);
    enum output_cut cut = over ? OUTPUT_OVER : rest ? OUTPUT_REST : OUTPUT_LINES;
    bool more = true;
    for (int i = 0; more && i < BATCH_PIECES && r->output_sent - from < BATCH_BYTES - 4; i++)
        more = waiter_send_piece(r, BATCH_BYTES - (size_t)(r->output_sent - from), cut);
    if (more)
        return true;
    if (r->output_sent == total || rest)
        r->rest_by = DEADLINE_NEVER;
    else if (r->rest_by.at_ms < 0 || r->output_sent != from)
        r->rest_by = deadline_in_ms(LINE_MS);
    return false;
}

void waiter_send_rest(struct waiter *r)
{
    if (waiter_wants_output(r) && r->live)
        waiter_send_output(r, true);
}

static void waiters_output_soon(struct waiters *ws)
{
    ws->output_at = deadline_min(ws->output_at, deadline_in_ms(OUTPUT_MS));
}

void waiters_on_output(struct waiters *ws, const struct output *output)
{
    for (size_t i = 0; ws->output_at.at_ms < 0 && i < ws->n; i++)
        if (waiter_wants_output(ws->items[i]) && ws->items[i]->output == output)
            ws->output_at = deadline_passed(ws->output_not_before) ? deadline_in_ms(0)
                                                                   : ws->output_not_before;
}

static void waiter_tend(struct waiter *r, bool due)
{
    if (deadline_passed(r->give_up)) {
        log_debug("dropping a caller that takes nothing");
        waiter_close(r);
    }
    if (!waiter_wants_output(r))
        return;
    if (!r->live && !r->to_end && due && r->since < output_total(r->output) && r->rest_by.at_ms < 0)
        r->rest_by = deadline_in_ms(OUTPUT_MS); /* more may come until then */
    if (r->live && (due || deadline_passed(r->rest_by)) && waiter_send_output(r, false))
        waiters_output_soon(r->all);
}

struct deadline waiters_tend(struct waiters *ws)
{
    bool due = deadline_passed(ws->output_at);
    struct deadline next = DEADLINE_NEVER;

    if (due) {
        ws->output_at = DEADLINE_NEVER;
        ws->output_not_before = deadline_in_ms(OUTPUT_MS);
    }
    for (size_t i = 0; i < ws->n; i++) {
        const struct waiter *r = ws->items[i];

        waiter_tend(ws->items[i], due);
        next = deadline_min(next, deadline_min(r->give_up, deadline_min(r->rest_by, r->answer_by)));
    }
    return deadline_min(next, ws->output_at);
}

/* ---- from its peer ---- */

enum waiter_event waiter_on_event(struct waiter *r, uint32_t events)
{
    struct err e = ERR_INIT;
    int got = 0;

    if (r->fd >= 0 && events & EPOLLOUT)
        waiter_flush(r);
    if (waiter_wants_output(r) && r->out.len == 0) /* it may have taken the batch before */
        waiters_output_soon(r->all);
    if (r->fd < 0 || !(events & ~(uint32_t)EPOLLOUT))
        return WAITER_NOTHING;
    while ((got = sock_inbox_take(&r->inbox, r->fd, &e)) > 0) {
        if (r->body_due) {
            r->body_due = false;
            r->inbox.message.max = WORD_MAX; /* of what follows */
            return WAITER_BODY;
        }
        json_auto_t *message = wire_parse(&r->inbox.message, &e);
        if (json_get_bool(message, "cancel", 0))
            return WAITER_CANCELS;
    }
    if (got == 0)
        return WAITER_NOTHING;
    waiter_close(r);
    return WAITER_LEFT;
}
