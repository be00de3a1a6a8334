/* The question of a worker or a CGI program to the process that judges tokens. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/sock.h"
#include "fcgi/hub/fcgi_record.h"
#include "fcgi/oauth/judge_serve.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_MAX  4096
#define REQUEST_ID  1
#define HEADER_NAME "HTTP_AUTHORIZATION"

/* The answer's records have heads between; the text is in the first of them. */
static int read_answer(int fd, struct deadline end, struct buf *out, struct err *e)
{

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        char *room = buf_reserve(out, 1024);
        if (!room)
            return err_set(e, ERR_PROTOCOL, "the answer about the token is too long");
        if (poll(&p, 1, deadline_poll_ms(end)) == 0)
            return err_set(e, ERR_TIMEOUT, "there was no answer about the token in time");
        ssize_t n = recv(fd, room, 1024, 0);
        if (n <= 0)
            return n == 0 ? 0 : err_errno(e, "no answer about the token");
        buf_grew(out, (size_t)n);
    }
}

/* A line of the head that begins so. */
static bool take_line(const struct buf *answer, const char *name, char *text, size_t size)
{
    const char *at = answer->len > FCGI_RECORD_HEAD
                         ? memmem(answer->data, answer->len, name, strlen(name))
                         : NULL;

    if (!at)
        return false;
    at += strlen(name);
    snprintf(text, size, "%.*s", (int)strcspn(at, "\r\n"), at);
    return true;
}

int judge_ask(int over, const char *path, int64_t limit_ms, const char *authorization,
              bool *out_good, char *text, size_t size, struct err *e)
{
    AUTO_BUF struct buf request = BUF_INIT(FCGI_PARAMS_MAX);
    AUTO_BUF struct buf answer = BUF_INIT(ANSWER_MAX);
    AUTO_FD int fd = over >= 0 ? sock_connect_over(over, e) : sock_connect_unix(path, e);

    if (fd < 0)
        return err_wrap(e, "the process that judges access tokens");
    fcgi_record_add_question(&request, REQUEST_ID, HEADER_NAME, authorization);
    if (!buf_ok(&request))
        return err_set(e, ERR_LIMIT, "the header Authorization is too long");
    ssize_t n = send(fd, request.data, request.len, MSG_NOSIGNAL);
    explicit_bzero(request.data, request.len);
    if (n < 0)
        return err_errno(e, "asking about the token");
    if (read_answer(fd, deadline_in_ms(limit_ms), &answer, e) < 0)
        return -1;
    *out_good = take_line(&answer, JUDGE_ROW, text, size);
    if (*out_good || take_line(&answer, JUDGE_FAULT, text, size))
        return 0;
    return err_set(e, ERR_PROTOCOL, "the answer about the token cannot be read");
}
