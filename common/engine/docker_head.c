#include "config.h"

#include "common/engine/docker_stream.h"

#include "common/base/parse.h"

#include <string.h>
#include <strings.h>

static int malformed(struct err *e)
{
    return err_set(e, ERR_PROTOCOL, "the container engine's reply is not HTTP");
}

/* "HTTP/1.1 101 …" */
static int parse_status(const char *line, size_t len, int *out)
{
    char digits[4] = {0};
    uint64_t status;

    if (len < 12 || strncmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ' ||
        (len > 12 && line[12] != ' '))
        return -1;
    memcpy(digits, line + 9, 3);
    if (parse_u64(digits, 100, 599, &status) < 0)
        return -1;
    *out = (int)status;
    return 0;
}

/* A header that cannot be understood as a length is left alone: it only says how much of an error
 * to read. */
static void parse_header(const char *line, size_t len, struct docker_head *out)
{
    static const char name[] = "Content-Length:";
    char digits[12] = {0};
    size_t from = sizeof name - 1;
    uint64_t value;

    if (len <= from || strncasecmp(line, name, from) != 0)
        return;
    while (from < len && line[from] == ' ')
        from++;
    if (len - from >= sizeof digits)
        return;
    memcpy(digits, line + from, len - from);
    if (parse_u64(digits, 0, DOCKER_HEAD_MAX, &value) == 0)
        out->content_length = (size_t)value;
}

int docker_head_parse(const char *data, size_t len, struct docker_head *out, struct err *e)
{
    size_t at = 0;

    *out = (struct docker_head){0};
    while (at < len) {
        const char *line = data + at;
        const char *nl = memchr(line, '\n', len - at);
        size_t n;

        if (!nl)
            break;
        n = (size_t)(nl - line);
        at += n + 1;
        if (n > 0 && line[n - 1] == '\r')
            n--;
        if (out->status == 0) {
            if (parse_status(line, n, &out->status) < 0)
                return malformed(e);
        } else if (n == 0) {
            out->len = at;
            return 1;
        } else {
            parse_header(line, n, out);
        }
    }
    return len >= DOCKER_HEAD_MAX ? malformed(e) : 0;
}
