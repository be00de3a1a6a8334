#include "config.h"

#include "common/sandbox/archive/archive_record.h"

#include "common/base/fdio.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define HEAD 5

int archive_record_write(int fd, enum archive_tag tag, const void *data, size_t len)
{
    const unsigned char head[HEAD] = {(unsigned char)tag, (unsigned char)(len >> 24),
                                      (unsigned char)(len >> 16), (unsigned char)(len >> 8),
                                      (unsigned char)len};
    struct err e = ERR_INIT;

    if (fdio_write_all(fd, head, sizeof(head), &e) < 0)
        return -1;
    return len == 0 ? 0 : fdio_write_all(fd, data, len, &e);
}

static int read_full(int fd, struct deadline d, void *to, size_t len, struct err *e)
{
    for (size_t at = 0; at < len;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, deadline_poll_ms(d));
        if (ready == 0)
            return err_set(e, ERR_LIMIT, "the archive takes too long to unpack");
        ssize_t n = ready < 0 ? -1 : read(fd, (char *)to + at, len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(e, ERR_PROTOCOL, "the archive's reader ended early");
        at += (size_t)n;
    }
    return 0;
}

/* Which of them say something. */
static bool len_ok(unsigned char tag, size_t len)
{
    switch (tag) {
    case ARCHIVE_FOLDER:
    case ARCHIVE_FILE:
    case ARCHIVE_BYTES:
    case ARCHIVE_REFUSED:
        return len > 0 && len <= ARCHIVE_RECORD_MAX;
    case ARCHIVE_END:
        return len == 0;
    default:
        return false;
    }
}

int archive_record_read(int fd, struct deadline d, struct archive_record *out, struct err *e)
{
    unsigned char head[HEAD];

    if (read_full(fd, d, head, sizeof(head), e) < 0)
        return -1;
    size_t len = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
    if (!len_ok(head[0], len))
        return err_set(e, ERR_PROTOCOL, "the archive's reader says something meaningless");
    if (read_full(fd, d, out->data, len, e) < 0)
        return -1;
    out->tag = (enum archive_tag)head[0];
    out->len = len;
    out->data[len] = '\0';
    return 0;
}
