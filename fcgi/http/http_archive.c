#include "config.h"

#include "fcgi/http/http_archive.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/protocol/client_files.h"
#include "common/sandbox/links/link.h"
#include "fcgi/http/http_guard.h"

#include <string.h>
#include <sys/socket.h>

#define FOLDER "/archives/"

bool http_archive_is(const struct http_request *r)
{
    size_t len = r->uri ? strcspn(r->uri, "?") : 0;

    return len >= sizeof FOLDER - 1 && memmem(r->uri, len, FOLDER, sizeof FOLDER - 1);
}

/* ---- answers ---- */

struct download {
    const struct http_source *source;
    const char *subject;
    bool started;
};

/* The last part of the subject, in both ways that browsers know. */
static void add_disposition(const char *subject, struct buf *out)
{
    const char *name = strrchr(subject, '/');

    name = name ? name + 1 : subject;
    buf_add_str(out, "Content-Disposition: attachment; filename=\"");
    for (const char *c = name; *c; c++)
        buf_add_char(out, *c < 0x20 || *c > 0x7e || strchr("\"\\%", *c) ? '_' : *c);
    buf_add_str(out, "\"; filename*=UTF-8''");
    link_encode(name, out);
    buf_add_str(out, "\r\n");
}

static int send_head(const struct download *d)
{
    AUTO_BUF struct buf out = BUF_INIT(HTTP_HEAD_MAX);
    const char *dot = strrchr(d->subject, '.');
    const char *type = "gzip";

    if (dot && strcmp(dot, ".zip") == 0)
        type = "zip";
    else if (dot && strcmp(dot, ".tar") == 0)
        type = "x-tar";
    buf_addf(&out, "Status: 200 OK\r\nContent-Type: application/%s\r\n", type);
    add_disposition(d->subject, &out);
    buf_add_str(&out, "X-Content-Type-Options: nosniff\r\n"
                      "Referrer-Policy: no-referrer\r\n"
                      "Cache-Control: private, no-store\r\n\r\n");
    return d->source->write(d->source->ctx, out.data, out.len);
}

static int send_piece(void *ctx, const char *data, size_t len)
{
    struct download *d = ctx;

    if (!d->started && send_head(d) < 0)
        return -1;
    d->started = true;
    return d->source->write(d->source->ctx, data, len);
}

static const struct {
    enum err_kind kind;
    int status;
    const char *line;
} failures[] = {
    {ERR_DENIED, 403, "403 Forbidden"},         {ERR_TIMEOUT, 403, "403 Forbidden"},
    {ERR_NOT_FOUND, 404, "404 Not Found"},      {ERR_LIMIT, 413, "413 Content Too Large"},
    {ERR_NONE, 503, "503 Service Unavailable"}, /* whatever else; the last row */
};

/* Reasons of ours are told, troubles of the server's are not. */
static void send_failure(const struct http_source *source, const struct err *e,
                         struct http_answer *a)
{
    AUTO_BUF struct buf out = BUF_INIT(HTTP_HEAD_MAX);
    size_t i = 0;

    while (failures[i].kind != ERR_NONE && failures[i].kind != e->kind)
        i++;
    a->status = failures[i].status;
    buf_addf(&out,
             "Status: %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
             "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n\r\n%s\n",
             failures[i].line,
             failures[i].kind == ERR_NONE ? "the archive cannot be made now; try again" : e->text);
    (void)source->write(source->ctx, out.data, out.len);
}

/* ---- the request ---- */

static int serve(const struct app *app, struct http_request *r, struct download *d, struct err *e)
{
    const struct broker_client broker = {
        .path = app->settings->broker, .cancel_fd = r->source->cancel_fd, .leave_fd = -1};
    AUTO_FREE char *subject = link_subject(r->uri, LINK_ARCHIVE);
    bool head = http_request_is(r, "HEAD");

    if (!subject)
        return err_set(e, ERR_DENIED, "this is not a link of ours");
    if (link_verify(&app->link_key, LINK_ARCHIVE, subject, r->uri, clock_unix_s(), e) < 0)
        return -1;
    d->subject = subject;
    if (!head)
        return broker_pack(&broker, subject, send_piece, d, e);
    d->started = true;
    return send_head(d);
}

void http_archive_serve(const struct app *app, struct http_request *r, struct http_answer *a)
{
    struct download d = {.source = r->source};
    struct err e = ERR_INIT;

    a->what = "archive";
    if (app->settings->auth == SETTINGS_AUTH_NGINX && http_guard_front(app, r, a) < 0)
        return;
    if (!http_request_is(r, "GET") && !http_request_is(r, "HEAD")) {
        http_refuse(a, 405, "Allow: GET, HEAD\r\n", "Use GET");
        return;
    }
    a->sent = true;
    a->status = 200;
    if (serve(app, r, &d, &e) == 0)
        return;
    log_debug("an archive was not sent: %s", e.text);
    if (d.started)
        shutdown(r->source->cancel_fd, SHUT_RDWR);
    else
        send_failure(r->source, &e, a);
}
