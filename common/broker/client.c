#include "config.h"

#include "common/broker/client.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/sock.h"
#include "common/broker/wire.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

/* One look at both ends: 1 the broker answers, 0 nothing within the time, -1. */
static int look(int fd, int cancel_fd, int timeout_ms, struct err *e)
{
    /* Only a hang-up counts: a web server may have left bytes of the request's end unread. */
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = cancel_fd, .events = POLLRDHUP}};

    if (poll(p, 2, timeout_ms) < 0)
        return errno == EINTR ? 0 : err_errno(e, "waiting for the broker");
    if (p[1].revents)
        return err_set(e, ERR_CANCELLED, "the client went away");
    return p[0].revents != 0;
}

/* Waits until the broker answers; ERR_CANCELLED as soon as the client's side hangs up. */
static int wait_for_reply(const struct broker_client *c, int fd, struct err *e)
{
    struct deadline next = c->tick ? deadline_in_ms(0) : DEADLINE_NEVER;
    int found = 0;

    while (found == 0) {
        if (c->tick && deadline_passed(next)) {
            c->tick(c->tick_ctx);
            next = deadline_in_ms(c->tick_ms);
        }
        found = look(fd, c->cancel_fd, deadline_poll_ms(next), e);
    }
    return found < 0 ? -1 : 0;
}

/* The reply's result (new reference), or NULL with the broker's error. */
static json_t *take_reply(const json_t *reply, struct err *e)
{
    const json_t *error = json_object_get(reply, "error");
    if (error) {
        const char *kind = json_get_string(error, "kind");
        const char *text = json_get_string(error, "text");
        err_set(e, err_kind_parse(kind ? kind : ""), "%s", text ? text : "the broker failed");
        return NULL;
    }
    json_t *result = json_object_get(reply, "result");
    if (!result)
        err_set(e, ERR_PROTOCOL, "the broker's answer has no result");
    return json_incref(result); /* the reply goes, its result stays */
}

static json_t *call(const struct broker_client *c, const json_t *request, int pass_fd, int *out_fd,
                    struct err *e)
{
    AUTO_FD int fd = sock_connect_unix(c->path, e);
    if (fd < 0)
        return NULL;
    if (wire_send(fd, request, pass_fd, e) < 0 || wait_for_reply(c, fd, e) < 0)
        return NULL;
    json_auto_t *reply = wire_recv(fd, out_fd, DEADLINE_NEVER, e);
    if (!reply) {
        if (e->kind == ERR_CANCELLED) /* the broker's side ended without a word */
            err_set(e, ERR_LOST, "the run was lost: its supervisor ended; try again");
        return NULL;
    }
    return take_reply(reply, e);
}

json_t *broker_run(const struct broker_client *c, const struct run_request *request, struct err *e)
{
    json_auto_t *message = wire_run_encode(request);
    return call(c, message, -1, NULL, e);
}

static json_t *file_message(const char *op, const char *tenant, const char *conversation,
                            const char *name)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "op", op, "tenant", tenant, "conversation",
                     conversation, "name", name);
}

json_t *broker_put_file(const struct broker_client *c, const char *tenant, const char *conversation,
                        const char *name, int fd, size_t size, struct err *e)
{
    json_auto_t *message = file_message("put", tenant, conversation, name);
    json_object_set_new(message, "size", json_integer((json_int_t)size));
    return call(c, message, fd, NULL, e);
}

int broker_open_file(const struct broker_client *c, const char *tenant, const char *conversation,
                     const char *name, struct stat *out, struct err *e)
{
    json_auto_t *message = file_message("open", tenant, conversation, name);
    AUTO_FD int fd = -1;
    json_auto_t *result = call(c, message, -1, &fd, e);
    if (!result)
        return -1;
    if (fd < 0)
        return err_set(e, ERR_PROTOCOL, "the broker passed no file");
    if (fstat(fd, out) < 0)
        return err_errno(e, "looking at the file");
    return TAKE_FD(fd);
}

json_t *broker_list_files(const struct broker_client *c, const char *tenant, const json_t *after,
                          size_t max, struct err *e)
{
    json_auto_t *message = json_pack("{s:s, s:s, s:I}", "op", "list", "tenant", tenant, "max",
                                     (json_int_t)max);
    if (after) {
        json_t *copy = json_deep_copy(after);
        json_object_set_new(message, "after", copy);
    }
    return call(c, message, -1, NULL, e);
}

json_t *broker_names(const struct broker_client *c, const char *tenant, const char *conversation,
                     const char *prefix, size_t max, struct err *e)
{
    json_auto_t *message = json_pack("{s:s, s:s, s:s, s:I}", "op", "names", "tenant", tenant,
                                     "prefix", prefix, "max", (json_int_t)max);
    if (conversation)
        json_object_set_new(message, "conversation", json_string(conversation));
    return call(c, message, -1, NULL, e);
}

static json_t *simple_call(const struct broker_client *c, const char *op, struct err *e)
{
    json_auto_t *message = json_pack("{s:s}", "op", op);
    return call(c, message, -1, NULL, e);
}

json_t *broker_runners(const struct broker_client *c, struct err *e)
{
    return simple_call(c, "runners", e);
}

int broker_ping(const struct broker_client *c, struct err *e)
{
    json_auto_t *result = simple_call(c, "ping", e);
    return result ? 0 : -1;
}
