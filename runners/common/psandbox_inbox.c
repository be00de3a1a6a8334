#include "runners/common/psandbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536
/* Memory that is kept while nothing comes. */
#define KEPT_BYTES (2u * READ_BYTES)

static struct {
    char *data;
    size_t len, cap;
} inbox;

static bool make_room(void)
{
    char *grown;

    if (inbox.cap - inbox.len >= READ_BYTES)
        return true;
    grown = realloc(inbox.data, inbox.cap + inbox.cap / 2 + READ_BYTES);
    if (!grown)
        return false;
    inbox.data = grown;
    inbox.cap += inbox.cap / 2 + READ_BYTES;
    return true;
}

static uint32_t number(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;

    return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

/* Gives out the whole records; false when they make no sense. */
static bool give_out(bool (*record)(char tag, uint32_t id, char *data, size_t len))
{
    size_t at = 0;

    while (inbox.len - at >= FRAME_HEAD) {
        char *p = inbox.data + at;
        size_t len = number(p + 1);

        if (len < ID_LEN || len > RECORD_MAX)
            return false;
        if (inbox.len - at < FRAME_HEAD + len)
            break;
        if (!record(p[0], number(p + FRAME_HEAD), p + FRAME_HEAD + ID_LEN, len - ID_LEN))
            return false;
        at += FRAME_HEAD + len;
    }
    if (at > 0)
        memmove(inbox.data, inbox.data + at, inbox.len - at);
    inbox.len -= at;
    if (inbox.len == 0 && inbox.cap > KEPT_BYTES) {
        free(inbox.data);
        inbox.data = NULL;
        inbox.cap = 0;
    }
    return true;
}

enum inbox_end inbox_read(bool (*record)(char tag, uint32_t id, char *data, size_t len))
{
    ssize_t n;

    if (!make_room()) {
        entry_say(0, "no memory for records");
        return INBOX_BAD;
    }
    n = read(STDIN_FILENO, inbox.data + inbox.len, READ_BYTES);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return INBOX_MORE;
    if (n <= 0)
        return INBOX_GONE;
    inbox.len += (size_t)n;
    if (give_out(record))
        return INBOX_MORE;
    entry_say(0, "bad record");
    return INBOX_BAD;
}
