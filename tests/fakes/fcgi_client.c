#include "config.h"

#include "tests/fakes/fcgi_client.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "tests/unit/unit.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#define BEGIN  1
#define END    3
#define PARAMS 4
#define STDIN  5
#define STDOUT 6

int fcgi_client_connect(const char *path, int timeout_ms)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct deadline until = deadline_in_ms(timeout_ms);

    assert_in_range(strlen(path), 1, sizeof to.sun_path - 1);
    memcpy(to.sun_path, path, strlen(path) + 1);
    for (;;) {
        AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
            return TAKE_FD(fd);
        if (deadline_passed(until))
            fail_msg("nothing listens on %s", path);
        poll(NULL, 0, 5);
    }
}

static void add_record(struct buf *out, int type, const void *data, size_t len)
{
    const unsigned char head[8] = {
        1, (unsigned char)type, 0, FCGI_CLIENT_ID, (unsigned char)(len >> 8), (unsigned char)len, 0,
        0};

    buf_add(out, head, sizeof head);
    buf_add(out, data, len);
}

static void add_length(struct buf *out, size_t len)
{
    for (int shift = 24; len > 127 && shift > 0; shift -= 8)
        buf_add_char(out, (char)((len >> shift & 0xff) | (shift == 24 ? 0x80 : 0)));
    buf_add_char(out, (char)len);
}

void fcgi_client_add_request(struct buf *out, const char *const *params, const char *body)
{
    AUTO_BUF struct buf text = BUF_INIT(1 << 20);

    for (const char *const *p = params; *p; p += 2) {
        add_length(&text, strlen(p[0]));
        add_length(&text, strlen(p[1]));
        buf_add_str(&text, p[0]);
        buf_add_str(&text, p[1]);
    }
    add_record(out, BEGIN, "\0\1\0\0\0\0\0", 8);
    for (size_t at = 0; at < text.len; at += 60000)
        add_record(out, PARAMS, text.data + at, text.len - at < 60000 ? text.len - at : 60000);
    add_record(out, PARAMS, "", 0);
    for (size_t at = 0, len = strlen(body); at < len; at += 60000)
        add_record(out, STDIN, body + at, len - at < 60000 ? len - at : 60000);
    add_record(out, STDIN, "", 0);
}

static int read_all(int fd, void *data, size_t len, struct deadline until)
{
    for (char *at = data; len > 0;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, deadline_poll_ms(until)) == 0)
            return -1;
        ssize_t n = recv(fd, at, len, MSG_DONTWAIT);
        if (n <= 0)
            return -1;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

/* part NULL: up to the end. */
static int read_records(int fd, const char *part, struct buf *out, int timeout_ms)
{
    struct deadline until = deadline_in_ms(timeout_ms);
    unsigned char head[8];
    char room[65536 + 256];

    while (!part || !strstr(buf_str(out), part)) {
        if (read_all(fd, head, sizeof head, until) < 0)
            return -1;
        size_t len = (size_t)head[4] << 8 | head[5];
        if (read_all(fd, room, len + head[6], until) < 0)
            return -1;
        if (head[1] == STDOUT)
            buf_add(out, room, len);
        if (head[1] == END)
            return part ? -1 : 0;
    }
    return 0;
}

int fcgi_client_read_answer(int fd, struct buf *out, int timeout_ms)
{
    return read_records(fd, NULL, out, timeout_ms);
}

int fcgi_client_read_until(int fd, const char *part, struct buf *out, int timeout_ms)
{
    return read_records(fd, part, out, timeout_ms);
}
