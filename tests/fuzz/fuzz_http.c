/* The headers of a request, whatever they are: nothing of them may end a line of our answer's head
 * or get in where it should not. */
#include "config.h"

#include "common/base/mem.h"
#include "fcgi/http/http_request.h"
#include "tests/fuzz/fuzz.h"

#define FIELDS   6
#define HEAD_END "\r\n\r\n"

static const char *no_param(void *ctx, const char *name)
{
    (void)ctx;
    PROMISE(strncmp(name, "HTTP_MCP_PARAM_", 15) == 0);
    PROMISE(strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(name));
    return NULL;
}

/* The input's lines, one for each header. */
static void split(char *text, const char *fields[FIELDS])
{
    for (size_t i = 0; i < FIELDS; i++) {
        char *field = text ? strsep(&text, "\n") : NULL;
        fields[i] = field && *field ? field : NULL;
    }
}

/* Every line is one of ours: a name that we know, and no control character. */
static void check_head(const struct buf *out)
{
    const char *end = memmem(out->data, out->len, HEAD_END, 4);

    PROMISE(end);
    for (const char *s = out->data; s < end;) {
        const char *stop = memmem(s, (size_t)(end + 2 - s), "\r\n", 2);
        PROMISE(stop);
        PROMISE(strncmp(s, "Status: ", 8) == 0 || strncmp(s, "Access-Control-", 15) == 0 ||
                strncmp(s, "Vary: ", 6) == 0 || strncmp(s, "Cache-Control: ", 15) == 0 ||
                strncmp(s, "Content-", 8) == 0 || strncmp(s, "WWW-Authenticate: ", 18) == 0);
        for (; s < stop; s++)
            PROMISE((unsigned char)*s >= ' ');
        s += 2;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static char base_url[] = "https://own.test:8443/x", origins[] = "https://page.test";
    static char hosts[] = "other.test", secret[] = "0123456789abcdef0123456789abcdef";
    struct settings settings = {
        .public_base_url = base_url, .allowed_origins = origins, .allowed_hosts = hosts};
    struct app app = {.settings = &settings, .front_secret = secret};
    const struct http_source source = {.param = no_param, .cancel_fd = -1};
    AUTO_FREE char *text = mem_strndup((const char *)data, len < 65536 ? len : 65536);
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    const char *field[FIELDS];

    split(text, field);
    struct http_request r = {.source = &source,
                             .host = field[0],
                             .origin = field[1],
                             .content_type = field[2],
                             .accept = field[3],
                             .secret = field[4],
                             .tenant = "t"};
    struct http_answer a = HTTP_ANSWER_INIT;
    bool in = http_guard_origin(&app, &r, &a) == 0;
    PROMISE(in || a.status == 403);
    if (in && http_guard_who(&app, &r, &a) == 0)
        PROMISE(strcmp(r.secret, secret) == 0);
    a.asked_headers = field[5];
    http_answer_write(&a, &out);
    check_head(&out);
    if (field[5])
        http_request_param_header(&r, field[5]);
    json_decref(a.body);
    return 0;
}
