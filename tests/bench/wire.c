#include "config.h"

#include "tests/bench/wire.h"

#include "common/base/parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

void bench_die(const char *fmt, ...)
{
    va_list ap;

    fputs("bench: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static int connect_unix(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (strlen(path) >= sizeof(to.sun_path))
        bench_die("the socket's path is too long: %s", path);
    memcpy(to.sun_path, path, strlen(path) + 1);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        bench_die("no answer at %s: %s", path, strerror(errno));
    return fd;
}

static int connect_tcp(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    const char *colon = strrchr(address, ':');
    char host[32] = "";
    uint64_t port;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    if (!colon || (size_t)(colon - address) >= sizeof(host) ||
        parse_u64(colon + 1, 1, UINT16_MAX, &port) < 0)
        bench_die("not an address: %s", address);
    memcpy(host, address, (size_t)(colon - address));
    to.sin_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
        bench_die("not a numeric address: %s", host);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        bench_die("no answer at %s: %s", address, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

void wire_open(struct wire *w, const char *address)
{
    w->in = BUF_INIT(WIRE_REPLY_MAX);
    w->fd = address[0] == '/' ? connect_unix(address) : connect_tcp(address);
}

void wire_close(struct wire *w)
{
    auto_close_fd(&w->fd);
    buf_clear(&w->in);
}

void wire_send(struct wire *w, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(w->fd, data, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            bench_die("sending failed: %s", strerror(errno));
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
}

bool wire_receive(struct wire *w)
{
    char *to = buf_reserve(&w->in, 65536);
    ssize_t n;

    if (!to)
        bench_die("a reply is over %u bytes", WIRE_REPLY_MAX);
    do
        n = recv(w->fd, to, 65536, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        bench_die("receiving failed: %s", strerror(errno));
    buf_grew(&w->in, (size_t)n);
    return n > 0;
}

/* The value of a header in the head, up to its line's end; NULL when absent. */
static const char *find_header(const char *head, size_t len, const char *name)
{
    size_t name_len = strlen(name);

    for (const char *p = memchr(head, '\n', len); p;
         p = memchr(p, '\n', len - (size_t)(p - head))) {
        p++;
        if (len - (size_t)(p - head) > name_len + 1 && strncasecmp(p, name, name_len) == 0 &&
            p[name_len] == ':')
            return p + name_len + 1 + strspn(p + name_len + 1, " ");
    }
    return NULL;
}

static uint64_t leading_number(const char *s, unsigned base)
{
    uint64_t n = 0;

    for (;; s++) {
        unsigned digit = *s >= '0' && *s <= '9'   ? (unsigned)(*s - '0')
                         : *s >= 'a' && *s <= 'f' ? (unsigned)(*s - 'a' + 10)
                         : *s >= 'A' && *s <= 'F' ? (unsigned)(*s - 'A' + 10)
                                                  : 99;
        if (digit >= base)
            return n;
        n = n * base + digit;
        if (n > WIRE_REPLY_MAX)
            bench_die("a reply claims to be over %u bytes", WIRE_REPLY_MAX);
    }
}

/* Goes over the chunks in data, adding their content to out (may be NULL). Their length, or 0 when
 * more has to come. */
static size_t read_chunks(const char *data, size_t len, struct buf *out)
{
    size_t at = 0;

    for (;;) {
        const char *line_end = memchr(data + at, '\n', len - at);
        if (!line_end)
            return 0;
        size_t size = (size_t)leading_number(data + at, 16);
        at = (size_t)(line_end + 1 - data);
        if (len - at < size + 2)
            return 0;
        if (out)
            buf_add(out, data + at, size);
        at += size + 2;
        if (size == 0)
            return at;
    }
}

size_t wire_parse(const char *data, size_t len, struct wire_reply *out)
{
    const char *end = memmem(data, len, "\r\n\r\n", 4);

    if (!end)
        return 0;
    if (len < 12 || memcmp(data, "HTTP/1.", 7) != 0)
        bench_die("the reply is not HTTP/1.1");
    *out = (struct wire_reply){.status = (int)leading_number(data + 9, 10),
                               .head_len = (size_t)(end + 4 - data)};
    const char *rest = data + out->head_len;
    size_t rest_len = len - out->head_len;
    if (out->status < 200 || out->status == 204 || out->status == 304)
        return out->head_len;
    const char *length = find_header(data, out->head_len, "Content-Length");
    if (length) {
        out->body_len = (size_t)leading_number(length, 10);
        return rest_len < out->body_len ? 0 : out->head_len + out->body_len;
    }
    if (!find_header(data, out->head_len, "Transfer-Encoding"))
        bench_die("a reply with status %d has no length", out->status);
    out->chunked = true;
    out->body_len = read_chunks(rest, rest_len, NULL);
    return out->body_len ? out->head_len + out->body_len : 0;
}

int wire_call(struct wire *w, const char *request, size_t len, struct buf *body)
{
    struct wire_reply reply;
    size_t total;

    wire_send(w, request, len);
    while ((total = wire_parse(buf_str(&w->in), w->in.len, &reply)) == 0)
        if (!wire_receive(w))
            bench_die("the connection ended in the middle of a reply");
    if (body && reply.chunked)
        read_chunks(w->in.data + reply.head_len, reply.body_len, body);
    else if (body)
        buf_add(body, w->in.data + reply.head_len, reply.body_len);
    buf_drop_front(&w->in, total);
    return reply.status;
}

void wire_request(struct buf *out, const char *method, const char *path, const char *headers,
                  const char *body, size_t body_len)
{
    buf_addf(out, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", method, path, headers);
    if (body)
        buf_addf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body_len);
    buf_add_str(out, "\r\n");
    if (body)
        buf_add(out, body, body_len);
}
