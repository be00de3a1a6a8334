#include "config.h"

#include "common/supervisor/channel.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#define REDIAL_MS  200
#define MESSAGE_MS 1000 /* for the rest of a message whose beginning is there */

/* ---- messages ---- */

void channel_send(const struct channel *c, json_t *take_message)
{
    struct err e = ERR_INIT;
    json_auto_t *message = take_message;

    if (c->fd >= 0 && wire_post(c->fd, message, -1, &e) < 0)
        log_debug("cannot send to the broker: %s", e.text);
}

static void channel_handle(struct channel *c, const json_t *message, int take_fd)
{
    AUTO_FD int connection = take_fd;
    const char *name = json_get_string(message, "do");

    for (const struct channel_handler *h = c->ops->handlers; name && h->name; h++)
        if (strcmp(name, h->name) == 0 && h->with_connection == (connection >= 0)) {
            h->handle(c->loop.owner, message, TAKE_FD(connection));
            return;
        }
}

static void channel_receive(struct channel *c)
{
    struct err e = ERR_INIT;
    int connection = -1;
    json_auto_t *message = wire_recv(c->fd, &connection, deadline_in_ms(MESSAGE_MS), &e);

    if (message) {
        channel_handle(c, message, connection);
        return;
    }
    loop_remove(&c->loop, &c->watch);
    auto_close_fd(&c->fd);
    if (c->ops->on_lost(c->loop.owner))
        c->redial = deadline_in_ms(REDIAL_MS);
}

static void channel_on_ready(void *owner, void *item, uint32_t events)
{
    (void)owner;
    (void)events;
    channel_receive(item);
}

void channel_close(struct channel *c)
{
    if (c->fd < 0)
        return;
    shutdown(c->fd, SHUT_RD); /* a sender gets EPIPE from now on, and serves the call elsewhere */
    while (c->fd >= 0)
        channel_receive(c);
}

/* ---- the next main process ---- */

static json_t *adopt_head(const struct channel *c)
{
    static const char *const members[] = {"tenant", "conversationId", "language", "network",
                                          "background"};
    json_t *head = op_head_new(OP_ADOPT, "{s:s, s:s}", "runId", c->run_id, "call",
                               op_name(op_of(c->head)));

    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        json_object_set(head, members[i], json_object_get(c->head, members[i]));
    c->ops->describe(c->loop.owner, head);
    return head;
}

static int channel_adopt(struct channel *c, struct err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    json_auto_t *head = adopt_head(c);

    snprintf(a.sun_path, sizeof a.sun_path, "%s", c->broker_path);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof a) < 0)
        return err_errno(e, "%s", c->broker_path);
    if (wire_post(fd, head, -1, e) < 0 ||
        loop_add(&c->loop, &c->watch, fd, EPOLLIN, channel_on_ready, c, e) < 0)
        return -1;
    c->fd = TAKE_FD(fd);
    return 0;
}

/* ---- the loop ---- */

void channel_ring_at(struct channel *c, struct deadline d)
{
    d = deadline_min(d, c->redial);
    if (d.at_ms == c->alarm.at_ms || (d.at_ms < 0 && c->alarm.at_ms < 0))
        return;
    /* A time of zero would disarm the timer. */
    struct itimerspec when = {
        .it_value = {.tv_sec = d.at_ms / 1000, .tv_nsec = d.at_ms % 1000 * 1000000 + 1}};
    if (d.at_ms < 0)
        when = (struct itimerspec){0};
    timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    c->alarm = d;
}

static void channel_on_timer(void *owner, void *item, uint32_t events)
{
    struct channel *c = item;
    uint64_t times;

    (void)owner;
    (void)events;
    if (read(c->timer_fd, &times, sizeof times) > 0)
        c->alarm = DEADLINE_NEVER;
}

void channel_dispatch(struct channel *c)
{
    struct err e = ERR_INIT;

    if (loop_dispatch(&c->loop, &e) < 0)
        log_error("a supervisor's events: %s", e.text);
    if (!deadline_passed(c->redial))
        return;
    c->redial = channel_adopt(c, &e) < 0 ? deadline_in_ms(REDIAL_MS) : DEADLINE_NEVER;
}

int channel_open(struct channel *c, int take_fd, const struct channel_ops *ops, void *owner,
                 struct err *e)
{
    *c = (struct channel){.loop = LOOP_INIT,
                          .fd = take_fd,
                          .watch = LOOP_WATCH_INIT,
                          .timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                          .timer_watch = LOOP_WATCH_INIT,
                          .alarm = DEADLINE_NEVER,
                          .redial = DEADLINE_NEVER,
                          .ops = ops};
    if (c->timer_fd < 0)
        return err_errno(e, "timerfd_create");
    if (loop_init(&c->loop, owner, e) < 0 ||
        loop_add(&c->loop, &c->timer_watch, c->timer_fd, EPOLLIN, channel_on_timer, c, e) < 0)
        return -1;
    return loop_add(&c->loop, &c->watch, c->fd, EPOLLIN, channel_on_ready, c, e);
}

void channel_clear(struct channel *c)
{
    loop_clear(&c->loop);
    auto_close_fd(&c->timer_fd);
    auto_close_fd(&c->fd);
}
