#include "config.h"

#include "fcgi/http/http_request.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/protocol/client_files.h"
#include "common/sandbox/links/link.h"
#include "fcgi/http/file_types.h"
#include "fcgi/http/http_conditions.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK 65536

/* With every answer; nginx/server.conf.in has the same. */
#define HEADERS                                                                                    \
    "X-Content-Type-Options: nosniff\r\n"                                                          \
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors "     \
    "'none'; sandbox\r\n"                                                                          \
    "Referrer-Policy: no-referrer\r\n"                                                             \
    "Cache-Control: private, no-cache\r\n"
#define REFUSAL_HEADERS                                                                            \
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"                          \
    "Cache-Control: no-store\r\n"

/* Sends an answer without a file. */
static void send_refusal(const struct http_request *r, struct http_answer *a, int status,
                         const char *headers, const char *text)
{
    AUTO_BUF struct buf out = BUF_INIT(HTTP_HEAD_MAX);

    a->status = status;
    buf_addf(&out, "Status: %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n%s\r\n%s",
             status, http_reason(status), strlen(text), headers,
             http_request_is(r, "HEAD") ? "" : text);
    (void)r->source->write(r->source->ctx, out.data, out.len);
}

static void refuse_link(const struct http_request *r, struct http_answer *a, const struct err *e)
{
    if (e->kind == ERR_NOT_FOUND)
        send_refusal(r, a, 404, REFUSAL_HEADERS, "not found\n");
    else if (e->kind == ERR_DENIED)
        send_refusal(r, a, 403, REFUSAL_HEADERS, "this link was altered or has expired\n");
    else
        send_refusal(r, a, 503, REFUSAL_HEADERS "Retry-After: 1\r\n",
                     "the file cannot be read now; try again\n");
}

/* A file, and what of it the client gets. */
struct piece {
    int fd;
    struct http_version version;
    struct file_type type;
    uint64_t from, to;
};

static void refuse_piece(const struct http_request *r, struct http_answer *a, const struct piece *p,
                         int status)
{
    AUTO_BUF struct buf headers = BUF_INIT(HTTP_HEAD_MAX);

    buf_add_str(&headers, HEADERS);
    if (status == 416)
        buf_addf(&headers, "Content-Range: bytes */%" PRIu64 "\r\n", p->version.size);
    send_refusal(r, a, status, buf_str(&headers),
                 status == 416 ? "the file has no such range\n" : "the file has changed\n");
}

static int send_head(const struct http_request *r, const struct piece *p, int status)
{
    AUTO_BUF struct buf out = BUF_INIT(HTTP_HEAD_MAX);

    buf_addf(&out, "Status: %d %s\r\nLast-Modified: %s\r\nETag: %s\r\n", status,
             http_reason(status), p->version.last_modified, p->version.etag);
    buf_addf(&out, HEADERS "Content-Disposition: %s\r\n",
             p->type.is_shown ? "inline" : "attachment");
    if (status != 304)
        buf_addf(&out, "Content-Type: %s\r\nContent-Length: %" PRIu64 "\r\n", p->type.type,
                 p->to - p->from);
    if (status == 200)
        buf_add_str(&out, "Accept-Ranges: bytes\r\n");
    if (status == 206)
        buf_addf(&out, "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", p->from,
                 p->to - 1, p->version.size);
    buf_add_str(&out, "\r\n");
    return r->source->write(r->source->ctx, out.data, out.len);
}

/* The file is another process's, too: it may be shorter by now. */
static int send_body(const struct http_request *r, const struct piece *p, struct err *e)
{
    char chunk[CHUNK];

    for (uint64_t at = p->from; at < p->to;) {
        size_t want = p->to - at < sizeof chunk ? (size_t)(p->to - at) : sizeof chunk;
        ssize_t n = pread(p->fd, chunk, want, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "reading the file");
        if (n == 0)
            return err_set(e, ERR_IO, "the file was cut while it was sent");
        if (r->source->write(r->source->ctx, chunk, (size_t)n) < 0)
            return err_set(e, ERR_CANCELLED, "the client closed the connection");
        at += (uint64_t)n;
    }
    return 0;
}

/* By the last part of a file's URL. */
static struct file_type type_of_uri(const char *uri)
{
    size_t len = strcspn(uri, "?");
    const char *slash = memrchr(uri, '/', len);
    size_t at = slash ? (size_t)(slash + 1 - uri) : 0;
    AUTO_FREE char *name = link_decode(uri + at, len - at);

    return file_type_of(name ? name : "");
}

static void send_piece(const struct http_request *r, struct http_answer *a, struct piece *p)
{
    struct err e = ERR_INIT;
    int status = http_judge_conditions(r, &p->version, &p->from, &p->to);

    if (status == 412 || status == 416) {
        refuse_piece(r, a, p, status);
        return;
    }
    a->status = status;
    if (send_head(r, p, status) < 0 || status == 304 || http_request_is(r, "HEAD") ||
        send_body(r, p, &e) == 0)
        return;
    log_debug("file not sent: %s", e.text);
    shutdown(r->source->cancel_fd, SHUT_RDWR);
}

void http_file_serve(const struct app *app, struct http_request *r, struct http_answer *a)
{
    const struct broker_client broker = {
        .path = app->settings->broker, .cancel_fd = r->source->cancel_fd, .leave_fd = -1};
    struct err e = ERR_INIT;
    struct stat st;

    a->what = "file";
    if (http_guard_front(app, r, a) < 0 || http_guard_room(app, r, a) < 0)
        return;
    a->sent = true;
    if (!http_request_is(r, "GET") && !http_request_is(r, "HEAD"))
        err_set(&e, ERR_NOT_FOUND, "files are only read");
    AUTO_FD int fd = e.kind ? -1 : broker_open_url(&broker, r->uri, &st, &e);
    if (fd < 0) {
        refuse_link(r, a, &e);
        return;
    }
    struct piece piece = {.fd = fd, .type = type_of_uri(r->uri)};
    http_version_init(&piece.version, (uint64_t)st.st_size, st.st_mtime);
    send_piece(r, a, &piece);
}
