#include "config.h"

#include "common/protocol/client_files.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define PACK_PIECE 65536

/* ---- files ---- */

json_t *broker_put_file(const struct broker_client *c, const char *conversation, const char *name,
                        int fd, size_t size, bool replace, struct err *e)
{
    json_t *head = client_head_new(c, OP_PUT, "{s:s, s:s, s:I, s:b}", "conversationId",
                                   conversation, "name", name, "size", (json_int_t)size, "replace",
                                   replace);

    return client_ask_with_fd(c, head, fd, NULL, e);
}

/* The descriptor that rides along with the answer (out NULL: nothing else matters), or -1; takes
 * head. */
static int ask_for_fd(const struct broker_client *c, json_t *take_head, json_t **out, struct err *e)
{
    AUTO_FD int fd = -1;
    json_auto_t *result = client_ask_with_fd(c, take_head, -1, &fd, e);

    if (!result)
        return -1;
    if (fd < 0)
        return err_set(e, ERR_PROTOCOL, "the broker passed no file");
    if (out)
        *out = json_incref(result);
    return TAKE_FD(fd);
}

/* The file that rides along with the answer, and what it is; takes head. */
static int ask_for_file(const struct broker_client *c, json_t *take_head, struct stat *out,
                        struct err *e)
{
    AUTO_FD int fd = ask_for_fd(c, take_head, NULL, e);

    if (fd < 0)
        return -1;
    return fstat(fd, out) < 0 ? err_errno(e, "fstat of the file") : TAKE_FD(fd);
}

int broker_open_file(const struct broker_client *c, const char *conversation, const char *name,
                     struct stat *out, struct err *e)
{
    json_t *head = client_head_new(c, OP_OPEN, "{s:s, s:s}", "conversationId", conversation, "name",
                                   name);

    return ask_for_file(c, head, out, e);
}

int broker_open_linked(const struct broker_client *c, const char *conversation, const char *name,
                       struct stat *out, char **out_url, struct err *e)
{
    json_t *head = client_head_new(c, OP_OPEN, "{s:s, s:s}", "conversationId", conversation, "name",
                                   name);
    json_auto_t *answer = NULL;
    AUTO_FD int fd = ask_for_fd(c, head, &answer, e);

    if (fd < 0)
        return -1;
    if (fstat(fd, out) < 0)
        return err_errno(e, "fstat of the file");
    const char *url = json_get_string(answer, "url");
    *out_url = url ? mem_strdup(url) : NULL;
    return TAKE_FD(fd);
}

int broker_open_url(const struct broker_client *c, const char *uri, struct stat *out, struct err *e)
{
    AUTO_BUF struct buf ascii = BUF_INIT(BROKER_URI_MAX);

    for (const char *p = uri; *p; p++) {
        if (*p > ' ' && *p <= '~')
            buf_add_char(&ascii, *p);
        else
            buf_addf(&ascii, "%%%02X", (unsigned char)*p);
    }
    if (!buf_ok(&ascii))
        return err_set(e, ERR_NOT_FOUND, "there is no such file");
    return ask_for_file(c, client_head_new(c, OP_OPEN_URL, "{s:s}", "uri", buf_str(&ascii)), out,
                        e);
}

json_t *broker_list_files(const struct broker_client *c, const json_t *conversations,
                          const json_t *after, size_t max, struct err *e)
{
    return client_ask(c, e, OP_LIST, "{s:O, s:I, s:O*}", "conversations", conversations, "max",
                      (json_int_t)max, "after", after);
}

json_t *broker_names(const struct broker_client *c, const char *conversation, const char *prefix,
                     size_t max, struct err *e)
{
    return client_ask(c, e, OP_NAMES, "{s:s, s:s, s:I}", "conversationId", conversation, "prefix",
                      prefix, "max", (json_int_t)max);
}

json_t *broker_list_folder(const struct broker_client *c, const struct broker_listing *l,
                           struct err *e)
{
    return client_ask(c, e, OP_LIST_FOLDER, "{s:s, s:s, s:s*, s:b, s:b, s:s*, s:I}",
                      "conversationId", l->conversation, "folder", l->folder, "glob", l->glob,
                      "recursive", l->recursive, "hidden", l->hidden, "after", l->after, "max",
                      (json_int_t)l->max);
}

json_t *broker_delete_file(const struct broker_client *c, const char *conversation,
                           const char *name, bool recursive, struct err *e)
{
    return client_ask(c, e, OP_DELETE, "{s:s, s:s, s:b}", "conversationId", conversation, "name",
                      name, "recursive", recursive);
}

json_t *broker_move_file(const struct broker_client *c, const char *conversation, const char *from,
                         const char *to, bool replace, struct err *e)
{
    return client_ask(c, e, OP_MOVE, "{s:s, s:s, s:s, s:b}", "conversationId", conversation, "from",
                      from, "to", to, "replace", replace);
}

json_t *broker_delete_conversation(const struct broker_client *c, const char *conversation,
                                   struct err *e)
{
    return client_ask(c, e, OP_DELETE_CONVERSATION, "{s:s}", "conversationId", conversation);
}

int broker_exchange_conversation(const struct broker_client *c, const char *conversation,
                                 const char *staged, struct err *e)
{
    json_auto_t *done = client_ask(c, e, OP_EXCHANGE_CONVERSATION, "{s:s, s:s}", "conversationId",
                                   conversation, "staged", staged);

    return done ? 0 : -1;
}

/* ---- uploads ---- */

json_t *broker_create_upload(const struct broker_client *c, const char *conversation,
                             const char *filename, uint64_t size, struct err *e)
{
    return client_ask(c, e, OP_CREATE_UPLOAD, "{s:s, s:s, s:I}", "conversationId", conversation,
                      "name", filename, "size", (json_int_t)size);
}

json_t *broker_check_upload(const struct broker_client *c, const char *ticket, uint64_t size,
                            struct err *e)
{
    return client_ask(c, e, OP_CHECK_UPLOAD, "{s:s, s:I}", "ticket", ticket, "size",
                      size <= INT64_MAX ? (json_int_t)size : -1);
}

int broker_hold_upload(const struct broker_client *c, const char *ticket, uint64_t size, bool begun,
                       struct err *e)
{
    json_t *head = client_head_new(c, OP_CHECK_UPLOAD, "{s:s, s:I, s:b, s:b}", "ticket", ticket,
                                   "size", size <= INT64_MAX ? (json_int_t)size : -1, "hold", 1,
                                   "begun", begun);

    return ask_for_fd(c, head, NULL, e);
}

int broker_stage_upload(const struct broker_client *c, const char *ticket, struct err *e)
{
    return ask_for_fd(c, client_head_new(c, OP_STAGE_UPLOAD, "{s:s}", "ticket", ticket), NULL, e);
}

json_t *broker_finish_upload(const struct broker_client *c, const char *ticket,
                             const char *nginx_name, int fd, struct err *e)
{
    json_t *head = client_head_new(c, OP_FINISH_UPLOAD, "{s:s, s:s*}", "ticket", ticket, "file",
                                   nginx_name);

    return client_ask_with_fd(c, head, fd, NULL, e);
}

json_t *broker_import_url(const struct broker_client *c, const char *conversation, const char *url,
                          const char *filename, struct err *e)
{
    return client_ask(c, e, OP_IMPORT_URL, "{s:s, s:s, s:s*}", "conversationId", conversation,
                      "url", url, "name", filename);
}

/* ---- archives ---- */

json_t *broker_archive_link(const struct broker_client *c, const char *conversation,
                            const char *folder, const char *format, struct err *e)
{
    return client_ask(c, e, OP_ARCHIVE_LINK, "{s:s, s:s, s:s}", "conversationId", conversation,
                      "folder", folder, "format", format);
}

json_t *broker_unpack(const struct broker_client *c, const struct broker_unpack_want *want,
                      struct err *e)
{
    json_t *head = client_head_new(c, OP_UNPACK, "{s:s, s:s, s:b, s:s*}", "conversationId",
                                   want->conversation, "folder", want->folder, "replace",
                                   want->replace, "name", want->archive);

    return client_ask_with_fd(c, head, want->archive ? -1 : want->archive_fd, NULL, e);
}

struct pack_flow {
    const struct broker_client *client;
    int (*write)(void *ctx, const char *data, size_t len);
    void *ctx;
    int from; /* the pipe that the broker's job writes to */
};

/* Passes one piece on: 1, 0 at the archive's end, -1. */
static int pack_pass_piece(const struct pack_flow *f, struct err *e)
{
    char piece[PACK_PIECE];
    struct pollfd p[] = {{.fd = f->from, .events = POLLIN},
                         {.fd = f->client->cancel_fd, .events = POLLRDHUP}};

    if (poll(p, ARRAY_LEN(p), -1) < 0)
        return errno == EINTR ? 1 : err_errno(e, "waiting for the archive");
    ssize_t n = p[1].revents ? 0 : read(f->from, piece, sizeof piece);
    if (n < 0)
        return errno == EINTR ? 1 : err_errno(e, "reading the archive");
    if (p[1].revents || (n > 0 && f->write(f->ctx, piece, (size_t)n) < 0))
        return err_set(e, ERR_CANCELLED, "the client closed the connection");
    return n > 0;
}

/* Sends the request; returns the connection, with *out_from the pipe's reading end. */
static int pack_begin(const struct broker_client *c, const char *subject, int *out_from,
                      struct err *e)
{
    json_auto_t *head = op_head_new(OP_PACK, "{s:s}", "subject", subject);
    int pipe_fds[2];
    AUTO_FD int fd = client_connect(c, e);

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
    AUTO_FD int fd = pack_begin(c, subject, &from, e);
    const struct pack_flow flow = {.client = c, .write = write, .ctx = ctx, .from = from};
    int more = fd < 0 ? -1 : 1;

    while (more > 0)
        more = pack_pass_piece(&flow, e);
    if (more < 0)
        return -1;
    /* The pipe has ended; the job's answer tells whether the archive is whole. */
    json_auto_t *answer = wire_recv(fd, NULL, DEADLINE_NEVER, e);
    const json_t *error = json_object_get(answer, "error");
    if (!answer)
        return -1;
    return error ? wire_error_take(error, e) : 0;
}
