#include "config.h"

#include "fcgi/http/http_request.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/base/share.h"
#include "common/protocol/client_files.h"
#include "common/protocol/room.h"
#include "common/rpc/json.h"
#include "common/sandbox/links/link.h"
#include "common/sandbox/state/quota.h"
#include "common/tools/files/content.h"
#include "common/tools/tools_app.h"
#include "fcgi/http/body_pace.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define CHUNK        65536
#define SIZE_UNKNOWN UINT64_MAX

static struct broker_client broker_of(const struct app *app)
{
    return (struct broker_client){.path = app->settings->broker, .cancel_fd = -1, .leave_fd = -1};
}

/* ---- uploads ---- */

static int upload_status(enum err_kind kind)
{
    static const int statuses[] = {
        [ERR_DENIED] = 403, [ERR_EXISTS] = 410,  [ERR_TIMEOUT] = 410, [ERR_CANCELLED] = 408,
        [ERR_LIMIT] = 413,  [ERR_INVALID] = 400, [ERR_BUSY] = 503,    [ERR_UNAVAILABLE] = 503,
        [ERR_AWAY] = 503,   [ERR_LOST] = 503};

    return (size_t)kind < ARRAY_LEN(statuses) && statuses[kind] ? statuses[kind] : 500;
}

/* The ticket's id of a valid link, to be freed; NULL: refused. A link may expire during its upload
 * (begun). */
static char *signed_ticket(const struct app *app, const struct http_request *r, bool begun,
                           struct err *e)
{
    AUTO_FREE char *ticket = link_subject(r->uri, LINK_UPLOAD);

    if (!ticket)
        err_set(e, ERR_DENIED, "this is not an upload link");
    if (!ticket ||
        (link_verify(&app->link_keys, LINK_UPLOAD, ticket, r->uri, clock_unix_s(), e) < 0 &&
         !(begun && e->kind == ERR_TIMEOUT)))
        return NULL;
    *e = ERR_INIT;
    return TAKE_PTR(ticket);
}

/* Likewise, if the ticket accepts a body of this size (SIZE_UNKNOWN: not known yet); out_tenant
 * gets its share_key. */
static char *upload_ticket(const struct app *app, const struct http_request *r, uint64_t size,
                           uint64_t *out_tenant, struct err *e)
{
    const struct broker_client client = broker_of(app);
    AUTO_FREE char *ticket = signed_ticket(app, r, false, e);
    json_auto_t *valid = ticket ? broker_check_upload(&client, ticket, size, e) : NULL;

    if (!valid)
        return NULL;
    *out_tenant = share_key(json_get_string(valid, "tenant"));
    return TAKE_PTR(ticket);
}

/* A body that a worker writes to a file. */
struct body {
    const struct app *app;
    const char *ticket;
    uint64_t size;       /* SIZE_UNKNOWN: it comes in chunks */
    uint64_t done, kept; /* of it; kept: as far as its room was asked for */
    int room_fd;         /* protocol/room.h */
    int to_fd;
};

static int body_hold(struct body *b, bool begun, struct err *e)
{
    const struct broker_client client = broker_of(b->app);

    auto_close_fd(&b->room_fd);
    b->room_fd = broker_hold_upload(&client, b->ticket, b->size, begun, e);
    if (b->size != SIZE_UNKNOWN)
        b->kept = b->done + QUOTA_LOOK_BYTES;
    return b->room_fd < 0 ? -1 : 0;
}

/* Has the broker ended that gave the room? */
static bool room_is_lost(const struct body *b)
{
    struct pollfd p = {.fd = b->room_fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) > 0;
}

/* Before the next n bytes are written. The room is asked for again every now and then, since
 * programs write as well, and of another broker after the end of the one before. */
static int body_keep(struct body *b, uint64_t n, struct err *e)
{
    const bool known = b->size != SIZE_UNKNOWN;
    const uint64_t step = known ? QUOTA_LOOK_BYTES : QUOTA_STEP_BYTES;

    if (b->done + n <= b->kept && !room_is_lost(b))
        return 0;
    b->kept = ((b->done + n) / step + 1) * step;
    const uint64_t bytes = known ? b->size : b->kept;
    if (room_keep(b->room_fd, bytes, b->done, e) == 0)
        return 0;
    if (e->kind != ERR_CANCELLED)
        return -1;
    *e = ERR_INIT;
    return body_hold(b, true, e) < 0 ? -1 : room_keep(b->room_fd, bytes, b->done, e);
}

static int body_copy(struct body *b, const struct http_source *source, struct err *e)
{
    struct body_pace pace = {0};
    char chunk[CHUNK];

    for (long n = 1; n > 0 && b->done < b->size; b->done += (uint64_t)n) {
        uint64_t rest = b->size - b->done;
        n = body_read(&pace, source, chunk, rest < sizeof chunk ? (size_t)rest : sizeof chunk, e);
        if (n < 0 || (n > 0 && body_keep(b, (uint64_t)n, e) < 0))
            return -1;
        if (fdio_write_all(b->to_fd, chunk, (size_t)n, e) < 0)
            return err_wrap(e, "the upload cannot be stored");
    }
    if (b->size == SIZE_UNKNOWN || b->done == b->size)
        return 0;
    return err_set(e, ERR_INVALID, "the body ended %" PRIu64 " bytes early", b->size - b->done);
}

/* Only our nginx tells the end of a body without a length. */
static int read_length(const struct app *app, const struct http_request *r, uint64_t *out,
                       struct err *e)
{
    *out = SIZE_UNKNOWN;
    if (!r->content_length && app->settings->auth == SETTINGS_AUTH_NGINX)
        return 0;
    if (r->content_length && parse_u64(r->content_length, 0, INT64_MAX, out) == 0)
        return 0;
    return err_set(e, ERR_INVALID, "Content-Length is missing");
}

static json_t *receive_streamed(const struct app *app, const struct http_request *r, struct err *e)
{
    const struct broker_client client = broker_of(app);
    AUTO_FREE char *ticket = signed_ticket(app, r, false, e);
    struct body b = {.app = app, .ticket = ticket, .room_fd = -1, .to_fd = -1};
    json_t *file = NULL;

    if (ticket && read_length(app, r, &b.size, e) == 0 && body_hold(&b, false, e) == 0 &&
        (b.to_fd = broker_stage_upload(&client, ticket, e)) >= 0 &&
        body_copy(&b, r->source, e) == 0)
        file = broker_finish_upload(&client, ticket, NULL, b.to_fd, e);
    if (file)
        room_land(b.room_fd, b.done);
    auto_close_fd(&b.to_fd);
    auto_close_fd(&b.room_fd);
    return file;
}

/* nginx has written the body to a file. */
static json_t *receive_file(const struct app *app, const struct http_request *r, struct err *e)
{
    const struct broker_client client = broker_of(app);
    const char *slash = strrchr(r->body_file, '/');
    AUTO_FREE char *ticket = signed_ticket(app, r, true, e);

    if (!ticket)
        return NULL;
    return broker_finish_upload(&client, ticket, slash ? slash + 1 : r->body_file, -1, e);
}

static void upload_answer(const struct app *app, const json_t *file, struct http_answer *a)
{
    const struct changes changes = {app_server(app, NULL, SCOPE_ALL),
                                    json_get_string(file, "tenant"),
                                    json_get_string(file, "conversationId")};

    changes_publish_file(&changes, json_get_string(file, "name"));
    a->status = 201;
    a->body = json_pack("{s:O, s:O, s:O, s:O*, s:O*}", "name", json_object_get(file, "name"),
                        "size", json_object_get(file, "size"), "url", json_object_get(file, "url"),
                        "filesExpireAt", json_object_get(file, "filesExpireAt"), "notices",
                        json_object_get(file, "notices"));
}

void http_upload_serve(const struct app *app, struct http_request *r, struct http_answer *a)
{
    struct err e = ERR_INIT;

    a->what = "upload";
    if (!http_request_is(r, "PUT")) {
        http_refuse(a, 405, "Allow: PUT\r\n", "Use PUT");
        return;
    }
    if (http_guard_front(app, r, a) < 0 || http_guard_room(app, r, a) < 0)
        return;
    bool in_file = app->settings->auth == SETTINGS_AUTH_NGINX && r->body_file;
    json_auto_t *file = in_file ? receive_file(app, r, &e) : receive_streamed(app, r, &e);
    if (file) {
        upload_answer(app, file, a);
        return;
    }
    a->status = upload_status(e.kind);
    if (a->status >= 500)
        report_soften(&e);
    a->detail = err_kind_name(e.kind);
    log_reason(a->detail, NULL);
    a->body = json_pack("{s:s}", "error", e.text);
}

/* ---- checks for nginx ---- */

static int check_link(const struct app *app, const struct http_request *r, uint64_t *out_tenant,
                      struct err *e)
{
    uint64_t size = SIZE_UNKNOWN;

    if (strcmp(r->check, "upload") != 0)
        return err_set(e, ERR_INVALID, "no such check");
    if (r->content_length && parse_u64(r->content_length, 0, INT64_MAX, &size) < 0)
        return err_set(e, ERR_INVALID, "Content-Length is not a number");
    AUTO_FREE char *ticket = r->uri ? upload_ticket(app, r, size, out_tenant, e) : NULL;
    return ticket ? 0 : -1;
}

void http_check_serve(const struct app *app, struct http_request *r, struct http_answer *a)
{
    static char headers[48];
    struct err e = ERR_INIT;
    uint64_t tenant = 0;

    a->what = "check";
    if (app->settings->auth != SETTINGS_AUTH_NGINX) {
        http_refuse(a, 404, "", "Links are checked with SANDCGI_AUTH=nginx only");
        return;
    }
    if (http_guard_front(app, r, a) < 0)
        return;
    a->headers = headers;
    if (check_link(app, r, &tenant, &e) == 0) {
        snprintf(headers, sizeof headers, "Sandcgi-Uploader: %" PRIx64 "\r\n", tenant);
        a->status = 204;
        a->quiet = true;
        return;
    }
    snprintf(headers, sizeof headers, "Sandcgi-Verdict: %d\r\n", upload_status(e.kind));
    a->status = 403;
    a->detail = err_kind_name(e.kind);
    log_reason(a->detail, NULL);
}

/* ---- archives ---- */

struct download {
    const struct http_source *source;
    const char *subject;
    bool started;
};

/* The last part of the subject, in both forms that browsers know. */
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

static int archive_send_head(const struct download *d)
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

static int archive_send_piece(void *ctx, const char *data, size_t len)
{
    struct download *d = ctx;

    if (!d->started && archive_send_head(d) < 0)
        return -1;
    d->started = true;
    return d->source->write(d->source->ctx, data, len);
}

/* Reasons that concern the link are told, errors of the server are not. */
static void archive_refuse(const struct http_source *source, const struct err *e,
                           struct http_answer *a)
{
    AUTO_BUF struct buf out = BUF_INIT(HTTP_HEAD_MAX);
    const bool denied = e->kind == ERR_DENIED || e->kind == ERR_TIMEOUT;

    a->status = denied ? 403 : e->kind == ERR_NOT_FOUND ? 404 : e->kind == ERR_LIMIT ? 413 : 503;
    buf_addf(&out,
             "Status: %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
             "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n\r\n%s\n",
             a->status, http_reason(a->status),
             a->status == 503 ? "the archive cannot be made now; try again" : e->text);
    (void)source->write(source->ctx, out.data, out.len);
}

static int archive_send(const struct app *app, struct http_request *r, struct download *d,
                        struct err *e)
{
    const struct broker_client broker = {
        .path = app->settings->broker, .cancel_fd = r->source->cancel_fd, .leave_fd = -1};
    AUTO_FREE char *subject = link_subject(r->uri, LINK_ARCHIVE);
    bool head = http_request_is(r, "HEAD");

    if (!subject)
        return err_set(e, ERR_DENIED, "this is not a link of this server");
    if (link_verify(&app->link_keys, LINK_ARCHIVE, subject, r->uri, clock_unix_s(), e) < 0)
        return -1;
    d->subject = subject;
    if (!head)
        return broker_pack(&broker, subject, archive_send_piece, d, e);
    d->started = true;
    return archive_send_head(d);
}

void http_archive_serve(const struct app *app, struct http_request *r, struct http_answer *a)
{
    struct download d = {.source = r->source};
    struct err e = ERR_INIT;

    a->what = "archive";
    if (http_guard_front(app, r, a) < 0 || http_guard_room(app, r, a) < 0)
        return;
    if (!http_request_is(r, "GET") && !http_request_is(r, "HEAD")) {
        http_refuse(a, 405, "Allow: GET, HEAD\r\n", "Use GET");
        return;
    }
    a->sent = true;
    a->status = 200;
    if (archive_send(app, r, &d, &e) == 0)
        return;
    log_debug("archive not sent: %s", e.text);
    if (d.started)
        shutdown(r->source->cancel_fd, SHUT_RDWR);
    else
        archive_refuse(r->source, &e, a);
}
