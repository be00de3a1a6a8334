/* The forms and URIs that OAuth clients send: whatever is taken has no control characters and comes
 * back the same when it is written again, and a URI that is taken leads where it says. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "fcgi/oauth/server/form.h"
#include "fcgi/oauth/server/uri.h"
#include "tests/fuzz/fuzz.h"

#define BASE "https://sandbox.example.org"

static void check_redirect(const char *uri)
{
    AUTO_BUF struct buf place = BUF_INIT(URI_MAX + 100);
    struct err e = ERR_INIT;

    if (redirect_check(uri, &e) < 0) {
        promise_error(&e);
        return;
    }
    PROMISE(strlen(uri) <= URI_MAX && strstr(uri, "://") && !strpbrk(uri, "#\\ \"<>\r\n\t"));
    PROMISE(strncmp(uri, "javascript", 10) != 0 && strncmp(uri, "data", 4) != 0);
    PROMISE(redirect_matches(uri, uri));
    redirect_describe(uri, &place);
    PROMISE(buf_ok(&place) && place.len > 0);
}

static void check_resource(const char *uri)
{
    AUTO_BUF struct buf plain = BUF_INIT(URI_MAX), again = BUF_INIT(URI_MAX);
    struct err e = ERR_INIT;

    if (resource_read(BASE, uri, &plain, &e) < 0) {
        promise_error(&e);
        return;
    }
    PROMISE(strncmp(buf_str(&plain), BASE, strlen(BASE)) == 0);
    PROMISE(resource_read(BASE, buf_str(&plain), &again, &e) == 0);
    PROMISE(strcmp(buf_str(&plain), buf_str(&again)) == 0);
}

static void check_value(const char *value)
{
    AUTO_BUF struct buf text = BUF_INIT(4 * FORM_MAX);
    AUTO_FORM struct form f = {0};
    struct err e = ERR_INIT;

    for (const char *s = value; *s; s++)
        PROMISE((unsigned char)*s >= ' ' && *s != 0x7f);
    PROMISE(utf8_valid(value, strlen(value)));
    form_add(&text, '&', "v", value);
    PROMISE(buf_ok(&text));
    if (text.len <= FORM_MAX && *value) {
        PROMISE(form_parse(text.data, text.len, &f, &e) == 0);
        PROMISE(strcmp(form_get(&f, "v"), value) == 0);
    }
    check_redirect(value);
    check_resource(value);
    if (client_url_is_valid(value)) {
        AUTO_FREE char *host = uri_host(value);
        PROMISE(*host && !strpbrk(host, "/@:?#") == (*host != '['));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *text = mem_strndup((const char *)data, len);
    AUTO_FORM struct form f = {0};
    struct err e = ERR_INIT;

    if (form_parse(text, len, &f, &e) < 0) {
        promise_error(&e);
        return 0;
    }
    PROMISE(f.n <= FORM_FIELDS_MAX);
    for (size_t i = 0; i < f.n; i++)
        check_value(f.fields[i].value);
    return 0;
}
