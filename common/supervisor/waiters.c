#include "config.h"

#include "common/supervisor/waiters.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORD_MAX 1024 /* bytes of a message from a waiter */

static void watch(struct waiter *r, int op, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = r};

    epoll_ctl(r->epoll_fd, op, r->fd, &event);
}

struct waiter *waiters_add(struct waiters *rs, int fd, enum waiter_kind kind)
{
    if (rs->n == WAITERS_MAX)
        return NULL;
    struct waiter *r = mem_alloc(sizeof *r);
    *r = (struct waiter){.fd = fd,
                         .epoll_fd = rs->epoll_fd,
                         .kind = kind,
                         .rest_by = DEADLINE_NEVER,
                         .answer_by = DEADLINE_NEVER,
                         .gives_up = DEADLINE_NEVER,
                         .out = BUF_INIT(WIRE_MESSAGE_MAX),
                         .ride = FDS_INIT(FDS_MAX),
                         .inbox = SOCK_INBOX_INIT(WORD_MAX)};
    rs->items[rs->n++] = r;
    watch(r, EPOLL_CTL_ADD, EPOLLIN);
    return r;
}

void waiter_close(struct waiter *r)
{
    if (r->fd < 0)
        return;
    /* Another process may hold the connection too: closing alone would neither end it nor its
     * events. */
    watch(r, EPOLL_CTL_DEL, 0);
    shutdown(r->fd, SHUT_RDWR);
    auto_close_fd(&r->fd);
    fds_clear(&r->ride);
    r->rest_by = r->answer_by = r->gives_up = DEADLINE_NEVER;
}

static void waiter_free(struct waiter *r)
{
    waiter_close(r);
    buf_clear(&r->out);
    sock_inbox_clear(&r->inbox);
    free(r);
}

void waiters_reap(struct waiters *rs)
{
    size_t kept = 0;

    for (size_t i = 0; i < rs->n; i++)
        if (rs->items[i]->fd < 0)
            waiter_free(rs->items[i]);
        else
            rs->items[kept++] = rs->items[i];
    rs->n = kept;
}

void waiters_clear(struct waiters *rs)
{
    while (rs->n > 0)
        waiter_free(rs->items[--rs->n]);
}

/* ---- what it is told ---- */

void waiter_flush(struct waiter *r)
{
    if (r->fd < 0 || r->out.len == 0)
        return;
    ssize_t n = sock_send_some(r->fd, r->out.data + r->sent, r->out.len - r->sent, &r->ride);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        waiter_close(r);
        return;
    }
    if (n > 0) {
        r->sent += (size_t)n;
        fds_clear(&r->ride);
    }
    bool all = r->sent == r->out.len;
    if (all && r->answered) {
        waiter_close(r);
        return;
    }
    bool waited = r->gives_up.at_ms >= 0;
    if (all) {
        buf_reset(&r->out);
        r->sent = 0;
    }
    if (all == waited)
        watch(r, EPOLL_CTL_MOD, all ? EPOLLIN : EPOLLIN | EPOLLOUT);
    if (all)
        r->gives_up = DEADLINE_NEVER;
    else if (n > 0 || !waited)
        r->gives_up = deadline_in_ms(WAITER_PATIENCE_S * 1000);
}

void waiter_tell(struct waiter *r, const json_t *message)
{
    struct err e = ERR_INIT;

    if (r->fd < 0 || r->answered)
        return;
    bool idle = r->out.len == 0;
    if (wire_frame(message, &r->out, &e) < 0) {
        log_warn("an answer could not be sent: %s", e.text);
        waiter_close(r);
        return;
    }
    if (idle) /* else it is known to take nothing now */
        waiter_flush(r);
}

void waiter_answer(struct waiter *r, const json_t *message)
{
    struct err e = ERR_INIT;

    if (r->fd < 0 || r->answered)
        return;
    r->answered = true;
    r->answer_by = r->rest_by = DEADLINE_NEVER;
    if (wire_frame(message, &r->out, &e) < 0) {
        log_warn("an answer could not be sent: %s", e.text);
        waiter_close(r);
        return;
    }
    waiter_flush(r);
}

void waiter_answer_with_fds(struct waiter *r, const json_t *message, struct fds *fds)
{
    if (r->fd >= 0 && !r->answered && r->out.len == 0)
        fds_move(&r->ride, fds);
    waiter_answer(r, message);
}

void waiter_refuse(int fd, const json_t *message)
{
    struct err e = ERR_INIT;

    if (wire_post(fd, message, -1, &e) < 0)
        log_debug("a refusal was not heard: %s", e.text);
    shutdown(fd, SHUT_RDWR);
    close(fd);
}

/* ---- what it says ---- */

static bool is_cancel(const struct buf *text)
{
    struct err e = ERR_INIT;
    json_auto_t *message = wire_parse(text, &e);

    return json_get_bool(message, "cancel", 0);
}

enum waiter_word waiter_hear(struct waiter *r)
{
    struct err e = ERR_INIT;
    int got;

    while ((got = sock_inbox_take(&r->inbox, r->fd, &e)) > 0)
        if (is_cancel(&r->inbox.message))
            return WAITER_SAYS_CANCEL;
    return got < 0 ? WAITER_LEFT : WAITER_SAYS_NOTHING;
}
