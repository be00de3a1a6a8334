#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define POLL_MAX_MS 3600000

int64_t clock_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int poll_timeout(int64_t at_ms)
{
    int64_t left = at_ms - clock_ms();

    if (at_ms == 0)
        return -1;
    if (left < 0)
        return 0;
    return left < POLL_MAX_MS ? (int)left + 1 : POLL_MAX_MS;
}

void entry_error(int err, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    dprintf(STDERR_FILENO, "entry: %s%s%s\n", text, err ? ": " : "", err ? strerror(err) : "");
}

uint64_t digits(const char *p)
{
    uint64_t value = 0;

    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return UINT64_MAX;
    }
    return value;
}

uint32_t u32_get(const void *from)
{
    const unsigned char *p = from;

    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void u32_put(void *to, uint32_t value)
{
    unsigned char *p = to;

    p[0] = (unsigned char)(value >> 24);
    p[1] = (unsigned char)(value >> 16);
    p[2] = (unsigned char)(value >> 8);
    p[3] = (unsigned char)value;
}

bool write_all(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return false;
    n = read(fd, text, size - 1);
    close(fd);
    if (n < 0)
        return false;
    text[n] = '\0';
    return true;
}

bool input_open(struct input *in)
{
    char path[32];

    in->fill_fd = memfd_create("stdin", MFD_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", in->fill_fd);
    /* A second description: our writes do not move the program's position, and it only reads. */
    in->fd = in->fill_fd < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    return in->fd >= 0;
}

/* ---- frames ---- */

/* While it is not empty nothing is read from the program: that is the back-pressure. */
static struct {
    unsigned char data[FRAME_HEAD + ID_LEN + DATA_MAX];
    size_t len;
    size_t sent;
} frame;

char *frame_room(void)
{
    return (char *)frame.data + FRAME_HEAD + ID_LEN;
}

void frame_begin(char tag, uint32_t id, size_t len)
{
    frame.data[0] = (unsigned char)tag;
    u32_put(frame.data + 1, (uint32_t)(ID_LEN + len));
    u32_put(frame.data + FRAME_HEAD, id);
    frame.len = FRAME_HEAD + ID_LEN + len;
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
