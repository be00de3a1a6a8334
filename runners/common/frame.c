#include "runners/common/entry.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* While it is not empty nothing is read from the program: that is the back-pressure. */
static struct {
    unsigned char data[FRAME_HEAD + FRAME_MAX];
    size_t len;
    size_t sent;
} frame;

void *frame_room(void)
{
    return frame.data + FRAME_HEAD;
}

void frame_begin(char tag, size_t len)
{
    frame.data[0] = (unsigned char)tag;
    frame.data[1] = (unsigned char)(len >> 24);
    frame.data[2] = (unsigned char)(len >> 16);
    frame.data[3] = (unsigned char)(len >> 8);
    frame.data[4] = (unsigned char)len;
    frame.len = FRAME_HEAD + len;
    frame.sent = 0;
}

bool frame_pending(void)
{
    return frame.sent < frame.len;
}

bool frame_push(void)
{
    while (frame_pending()) {
        ssize_t n = write(STDOUT_FILENO, frame.data + frame.sent, frame.len - frame.sent);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        frame.sent += (size_t)n;
    }
    return true;
}

bool server_is_there(short revents)
{
    char drop[4096];

    if (revents & POLLIN)
        return read(STDIN_FILENO, drop, sizeof(drop)) > 0 || errno == EINTR || errno == EAGAIN;
    return !(revents & (POLLHUP | POLLERR | POLLNVAL));
}

bool frame_send(char tag, const void *data, size_t len)
{
    struct pollfd p[2] = {{.fd = STDOUT_FILENO, .events = POLLOUT},
                          {.fd = STDIN_FILENO, .events = POLLIN}};

    memcpy(frame_room(), data, len);
    frame_begin(tag, len);
    for (;;) {
        if (!frame_push())
            return false;
        if (!frame_pending())
            return true;
        if (poll(p, 2, -1) > 0 && p[1].revents && !server_is_there(p[1].revents))
            return false;
    }
}
