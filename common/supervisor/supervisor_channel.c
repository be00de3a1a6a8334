#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/base/sock.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define REDIAL_MS  200
#define MESSAGE_MS 1000 /* for the rest of a message whose beginning is there */

void supervisor_say(const struct supervisor *s, json_t *take_message)
{
    struct err e = ERR_INIT;
    json_auto_t *message = take_message;

    if (s->channel >= 0 && wire_post(s->channel, message, -1, &e) < 0)
        log_debug("the broker does not listen: %s", e.text);
}

void supervisor_say_started(const struct supervisor *s)
{
    supervisor_say(s, json_pack("{s:s}", "is", "started"));
}

/* ---- what the main process says ---- */

static void do_claim(struct supervisor *s, const json_t *message, int connection)
{
    supervisor_claim(s, json_object_get(message, "head"), json_get_integer(message, "queueMs", 0),
                     connection);
}

static void do_hand(struct supervisor *s, const json_t *message, int connection)
{
    supervisor_take_waiter(s, json_object_get(message, "head"), connection);
}

static void do_preload(struct supervisor *s, const json_t *message, int connection)
{
    struct err e = ERR_INIT;

    (void)message;
    auto_close_fd(&connection);
    if (!s->started || s->claimed || !s->start->runner->preload || !*s->start->runner->preload)
        return;
    if (s->engine->ops->preload(s->engine, s->start->runner->preload, &e) < 0)
        log_debug("preload: %s", e.text); /* a container that is gone is noticed anyway */
}

static const struct {
    const char *name;
    void (*act)(struct supervisor *s, const json_t *message, int connection);
    bool with_connection; /* one comes along */
} deeds[] = {
    {"claim", do_claim, true},
    {"hand", do_hand, true},
    {"preload", do_preload, false},
};

static void heed(struct supervisor *s, const json_t *message, int take_fd)
{
    AUTO_FD int connection = take_fd;
    const char *name = json_get_string(message, "do");

    for (size_t i = 0; name && i < ARRAY_LEN(deeds); i++)
        if (strcmp(name, deeds[i].name) == 0 && deeds[i].with_connection == (connection >= 0))
            deeds[i].act(s, message, TAKE_FD(connection));
}

/* Without a run there is nothing to go on for. */
static void lose_channel(struct supervisor *s)
{
    epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, s->channel, NULL);
    auto_close_fd(&s->channel);
    if (!s->claimed)
        s->stop = true;
    else if (!s->reply && s->home.path[0])
        s->redial = deadline_in_ms(REDIAL_MS);
}

void supervisor_hear_channel(struct supervisor *s)
{
    struct err e = ERR_INIT;
    int connection = -1;
    json_auto_t *message = wire_recv(s->channel, &connection, deadline_in_ms(MESSAGE_MS), &e);

    if (message)
        heed(s, message, connection);
    else
        lose_channel(s);
}

void supervisor_close_channel(struct supervisor *s)
{
    if (s->channel < 0)
        return;
    s->stop = true;
    /* From now on whoever wants to hand something over is told that we are gone. */
    shutdown(s->channel, SHUT_RD);
    while (s->channel >= 0)
        supervisor_hear_channel(s);
}

/* ---- the next main process ---- */

void supervisor_redial(struct supervisor *s)
{
    struct err e = ERR_INIT;

    AUTO_FD int fd = broker_address_dial(&s->home);
    json_auto_t *head = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "op", op_name(OP_ADOPT_RUN), "runId",
        s->start->run_id, "tenant", s->request.tenant, "conversationId", s->request.conversation,
        "language", s->request.language, "state", "running", "background", s->options.background);
    if (fd < 0 || wire_post(fd, head, -1, &e) < 0 ||
        supervisor_watch(s, fd, SUPERVISOR_CHANNEL, &e) < 0) {
        s->redial = deadline_in_ms(REDIAL_MS);
        return;
    }
    s->channel = TAKE_FD(fd);
    s->redial = DEADLINE_NEVER;
}
