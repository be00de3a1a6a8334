#include "config.h"

#include "common/engine/docker_stream.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

#include <curl/curl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define REFUSAL_MAX 4096 /* of an error reply's body */

struct docker_stream {
    CURL *curl;
    int fd;
    struct docker_attend *attend; /* borrowed, while opening only */
    struct buf early;             /* received with the head */
};

void docker_stream_free(struct docker_stream *s)
{
    if (!s)
        return;
    if (s->curl)
        curl_easy_cleanup(s->curl);
    buf_clear(&s->early);
    free(s);
}

int docker_stream_fd(const struct docker_stream *s)
{
    return s->fd;
}

ssize_t docker_stream_send(struct docker_stream *s, const char *data, size_t len)
{
    size_t sent = 0;
    CURLcode code = curl_easy_send(s->curl, data, len, &sent);

    if (code == CURLE_AGAIN)
        return 0;
    return code == CURLE_OK ? (ssize_t)sent : -1;
}

enum stream_got docker_stream_recv(struct docker_stream *s, char *data, size_t cap, size_t *out_len)
{
    CURLcode code;

    *out_len = 0;
    if (s->early.len > 0) {
        *out_len = s->early.len < cap ? s->early.len : cap;
        memcpy(data, s->early.data, *out_len);
        buf_drop_front(&s->early, *out_len);
        return STREAM_DATA;
    }
    code = curl_easy_recv(s->curl, data, cap, out_len);
    if (code == CURLE_AGAIN)
        return STREAM_NOTHING_NOW;
    return code == CURLE_OK && *out_len > 0 ? STREAM_DATA : STREAM_END;
}

void docker_stream_finish_input(struct docker_stream *s)
{
    struct curl_tlssessioninfo *tls = NULL;

    /* Over TLS the end of one direction is a close_notify; shutting the socket down would look like
     * a truncation. */
    if (curl_easy_getinfo(s->curl, CURLINFO_TLS_SSL_PTR, &tls) == CURLE_OK && tls &&
        tls->backend == CURLSSLBACKEND_OPENSSL && tls->internals)
        SSL_shutdown(tls->internals);
    else
        shutdown(s->fd, SHUT_WR);
}

/* ---- opening ---- */

static int malformed(struct err *e)
{
    return err_set(e, ERR_PROTOCOL, "the container engine's reply is not HTTP");
}

/* "HTTP/1.1 101 …" */
static int parse_status(const char *line, size_t len, int *out)
{
    char digits[4] = {0};
    uint64_t status;

    if (len < 12 || strncmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ' ||
        (len > 12 && line[12] != ' '))
        return -1;
    memcpy(digits, line + 9, 3);
    if (parse_u64(digits, 100, 599, &status) < 0)
        return -1;
    *out = (int)status;
    return 0;
}

/* A length that cannot be parsed is ignored: it only bounds how much of an error is read. */
static void parse_header(const char *line, size_t len, struct docker_head *out)
{
    static const char name[] = "Content-Length:";
    char digits[12] = {0};
    size_t from = sizeof name - 1;
    uint64_t value;

    if (len <= from || strncasecmp(line, name, from) != 0)
        return;
    while (from < len && line[from] == ' ')
        from++;
    if (len - from >= sizeof digits)
        return;
    memcpy(digits, line + from, len - from);
    if (parse_u64(digits, 0, DOCKER_HEAD_MAX, &value) == 0)
        out->content_length = (size_t)value;
}

int docker_head_parse(const char *data, size_t len, struct docker_head *out, struct err *e)
{
    size_t at = 0;

    *out = (struct docker_head){0};
    while (at < len) {
        const char *line = data + at;
        const char *nl = memchr(line, '\n', len - at);
        size_t n;

        if (!nl)
            break;
        n = (size_t)(nl - line);
        at += n + 1;
        if (at > DOCKER_HEAD_MAX)
            return malformed(e);
        if (n > 0 && line[n - 1] == '\r')
            n--;
        if (out->status == 0) {
            if (parse_status(line, n, &out->status) < 0)
                return malformed(e);
        } else if (n == 0) {
            out->len = at;
            return 1;
        } else {
            parse_header(line, n, out);
        }
    }
    return len >= DOCKER_HEAD_MAX ? malformed(e) : 0;
}

static int wait_for(const struct docker_stream *s, short events, struct deadline d, struct err *e)
{
    struct pollfd p = {.fd = s->fd, .events = events};

    for (;;) {
        if (docker_attend_poll(s->attend, &p, deadline_poll_ms(d)) < 0)
            return err_errno(e, "poll");
        if (s->attend->cancelled)
            return err_set(e, ERR_CANCELLED, "the caller went away");
        if (p.revents)
            return 0;
        if (deadline_passed(d))
            return err_set(e, ERR_UNAVAILABLE, "the container engine does not answer");
    }
}

static int send_all(struct docker_stream *s, const char *data, size_t len, struct deadline d,
                    struct err *e)
{
    while (len > 0) {
        ssize_t n = docker_stream_send(s, data, len);

        if (n < 0)
            return err_set(e, ERR_UNAVAILABLE, "the container engine closed the connection");
        if (n == 0 && wait_for(s, POLLOUT, d, e) < 0)
            return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Reads more behind what early holds. 0: something came; 1: the end; -1: the deadline. */
static int read_more(struct docker_stream *s, struct deadline d, struct err *e)
{
    for (;;) {
        char part[2048];
        size_t n = 0;
        CURLcode code = curl_easy_recv(s->curl, part, sizeof part, &n);

        if (code == CURLE_AGAIN) {
            if (wait_for(s, POLLIN, d, e) < 0)
                return -1;
            continue;
        }
        if (code != CURLE_OK || n == 0)
            return 1;
        buf_add(&s->early, part, n);
        return buf_ok(&s->early) ? 0 : err_set(e, ERR_PROTOCOL, "the engine's reply is too large");
    }
}

/* The engine refused: reads its reason, as far as it comes soon. */
static int stream_refused(struct docker_stream *s, const struct docker_head *head, struct err *e)
{
    struct deadline soon = deadline_in_ms(1000);
    struct err ignored = ERR_INIT;
    const char *body;
    size_t len;

    while (s->early.len < head->len + head->content_length && read_more(s, soon, &ignored) == 0)
        ;
    body = s->early.data + head->len;
    len = s->early.len - head->len;
    if (head->content_length > 0 && len > head->content_length)
        len = head->content_length;
    return docker_http_check(head->status, body, len, e);
}

static int read_head(struct docker_stream *s, struct deadline d, struct err *e)
{
    struct docker_head head;

    for (;;) {
        int r = docker_head_parse(buf_str(&s->early), s->early.len, &head, e);

        if (r < 0)
            return -1;
        if (r > 0)
            break;
        r = read_more(s, d, e);
        if (r < 0)
            return -1;
        if (r > 0)
            return err_set(e, ERR_UNAVAILABLE, "the container engine closed the connection");
    }
    if (head.status >= 400)
        return stream_refused(s, &head, e);
    if (head.status != 101 && head.status != 200)
        return err_set(e, ERR_PROTOCOL, "the container engine answered %d", head.status);
    buf_drop_front(&s->early, head.len);
    return 0;
}

static int open_with(struct docker_stream *s, struct docker_http *h, const char *request,
                     struct deadline d, struct err *e)
{
    curl_socket_t fd = CURL_SOCKET_BAD;

    s->curl = docker_http_raw(h, e);
    if (!s->curl)
        return -1;
    if (curl_easy_getinfo(s->curl, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd < 0)
        return err_set(e, ERR_UNAVAILABLE, "the container engine closed the connection");
    s->fd = fd;
    if (send_all(s, request, strlen(request), d, e) < 0)
        return -1;
    return read_head(s, d, e);
}

struct docker_stream *docker_stream_open(struct docker_http *h, const char *method,
                                         const char *path, bool upgrade, struct deadline d,
                                         struct err *e)
{
    struct docker_stream *s;
    AUTO_FREE char *request = NULL;

    if (docker_http_ready(h, e) < 0)
        return NULL;
    request = mem_printf("%s %s%s HTTP/1.1\r\nHost: docker\r\nUser-Agent: sandcgi\r\n%s\r\n",
                         method, docker_http_facts(h)->version, path,
                         upgrade ? "Connection: Upgrade\r\nUpgrade: tcp\r\n"
                                   "Content-Type: text/plain\r\nContent-Length: 0\r\n"
                                 : "");
    s = mem_alloc(sizeof *s);
    s->fd = -1;
    s->attend = docker_http_attend(h);
    s->early.max = DOCKER_HEAD_MAX + REFUSAL_MAX;
    if (open_with(s, h, request, d, e) < 0) {
        docker_stream_free(s);
        return NULL;
    }
    return s;
}
