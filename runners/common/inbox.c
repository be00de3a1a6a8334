/* Our stdin: records of the server. Its memory is that of what came and is not a whole record yet.
 */
#include "runners/common/entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536
/* Memory that is kept while it is empty. */
#define KEPT_BYTES (2u * READ_BYTES)

static struct {
    char *data;
    size_t len, cap;
} inbox;

/* Hands over the whole records of the inbox; false when one makes no sense. */
static bool inbox_take(bool (*take)(char tag, uint32_t id, char *data, size_t len))
{
    size_t at = 0;

    while (inbox.len - at >= FRAME_HEAD) {
        char *p = inbox.data + at;
        size_t len = u32_get(p + 1);

        if (len < ID_LEN || len > RECORD_MAX)
            return false;
        if (inbox.len - at < FRAME_HEAD + len)
            break;
        if (!take(p[0], u32_get(p + FRAME_HEAD), p + FRAME_HEAD + ID_LEN, len - ID_LEN))
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

int inbox_read(bool (*take)(char tag, uint32_t id, char *data, size_t len))
{
    ssize_t n;

    if (inbox.cap - inbox.len < READ_BYTES) {
        char *grown = realloc(inbox.data, inbox.cap + inbox.cap / 2 + READ_BYTES);

        if (!grown) {
            entry_error(0, "no memory for records");
            return ENTRY_FAILED;
        }
        inbox.data = grown;
        inbox.cap += inbox.cap / 2 + READ_BYTES;
    }
    n = read(STDIN_FILENO, inbox.data + inbox.len, READ_BYTES);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return -1;
    if (n <= 0)
        return 0;
    inbox.len += (size_t)n;
    if (inbox_take(take))
        return -1;
    entry_error(0, "bad record");
    return ENTRY_FAILED;
}
