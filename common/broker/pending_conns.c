#include "config.h"

#include "common/broker/pending_conns.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/broker/broker.h"
#include "common/protocol/wire.h"

#define HEAD_MS   30000
#define HEADS_MAX 256

struct head {
    struct head *next;
    int fd;
    struct sock_inbox inbox;
    struct loop_watch watch;
    struct deadline end;
};

static void drop(struct broker *b, struct head *head)
{
    struct head **at = &b->pending_conns.first;
    while (*at != head)
        at = &(*at)->next;
    *at = head->next;
    b->pending_conns.n--;
    loop_remove(&b->loop, &head->watch);
    auto_close_fd(&head->fd);
    sock_inbox_clear(&head->inbox);
    free(head);
}

/* The message is there. */
static void finish(struct broker *b, struct head *head)
{
    struct err e = ERR_INIT;
    AUTO_FD int passed = fds_take(&head->inbox.passed);
    json_auto_t *message = wire_parse(&head->inbox.message, &e);

    loop_remove(&b->loop, &head->watch);
    if (message) {
        dispatch_call(b, TAKE_FD(head->fd), message, TAKE_FD(passed));
    } else {
        log_warn("request not understood: %s", e.text);
        reply_send_error(TAKE_FD(head->fd), &e);
    }
    drop(b, head);
}

/* Takes in what has come; false: the head is gone. */
static bool advance(struct broker *b, struct head *head)
{
    struct err e = ERR_INIT;
    int whole = sock_inbox_take(&head->inbox, head->fd, &e);
    if (whole == 0)
        return true;
    if (whole > 0) {
        finish(b, head);
        return false;
    }
    if (e.kind != ERR_CANCELLED) /* a probe that connects and leaves is no event */
        log_warn("request not understood: %s", e.text);
    drop(b, head);
    return false;
}

static void hear(void *owner, void *item, uint32_t events)
{
    struct broker *b = owner;
    (void)events;
    advance(b, item);
}

void pending_conns_take(struct broker *b, int take_fd)
{
    struct err e = ERR_INIT;
    struct head *head = mem_alloc(sizeof *head);
    *head = (struct head){.fd = take_fd,
                          .inbox = SOCK_INBOX_INIT(WIRE_HEAD_MAX),
                          .watch = LOOP_WATCH_INIT,
                          .end = deadline_in_ms(HEAD_MS)};
    if (b->pending_conns.n >= HEADS_MAX) {
        log_warn("%d connections say nothing; the oldest is closed", HEADS_MAX);
        drop(b, b->pending_conns.first);
    }
    struct head **at = &b->pending_conns.first;
    while (*at)
        at = &(*at)->next;
    *at = head;
    b->pending_conns.n++;
    if (advance(b, head) &&
        loop_add(&b->loop, &head->watch, take_fd, EPOLLIN, hear, head, &e) < 0) {
        log_error("%s", e.text);
        drop(b, head);
    }
}

void pending_conns_tick(struct broker *b)
{
    while (b->pending_conns.first && deadline_passed(b->pending_conns.first->end))
        drop(b, b->pending_conns.first);
}

struct deadline pending_conns_next(const struct pending_conns *h)
{
    return h->first ? h->first->end : DEADLINE_NEVER;
}

void pending_conns_clear(struct broker *b)
{
    while (b->pending_conns.first)
        drop(b, b->pending_conns.first);
}
