#include "config.h"

#include "fcgi/stdio.h"

#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/mcp/pin.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define READ_CHUNK 65536
#define ANSWER_MAX (96u * 1024 * 1024)

struct stdio {
    const struct app *app;
    struct buf in; /* what has been read and not yet answered */
    struct mcp_pin pin;
    bool skipping; /* in the rest of a line that was too long */
};

static int send_line(json_t *body, struct err *e)
{
    AUTO_BUF struct buf out = BUF_INIT(ANSWER_MAX);
    json_write(body, &out);
    buf_add_char(&out, '\n');
    return fdio_write_all(STDOUT_FILENO, out.data, out.len, e);
}

static int answer(const struct mcp_answer *a, struct err *e)
{
    if (!a->body)
        return 0;
    int result = send_line(a->body, e);
    json_decref(a->body);
    return result;
}

static int serve_line(struct stdio *s, const char *line, size_t len, struct err *e)
{
    struct mcp_answer a = {0};
    struct err problem = ERR_INIT;
    const struct mcp_origin origin = {.tenant = "local", .cancel_fd = -1, .pin = &s->pin};

    if (len > 0 && line[len - 1] == '\r')
        len--;
    if (len == 0)
        return 0;
    json_auto_t *message = json_parse(line, len, JSON_MAX_DEPTH, &problem);
    if (message)
        mcp_handle(&s->app->server, &origin, message, &a);
    else
        mcp_parse_failed(&problem, &a);
    return answer(&a, e);
}

/* Serves every whole line that has been read. */
static int serve_lines(struct stdio *s, struct err *e)
{
    char *end;
    while (s->in.len > 0 && (end = memchr(s->in.data, '\n', s->in.len))) {
        size_t len = (size_t)(end - s->in.data);
        if (!s->skipping && serve_line(s, s->in.data, len, e) < 0)
            return -1;
        s->skipping = false;
        buf_drop_front(&s->in, len + 1);
    }
    return 0;
}

/* Half a line that has no room to grow is answered once and passed over to its end. */
static int drop_long_line(struct stdio *s, struct err *e)
{
    struct mcp_answer a = {0};
    struct err problem = ERR_INIT;
    bool first = !s->skipping;

    s->skipping = true;
    buf_reset(&s->in);
    if (!first)
        return 0;
    err_set(&problem, ERR_LIMIT, "the message is over SANDCGI_MAX_BODY");
    mcp_parse_failed(&problem, &a);
    return answer(&a, e);
}

int stdio_serve(const struct app *app, struct err *e)
{
    struct stdio s = {
        .app = app, .in = BUF_INIT(app->settings->max_body + READ_CHUNK), .pin = MCP_PIN_INIT};
    int result = -1;

    for (;;) {
        if (s.in.len > app->settings->max_body && drop_long_line(&s, e) < 0)
            break;
        char *room = buf_reserve(&s.in, READ_CHUNK);
        ssize_t n = read(STDIN_FILENO, room, READ_CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            err_errno(e, "reading standard input");
            break;
        }
        if (n == 0) {
            result = 0;
            break;
        }
        buf_grew(&s.in, (size_t)n);
        if (serve_lines(&s, e) < 0)
            break;
    }
    buf_clear(&s.in);
    mcp_pin_clear(&s.pin);
    return result;
}
