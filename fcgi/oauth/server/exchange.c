#include "config.h"

#include "fcgi/oauth/server/exchange.h"

#include "common/base/log.h"
#include "common/rpc/json.h"

#include <string.h>
#include <strings.h>

#define FORM_TYPE "application/x-www-form-urlencoded"

void exchange_answer(struct exchange *x, int status, const char *type)
{
    x->status = status;
    x->type = type;
    buf_reset(&x->headers);
    buf_reset(&x->text);
    buf_add_str(&x->headers, "Cache-Control: no-store\r\n");
}

void exchange_json(struct exchange *x, int status, json_t *take_body)
{
    exchange_answer(x, status, "application/json");
    json_write(take_body, &x->text);
    json_decref(take_body);
}

void exchange_error(struct exchange *x, int status, const char *code, const char *description)
{
    log_reason(code, NULL);
    exchange_json(x, status,
                  json_pack("{s:s, s:s}", "error", code, "error_description", description));
}

void exchange_fail(struct exchange *x, const struct err *e)
{
    log_error("%s", e->text);
    exchange_error(x, 500, "server_error", "the authorization server has failed; its log says why");
}

int exchange_form(struct exchange *x, struct form *out)
{
    const char *type = x->request.content_type;
    struct err e = ERR_INIT;

    if (!type || strncasecmp(type, FORM_TYPE, strlen(FORM_TYPE)) != 0) {
        exchange_error(x, 400, "invalid_request", "the Content-Type must be " FORM_TYPE);
        return -1;
    }
    if (form_parse(buf_str(&x->body), x->body.len, out, &e) < 0) {
        exchange_error(x, 400, "invalid_request", e.text);
        return -1;
    }
    return 0;
}

const char *exchange_need(struct exchange *x, const struct form *f, const char *name)
{
    const char *value = form_get(f, name);
    struct err e = ERR_INIT;

    if (!value) {
        err_set(&e, ERR_INVALID, "%s is missing", name);
        exchange_error(x, 400, "invalid_request", e.text);
    }
    return value;
}

const char *exchange_address(const struct exchange *x)
{
    return x->request.address ? x->request.address : "";
}
