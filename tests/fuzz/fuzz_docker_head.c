/* The head of a hijacked reply: what is complete stays complete, and nothing is read beyond it. */
#include "config.h"

#include "common/engine/docker_stream.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct docker_head head, again;
    struct err e = ERR_INIT;
    int r = docker_head_parse((const char *)data, len, &head, &e);
    if (r < 0)
        promise_error(&e);
    if (r <= 0)
        return 0;
    PROMISE(head.len > 0 && head.len <= len);
    PROMISE(head.status >= 100 && head.status <= 599);
    PROMISE(docker_head_parse((const char *)data, head.len, &again, &e) == 1);
    PROMISE(again.len == head.len && again.status == head.status);
    PROMISE(docker_head_parse((const char *)data, head.len - 1, &again, &e) == 0);
    return 0;
}
