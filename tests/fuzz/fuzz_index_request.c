/* What a container says to the index proxy: whatever passes is one host and port, and the same when
 * more of it has come. */
#include "config.h"

#include "common/index/proxy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct index_host host = {.name = ""}, again;
    size_t head_len = 0, again_len = 0;
    const char *text = (const char *)data;

    if (len > INDEX_HEAD_MAX)
        len = INDEX_HEAD_MAX;
    if (index_request_parse(text, len, &host, &head_len) != INDEX_REQUEST_CONNECT)
        return 0;
    PROMISE(head_len >= 4 && head_len <= len && memcmp(text + head_len - 4, "\r\n\r\n", 4) == 0);
    PROMISE(host.port != 0 && *host.name && strlen(host.name) <= INDEX_HOST_NAME);
    PROMISE(strspn(host.name, "abcdefghijklmnopqrstuvwxyz0123456789.:-") == strlen(host.name));
    PROMISE(index_request_parse(text, head_len, &again, &again_len) == INDEX_REQUEST_CONNECT);
    PROMISE(again_len == head_len && again.port == host.port && strcmp(again.name, host.name) == 0);
    PROMISE(index_request_parse(text, head_len - 1, &again, &again_len) == INDEX_REQUEST_MORE);
    return 0;
}
