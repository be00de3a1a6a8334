#include "config.h"

#include "fcgi/stdio/stdio_calls.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUESTS_MAX 16 /* of the greatest length, with what they take as trees */

void stdio_calls_init(struct stdio_calls *c, size_t line_max)
{
    *c = (struct stdio_calls){.fd = -1, .size_max = REQUESTS_MAX * line_max};
    stdio_lines_init(&c->responses, line_max);
}

static void free_call(struct stdio_calls *c, struct stdio_call *call)
{
    auto_close_fd(&call->fd);
    json_decref(call->id);
    stdio_lines_clear(&call->lines);
    buf_clear(&call->responses);
    c->n--;
    c->size -= call->size;
    *call = (struct stdio_call){0};
}

void stdio_calls_clear(struct stdio_calls *c)
{
    for (size_t i = 0; i < STDIO_PLACES; i++)
        if (c->at[i].pid)
            free_call(c, &c->at[i]);
    stdio_lines_clear(&c->responses);
}

static struct stdio_call *find_call(struct stdio_calls *c, const json_t *id)
{
    for (size_t i = 0; i < STDIO_PLACES && id && !json_is_null(id); i++)
        if (c->at[i].pid && c->at[i].id && json_equal(c->at[i].id, id))
            return &c->at[i];
    return NULL;
}

/* ---- starting ---- */

static struct stdio_call *find_place(struct stdio_calls *c, const struct stdio_request *request,
                                     struct err *e)
{
    size_t most = request->frees ? STDIO_PLACES : STDIO_CALLS_MAX;
    bool fits = request->frees || c->n == 0 || c->size + request->size <= c->size_max;

    if (find_call(c, request->id)) {
        err_set(e, ERR_INVALID, "a request with this id is being served");
        return NULL;
    }
    for (size_t i = 0; i < STDIO_PLACES && c->n < most && fits; i++)
        if (!c->at[i].pid)
            return &c->at[i];
    err_set(e, ERR_BUSY, "too many calls at once (at most %d, and %zu MB); try again later",
            STDIO_CALLS_MAX, c->size_max >> 20);
    return NULL;
}

/* Only the first process may hold the client's pipes, and the ends of the other calls' sockets:
 * else these would not hang up when it ends. */
static void become_call(struct stdio_calls *c, int take_fd)
{
    AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    stdio_calls_clear(c);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        _exit(1);
    c->fd = take_fd;
}

int stdio_calls_start(struct stdio_calls *c, const struct stdio_request *request, struct err *e)
{
    struct stdio_call *call = find_place(c, request, e);
    int ends[2];

    if (!call)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(e, "cannot create a socket");
    AUTO_FD int ours = ends[0], its = ends[1];
    int pid = fork();
    if (pid < 0)
        return err_errno(e, "fork");
    c->last++;
    if (pid == 0) {
        become_call(c, TAKE_FD(its));
        return 0;
    }
    *call = (struct stdio_call){.pid = pid,
                                .fd = TAKE_FD(ours),
                                .number = c->last,
                                .id = json_incref(request->id),
                                .size = request->size,
                                .responses = BUF_INIT(c->size_max)};
    stdio_lines_init(&call->lines, STDIO_ANSWER_MAX);
    c->n++;
    c->size += call->size;
    return 1;
}

/* ---- to a call ---- */

bool stdio_calls_cancel(struct stdio_calls *c, const json_t *id)
{
    struct stdio_call *call = find_call(c, id);

    if (!call)
        return false;
    call->cancelled = true;
    json_decref(TAKE_PTR(call->id));
    shutdown(call->fd, SHUT_WR);
    buf_clear(&call->responses);
    return true;
}

/* Sends what it takes without waiting. One that has ended is noticed when it is read from. */
static void send_responses(struct stdio_call *call)
{
    ssize_t n = send(call->fd, call->responses.data, call->responses.len,
                     MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        n = (ssize_t)call->responses.len;
    if (n > 0)
        buf_drop_front(&call->responses, (size_t)n);
    if (call->responses.len == 0)
        buf_clear(&call->responses);
}

/* The call that has asked with this id. */
static struct stdio_call *find_asker(struct stdio_calls *c, const char *id)
{
    char prefix[32];

    for (size_t i = 0; i < STDIO_PLACES; i++) {
        snprintf(prefix, sizeof prefix, "sandcgi-%u-", c->at[i].number);
        if (c->at[i].pid && strncmp(id, prefix, strlen(prefix)) == 0)
            return &c->at[i];
    }
    return NULL;
}

bool stdio_calls_respond(struct stdio_calls *c, const json_t *response)
{
    const char *id = json_object_get(response, "method") ? NULL : json_get_string(response, "id");
    struct stdio_call *call = id ? find_asker(c, id) : NULL;
    AUTO_BUF struct buf line = BUF_INIT(c->size_max);

    if (!call || call->cancelled)
        return false;
    json_write(response, &line);
    buf_add_char(&line, '\n');
    if (buf_ok(&line) && line.len <= c->size_max - call->responses.len)
        buf_add(&call->responses, line.data, line.len);
    send_responses(call);
    return true;
}

/* An empty line tells it. */
void stdio_calls_end_input(struct stdio_calls *c)
{
    for (size_t i = 0; i < STDIO_PLACES; i++) {
        if (!c->at[i].pid || c->at[i].cancelled)
            continue;
        buf_add_char(&c->at[i].responses, '\n');
        send_responses(&c->at[i]);
    }
}

/* ---- from a call ---- */

void stdio_calls_poll(const struct stdio_calls *c, const struct buf *out, struct pollfd *p)
{
    for (size_t i = 0; i < STDIO_PLACES; i++) {
        const struct stdio_call *call = &c->at[i];
        bool watched = call->pid && (out->len < STDIO_OUT_MAX || call->cancelled);
        p[i] = (struct pollfd){.fd = watched ? call->fd : -1,
                               .events = call->responses.len > 0 ? POLLIN | POLLOUT : POLLIN};
    }
}

/* Its socket is closed, so it has ended or is about to. */
static void end_call(struct stdio_calls *c, struct stdio_call *call, struct buf *out)
{
    int status = 0;

    while (waitpid(call->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (status != 0)
        log_warn("the process %d of a call %s %d", call->pid,
                 WIFSIGNALED(status) ? "was ended by signal" : "ended with status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (status != 0 && call->id) {
        json_auto_t *lost = rpc_error_new(call->id, RPC_INTERNAL_ERROR,
                                          "the call's process ended without an answer", NULL);
        json_write(lost, out);
        buf_add_char(out, '\n');
    }
    free_call(c, call);
}

/* As soon as the client has the answer, it may use the id again. */
static void move_line(struct stdio_call *call, const char *line, size_t len, struct buf *out)
{
    if (len == 0)
        call->answers = true;
    else if (!call->cancelled)
        buf_add(out, line, len + 1);
    if (len > 0 && call->answers)
        json_decref(TAKE_PTR(call->id));
}

static void move_lines(struct stdio_calls *c, struct stdio_call *call, struct buf *out)
{
    ssize_t n = stdio_lines_read(&call->lines, call->fd);
    const char *line;
    size_t len;

    if (n < 0 && errno == EINTR)
        return;
    while (n > 0 && stdio_lines_next(&call->lines, &line, &len) > 0)
        move_line(call, line, len, out);
    if (n <= 0)
        end_call(c, call, out);
}

void stdio_calls_move(struct stdio_calls *c, const struct pollfd *p, struct buf *out)
{
    for (size_t i = 0; i < STDIO_PLACES; i++) {
        struct stdio_call *call = &c->at[i];
        if (p[i].revents & POLLOUT)
            send_responses(call);
        if ((p[i].revents & ~POLLOUT) && (out->len < STDIO_OUT_MAX || call->cancelled))
            move_lines(c, call, out);
    }
}

/* ---- in a call's process ---- */

int stdio_calls_begin_answer(struct stdio_calls *c, struct err *e)
{
    return fdio_write_all(c->fd, "\n", 1, e);
}

json_t *stdio_calls_next_response(struct stdio_calls *c, int timeout_ms)
{
    struct deadline end = deadline_in_ms(timeout_ms);
    struct pollfd p = {.fd = c->fd, .events = POLLIN | POLLRDHUP};
    const char *line;
    size_t len;

    for (;;) {
        struct err ignored = ERR_INIT;
        int whole = stdio_lines_next(&c->responses, &line, &len);
        if (whole > 0)
            return len > 0 ? json_parse(line, len, JSON_MAX_DEPTH, &ignored) : NULL;
        int ready = poll(&p, 1, deadline_poll_ms(end));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0 || (p.revents & ~POLLIN) || stdio_lines_read(&c->responses, c->fd) <= 0)
            return NULL;
    }
}
