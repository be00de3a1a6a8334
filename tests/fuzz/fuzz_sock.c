/* Messages between our processes: any bytes on the stream, read until they end or break a rule. */
#include "config.h"

#include "common/base/fdio.h"
#include "common/base/sock.h"
#include "tests/fuzz/fuzz.h"

#include <sys/socket.h>

#define STREAM_MAX                                                                                 \
    32768 /* fits into the socket's buffer, so that one process can do both sides                  \
           */
#define MESSAGE_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err e = ERR_INIT;
    int pair[2];
    PROMISE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    AUTO_FD int reader = pair[0];
    AUTO_FD int writer = pair[1];
    if (len > STREAM_MAX)
        len = STREAM_MAX;
    PROMISE(fdio_write_all(writer, data, len, &e) == 0 && shutdown(writer, SHUT_WR) == 0);

    AUTO_BUF struct buf message = BUF_INIT(MESSAGE_MAX);
    size_t at = 0;
    int passed;
    while (sock_recv_message(reader, &message, &passed, deadline_in_ms(5000), &e) == 0) {
        PROMISE(passed == -1 && at + 4 + message.len <= len);
        PROMISE(memcmp(buf_str(&message), data + at + 4, message.len) == 0);
        at += 4 + message.len;
    }
    promise_error(&e);
    PROMISE(e.kind == ERR_CANCELLED || e.kind == ERR_PROTOCOL || e.kind == ERR_LIMIT);
    PROMISE((e.kind == ERR_CANCELLED) == (at == len));
    return 0;
}
