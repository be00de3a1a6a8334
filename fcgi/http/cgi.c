#include "config.h"

#include "fcgi/http/cgi.h"

#include "common/base/fdio.h"
#include "fcgi/http/http.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

bool cgi_detected(void)
{
    return getenv("GATEWAY_INTERFACE") && getenv("REQUEST_METHOD");
}

static const char *param(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}

static long read_some(void *ctx, char *data, size_t len)
{
    (void)ctx;
    ssize_t n;
    do
        n = read(STDIN_FILENO, data, len);
    while (n < 0 && errno == EINTR);
    return n;
}

static int write_out(void *ctx, const char *data, size_t len)
{
    struct err e = ERR_INIT;
    (void)ctx;
    return fdio_write_all(STDOUT_FILENO, data, len, &e);
}

void cgi_serve(const struct app *app)
{
    const struct http_source source = {
        .param = param, .read = read_some, .write = write_out, .cancel_fd = STDOUT_FILENO};
    http_serve(app, &source);
}
