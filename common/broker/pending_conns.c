#include "config.h"

#include "common/broker/pending_conns.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/protocol/wire.h"

#define HEAD_MS   30000
#define CONNS_MAX 256
#define QUIET_MS  10000 /* between two lines about connections that are closed */

struct pending_conn {
    struct pending_conn *next;
    struct pending_conns *conns;
    int fd;
    enum op_sender sender;
    struct sock_inbox inbox;
    struct loop_watch watch;
    struct deadline end;
};

/* A peer that goes on so does not fill the log. */
static void tell(struct pending_conns *conns, const char *what)
{
    if (!deadline_passed(conns->quiet)) {
        conns->n_untold++;
        return;
    }
    log_warn("a connection to the broker is closed: %s (%zu more since the last such line)", what,
             conns->n_untold);
    conns->n_untold = 0;
    conns->quiet = deadline_in_ms(QUIET_MS);
}

static void conn_drop(struct pending_conn *conn)
{
    struct pending_conn **at = &conn->conns->first;

    while (*at != conn)
        at = &(*at)->next;
    *at = conn->next;
    conn->conns->n--;
    loop_remove(conn->conns->loop, &conn->watch);
    auto_close_fd(&conn->fd);
    sock_inbox_clear(&conn->inbox);
    free(conn);
}

static void conn_dispatch(struct pending_conn *conn)
{
    struct pending_conns *conns = conn->conns;
    struct err e = ERR_INIT;
    AUTO_FD int passed = fds_take(&conn->inbox.passed);
    json_auto_t *message = wire_parse(&conn->inbox.message, &e);

    const enum op_sender sender = conn->sender;

    loop_remove(conns->loop, &conn->watch);
    AUTO_FD int fd = TAKE_FD(conn->fd);
    conn_drop(conn);
    if (message) {
        conns->dispatch(conns->ctx, TAKE_FD(fd), sender, message, TAKE_FD(passed));
    } else {
        tell(conns, e.text);
        reply_send_error(TAKE_FD(fd), &e);
    }
}

/* Reads what has come; false: the connection is not pending any more. */
static bool conn_read(struct pending_conn *conn)
{
    struct err e = ERR_INIT;
    int whole = sock_inbox_take(&conn->inbox, conn->fd, &e);

    if (whole > 0)
        conn_dispatch(conn);
    if (whole >= 0)
        return whole == 0;
    if (e.kind != ERR_CANCELLED) /* a probe that connects and leaves is no event */
        tell(conn->conns, e.text);
    conn_drop(conn);
    return false;
}

static void on_readable(void *owner, void *item, uint32_t events)
{
    (void)owner;
    (void)events;
    conn_read(item);
}

void pending_conns_add(struct pending_conns *conns, int take_fd, enum op_sender sender)
{
    struct err e = ERR_INIT;
    struct pending_conn *conn = mem_alloc(sizeof *conn);
    struct pending_conn **at = &conns->first;

    *conn = (struct pending_conn){.conns = conns,
                                  .fd = take_fd,
                                  .sender = sender,
                                  .inbox = SOCK_INBOX_INIT(WIRE_HEAD_MAX),
                                  .watch = LOOP_WATCH_INIT,
                                  .end = deadline_in_ms(HEAD_MS)};
    if (conns->n >= CONNS_MAX) {
        tell(conns, "too many send no request, and it is the oldest");
        conn_drop(conns->first);
    }
    while (*at)
        at = &(*at)->next;
    *at = conn;
    conns->n++;
    if (conn_read(conn) &&
        loop_add(conns->loop, &conn->watch, take_fd, EPOLLIN, on_readable, conn, &e) < 0) {
        tell(conns, e.text);
        conn_drop(conn);
    }
}

void pending_conns_tick(struct pending_conns *conns)
{
    while (conns->first && deadline_passed(conns->first->end))
        conn_drop(conns->first);
}

struct deadline pending_conns_due(const struct pending_conns *conns)
{
    return conns->first ? conns->first->end : DEADLINE_NEVER;
}

void pending_conns_clear(struct pending_conns *conns)
{
    while (conns->first)
        conn_drop(conns->first);
}
