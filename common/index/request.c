#include "config.h"

#include "common/index/request.h"

#include <string.h>

#define METHOD   "CONNECT "
#define END      "\r\n\r\n"
#define LENGTH   (sizeof METHOD - 1)
#define PROTOCOL " HTTP/1."

/* Lines end in CR LF, and nowhere else is one of the two, nor a NUL. */
static bool lines_are_clean(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] == '\r' && (i + 1 == len || data[i + 1] != '\n'))
            return false;
        if (data[i] == '\n' && (i == 0 || data[i - 1] != '\r'))
            return false;
        if (data[i] == '\0')
            return false;
    }
    return true;
}

/* "host:port HTTP/1.1" */
static bool parse_target(const char *at, const char *end, struct index_host *host)
{
    size_t tail = sizeof PROTOCOL; /* and one digit */

    if ((size_t)(end - at) <= tail || memcmp(end - tail, PROTOCOL, tail - 1) != 0 ||
        (end[-1] != '0' && end[-1] != '1'))
        return false;
    return index_host_parse(at, (size_t)(end - at) - tail, 0, host);
}

enum index_request_state index_request_parse(const char *data, size_t len, struct index_host *host,
                                             size_t *head_len)
{
    const char *end = memmem(data, len, END, sizeof END - 1);
    const char *line;

    if (!end)
        return len < INDEX_HEAD_MAX ? INDEX_REQUEST_MORE : INDEX_REQUEST_BAD;
    *head_len = (size_t)(end - data) + sizeof END - 1;
    if (*head_len > INDEX_HEAD_MAX || !lines_are_clean(data, *head_len))
        return INDEX_REQUEST_BAD;
    if (*head_len < LENGTH || memcmp(data, METHOD, LENGTH) != 0)
        return INDEX_REQUEST_METHOD;
    line = memchr(data, '\r', *head_len);
    return parse_target(data + LENGTH, line, host) ? INDEX_REQUEST_CONNECT : INDEX_REQUEST_BAD;
}
