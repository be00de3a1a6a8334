#include "config.h"

#include "common/protocol/client_archive.h"

#include "common/base/auto.h"
#include "common/base/sock.h"
#include "common/protocol/client_call.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define PIECE 65536

json_t *broker_archive_link(const struct broker_client *c, const char *tenant,
                            const char *conversation, const char *folder, const char *format,
                            struct err *e)
{
    json_auto_t *head = json_pack("{s:s, s:s, s:s, s:s, s:s}", "op", op_name(OP_ARCHIVE_LINK),
                                  "tenant", tenant, "conversationId", conversation, "folder",
                                  folder, "format", format);
    const struct client_call call = {.client = c, .head = head, .pass_fd = -1};

    return client_call(&call, e);
}

json_t *broker_unpack(const struct broker_client *c, const struct broker_unpack_want *want,
                      struct err *e)
{
    json_auto_t *head = json_pack("{s:s, s:s, s:s, s:s, s:b}", "op", op_name(OP_UNPACK), "tenant",
                                  want->tenant, "conversationId", want->conversation, "folder",
                                  want->folder, "replace", want->replace);
    const struct client_call call = {
        .client = c, .head = head, .pass_fd = want->archive ? -1 : want->archive_fd};

    if (want->archive)
        json_object_set_new(head, "name", json_string(want->archive));
    return client_call(&call, e);
}

/* ---- packing ---- */

struct flow {
    const struct broker_client *client;
    int (*write)(void *ctx, const char *data, size_t len);
    void *ctx;
    int from; /* the pipe that the broker's job writes to */
};

/* The next piece: 1 it was handed on, 0 the end, -1. */
static int pass_piece(const struct flow *f, struct err *e)
{
    char piece[PIECE];
    struct pollfd p[] = {{.fd = f->from, .events = POLLIN},
                         {.fd = f->client->cancel_fd, .events = POLLRDHUP}};

    if (poll(p, ARRAY_LEN(p), -1) < 0)
        return errno == EINTR ? 1 : err_errno(e, "waiting for the archive");
    if (p[1].revents)
        return err_set(e, ERR_CANCELLED, "the client went away");
    ssize_t n = read(f->from, piece, sizeof piece);
    if (n < 0)
        return errno == EINTR ? 1 : err_errno(e, "reading the archive");
    if (n > 0 && f->write(f->ctx, piece, (size_t)n) < 0)
        return err_set(e, ERR_CANCELLED, "the client went away");
    return n > 0;
}

/* Asks for it; returns the connection, with *out_from the pipe's reading end. */
static int begin(const struct broker_client *c, const char *subject, int *out_from, struct err *e)
{
    json_auto_t *head = json_pack("{s:s, s:s}", "op", op_name(OP_PACK), "subject", subject);
    int pipe_fds[2];
    AUTO_FD int fd = sock_connect_unix(c->path, e);

    if (fd < 0)
        return -1;
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_errno(e, "a pipe for the archive");
    AUTO_FD int to = pipe_fds[1];
    *out_from = pipe_fds[0];
    return wire_send(fd, head, to, e) < 0 ? -1 : TAKE_FD(fd);
}

int broker_pack(const struct broker_client *c, const char *subject,
                int (*write)(void *ctx, const char *data, size_t len), void *ctx, struct err *e)
{
    AUTO_FD int from = -1;
    AUTO_FD int fd = begin(c, subject, &from, e);
    const struct flow flow = {.client = c, .write = write, .ctx = ctx, .from = from};
    int more = fd < 0 ? -1 : 1;

    while (more > 0)
        more = pass_piece(&flow, e);
    if (more < 0)
        return -1;
    /* The pipe has ended; the job's last word says why. */
    json_auto_t *answer = wire_recv(fd, NULL, DEADLINE_NEVER, e);
    const json_t *error = json_object_get(answer, "error");
    if (!answer)
        return -1;
    return error ? wire_error_take(error, e) : 0;
}
