#include "config.h"

#include "fcgi/http/upload.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/parse.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/quota.h"
#include "common/tools/files/changes.h"
#include "common/tools/report.h"
#include "fcgi/http/http_guard.h"

#include <inttypes.h>
#include <string.h>

#define CHUNK 65536

bool upload_is(const struct http_request *r)
{
    AUTO_FREE char *subject = r->uri ? link_subject(r->uri, LINK_UPLOAD) : NULL;
    return subject != NULL;
}

int upload_status(enum err_kind kind)
{
    switch (kind) {
    case ERR_DENIED:
        return 403;
    case ERR_EXISTS:
    case ERR_TIMEOUT:
        return 410;
    case ERR_LIMIT:
        return 413;
    case ERR_INVALID:
        return 400;
    case ERR_BUSY:
    case ERR_UNAVAILABLE:
    case ERR_LOST:
        return 503;
    default:
        return 500;
    }
}

static struct broker_client broker_of(const struct app *app)
{
    return (struct broker_client){.path = app->settings->broker, .cancel_fd = -1, .leave_fd = -1};
}

/* An upload that has begun in time may end later. */
enum when { BEGINS, HAS_BEGUN };

static char *signed_ticket(const struct app *app, const struct http_request *r, enum when when,
                           struct err *e)
{
    AUTO_FREE char *ticket = link_subject(r->uri, LINK_UPLOAD);
    struct err why = ERR_INIT;

    if (!ticket) {
        err_set(e, ERR_DENIED, "this is no upload link");
        return NULL;
    }
    if (link_verify(&app->link_key, LINK_UPLOAD, ticket, r->uri, clock_unix_s(), &why) < 0 &&
        (when == BEGINS || why.kind != ERR_TIMEOUT)) {
        *e = why;
        return NULL;
    }
    return TAKE_PTR(ticket);
}

char *upload_ticket(const struct app *app, const struct http_request *r, uint64_t size,
                    struct err *e)
{
    const struct broker_client client = broker_of(app);
    AUTO_FREE char *ticket = signed_ticket(app, r, BEGINS, e);

    if (!ticket || broker_check_upload(&client, ticket, size, e) < 0)
        return NULL;
    return TAKE_PTR(ticket);
}

/* There was room for it when it began; others write meanwhile, too. */
static int copy_body(const struct app *app, const struct http_request *r, int to_fd, uint64_t size,
                     struct err *e)
{
    const struct sandbox_root disk = {.fd = to_fd, .bounds.reserve = app->settings->disk_reserve};
    const struct http_source *source = r->source;
    char chunk[CHUNK];

    for (uint64_t done = 0; done < size;) {
        size_t want = size - done < sizeof chunk ? (size_t)(size - done) : sizeof chunk;
        long n = source->read(source->ctx, chunk, want);
        if (n <= 0)
            return err_set(e, ERR_INVALID, "the body ended %" PRIu64 " bytes early", size - done);
        if (quota_check_piece(&disk, done, (uint64_t)n, e) < 0)
            return -1;
        if (fdio_write_all(to_fd, chunk, (size_t)n, e) < 0)
            return err_wrap(e, "the upload cannot be stored");
        done += (uint64_t)n;
    }
    return 0;
}

/* The body is in no file yet. */
static json_t *take_streamed(const struct app *app, const struct http_request *r, struct err *e)
{
    const struct broker_client client = broker_of(app);
    uint64_t size;

    if (!r->content_length || parse_u64(r->content_length, 0, INT64_MAX, &size) < 0) {
        err_set(e, ERR_INVALID, "Content-Length is missing");
        return NULL;
    }
    AUTO_FREE char *ticket = upload_ticket(app, r, size, e);
    AUTO_FD int fd = ticket ? broker_stage_upload(&client, ticket, e) : -1;
    if (fd < 0 || copy_body(app, r, fd, size, e) < 0)
        return NULL;
    return broker_finish_upload(&client, ticket, NULL, fd, e);
}

/* nginx has written it to a file. */
static json_t *take_file(const struct app *app, const struct http_request *r, struct err *e)
{
    const struct broker_client client = broker_of(app);
    const char *slash = strrchr(r->body_file, '/');
    AUTO_FREE char *ticket = signed_ticket(app, r, HAS_BEGUN, e);

    if (!ticket)
        return NULL;
    return broker_finish_upload(&client, ticket, slash ? slash + 1 : r->body_file, -1, e);
}

static void answer(const struct app *app, const json_t *file, struct http_answer *a)
{
    const struct changes changes = {app_server(app, NULL), json_get_string(file, "tenant"),
                                    json_get_string(file, "conversationId")};

    changes_publish_file(&changes, json_get_string(file, "name"));
    a->status = 201;
    a->body = json_pack("{s:O, s:O, s:O, s:O*, s:O*}", "name", json_object_get(file, "name"),
                        "size", json_object_get(file, "size"), "url", json_object_get(file, "url"),
                        "filesExpireAt", json_object_get(file, "filesExpireAt"), "notices",
                        json_object_get(file, "notices"));
}

void upload_serve(const struct app *app, struct http_request *r, struct http_answer *a)
{
    struct err e = ERR_INIT;

    a->what = "upload";
    if (!http_request_is(r, "PUT")) {
        http_refuse(a, 405, "Allow: PUT\r\n", "Use PUT");
        return;
    }
    if (app->settings->auth == SETTINGS_AUTH_NGINX && http_guard_front(app, r, a) < 0)
        return;
    bool in_file = app->settings->auth == SETTINGS_AUTH_NGINX && r->body_file;
    json_auto_t *file = in_file ? take_file(app, r, &e) : take_streamed(app, r, &e);
    if (file) {
        answer(app, file, a);
        return;
    }
    a->status = upload_status(e.kind);
    if (a->status >= 500)
        report_soften(&e);
    a->detail = err_kind_name(e.kind);
    a->body = json_pack("{s:s}", "error", e.text);
}
