/* The question of a worker or a CGI program to the process that judges tokens. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/sock.h"
#include "fcgi/hub/fcgi_record.h"
#include "fcgi/oauth/judge_serve.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_MAX  4096
#define READ_CHUNK  1024
#define REQUEST_ID  1
#define HEADER_NAME "HTTP_AUTHORIZATION"

/* ---- a question that is under way ---- */

static int connect_judge(int over, const char *path, struct err *e)
{
    int fd = over >= 0 ? sock_connect_over_now(over, e) : sock_connect_unix(path, e);

    return fd < 0 ? err_wrap(e, "the process that judges access tokens") : fd;
}

static int send_question(int fd, const char *authorization, struct err *e)
{
    AUTO_BUF struct buf request = BUF_INIT(FCGI_PARAMS_MAX);

    fcgi_record_add_question(&request, REQUEST_ID, HEADER_NAME, authorization);
    if (!buf_ok(&request))
        return err_set(e, ERR_LIMIT, "the header Authorization is too long");
    ssize_t n = send(fd, request.data, request.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    explicit_bzero(request.data, request.len);
    return n < 0 ? err_errno(e, "asking about the token") : 0;
}

void judge_question_begin(struct judge_question *q, int over, const char *path,
                          const char *authorization)
{
    struct err *why = &q->verdict.why;

    *q = (struct judge_question){.fd = -1, .answer = BUF_INIT(ANSWER_MAX)};
    AUTO_FD int fd = connect_judge(over, path, why);
    if (fd >= 0 && send_question(fd, authorization, why) == 0)
        q->fd = TAKE_FD(fd);
}

/* A line of the head that begins so. The answer's records have heads between; the text is in the
 * first of them. */
static bool take_line(const struct buf *answer, const char *name, char text[JUDGE_TEXT_MAX])
{
    const char *at = answer->len > FCGI_RECORD_HEAD
                         ? memmem(answer->data, answer->len, name, strlen(name))
                         : NULL;

    if (!at)
        return false;
    at += strlen(name);
    snprintf(text, JUDGE_TEXT_MAX, "%.*s", (int)strcspn(at, "\r\n"), at);
    return true;
}

static void question_end(struct judge_question *q)
{
    struct judge_verdict *v = &q->verdict;

    auto_close_fd(&q->fd);
    v->good = take_line(&q->answer, JUDGE_ROW, v->text);
    if (!v->good && !take_line(&q->answer, JUDGE_FAULT, v->text))
        err_set(&v->why, ERR_PROTOCOL, "the answer about the token cannot be read");
}

bool judge_question_go_on(struct judge_question *q)
{
    while (q->fd >= 0) {
        char *room = buf_reserve(&q->answer, READ_CHUNK);
        ssize_t n = room ? recv(q->fd, room, READ_CHUNK, MSG_DONTWAIT) : 0;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return false;
        if (n > 0)
            buf_grew(&q->answer, (size_t)n);
        else
            question_end(q);
    }
    return true;
}

void judge_question_give_up(struct judge_question *q)
{
    auto_close_fd(&q->fd);
    err_set(&q->verdict.why, ERR_TIMEOUT, "there was no answer about the token in time");
}

void judge_question_clear(struct judge_question *q)
{
    auto_close_fd(&q->fd);
    buf_clear(&q->answer);
}

/* ---- of a process that may wait ---- */

static void await(struct judge_question *q, struct deadline end)
{
    while (!judge_question_go_on(q)) {
        struct pollfd p = {.fd = q->fd, .events = POLLIN};

        if (poll(&p, 1, deadline_poll_ms(end)) == 0)
            judge_question_give_up(q);
    }
}

void judge_ask(int over, const char *path, int64_t limit_ms, const char *authorization,
               struct judge_verdict *out)
{
    struct judge_question q;

    judge_question_begin(&q, over, path, authorization);
    await(&q, deadline_in_ms(limit_ms));
    *out = q.verdict;
    judge_question_clear(&q);
}
