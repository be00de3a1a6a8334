#include "config.h"

#include "fcgi/http/link_check.h"

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "fcgi/http/http_guard.h"
#include "fcgi/http/upload.h"

#include <string.h>

static int check_file(const struct app *app, const struct http_request *r, struct err *e)
{
    const char *path = r->path ? r->path : "";

    if (link_verify(&app->link_key, LINK_FILE, path, r->uri ? r->uri : "", clock_unix_s(), e) == 0)
        return 0;
    e->kind = ERR_DENIED;
    return -1;
}

static int check_upload(const struct app *app, const struct http_request *r, struct err *e)
{
    uint64_t size = UINT64_MAX;

    if (r->content_length && parse_u64(r->content_length, 0, INT64_MAX, &size) < 0)
        return err_set(e, ERR_INVALID, "Content-Length is no number");
    AUTO_FREE char *ticket = r->uri ? upload_ticket(app, r, size, e) : NULL;
    return ticket ? 0 : -1;
}

static const struct {
    const char *name;
    int (*check)(const struct app *app, const struct http_request *r, struct err *e);
} checks[] = {{"file", check_file}, {"upload", check_upload}};

static const struct {
    int status;
    const char *header;
} verdicts[] = {
    {400, "Sandcgi-Verdict: 400\r\n"}, {403, "Sandcgi-Verdict: 403\r\n"},
    {410, "Sandcgi-Verdict: 410\r\n"}, {413, "Sandcgi-Verdict: 413\r\n"},
    {500, "Sandcgi-Verdict: 500\r\n"}, {503, "Sandcgi-Verdict: 503\r\n"},
};

static const char *verdict_of(enum err_kind kind)
{
    int status = upload_status(kind);
    for (size_t i = 0; i < ARRAY_LEN(verdicts); i++)
        if (verdicts[i].status == status)
            return verdicts[i].header;
    return "";
}

void link_check_serve(const struct app *app, struct http_request *r, struct http_answer *a)
{
    struct err e = ERR_INIT;

    a->what = "check";
    if (app->settings->auth != SETTINGS_AUTH_NGINX) {
        http_refuse(a, 404, "", "Nobody asks here");
        return;
    }
    if (http_guard_front(app, r, a) < 0)
        return;
    err_set(&e, ERR_INVALID, "no such check");
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        if (strcmp(r->check, checks[i].name) == 0 && checks[i].check(app, r, &e) == 0) {
            a->status = 204;
            a->quiet = true;
            return;
        }
    }
    a->status = 403;
    a->detail = err_kind_name(e.kind);
    a->headers = verdict_of(e.kind);
}
