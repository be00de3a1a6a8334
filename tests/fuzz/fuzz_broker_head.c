/* The first message of a connection to the broker, in pieces: what its main process makes of it. */
#include "config.h"

#include "common/base/fdio.h"
#include "common/base/sock.h"
#include "common/protocol/wire.h"
#include "tests/fuzz/fuzz.h"

#include <sys/socket.h>

/* Fits into the socket's buffer, so that one process can do both sides. */
#define STREAM_MAX 32768

static void look_at(const struct buf *text)
{
    struct err e = ERR_INIT;
    struct run_request request = {0};
    struct run_options options;
    json_auto_t *head = wire_parse(text, &e);

    if (!head) {
        promise_error(&e);
        return;
    }
    if (wire_run_head_decode(head, &request, &options, &e) == 0) {
        PROMISE(request.tenant && request.conversation && request.language);
        PROMISE(json_array_size(options.imports) <= WIRE_IMPORTS_MAX);
    } else {
        promise_error(&e);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err e = ERR_INIT;
    struct sock_inbox inbox = SOCK_INBOX_INIT(WIRE_HEAD_MAX);
    int pair[2];
    PROMISE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    AUTO_FD int reader = pair[0];
    AUTO_FD int writer = pair[1];
    int took = 0;

    if (len > STREAM_MAX)
        len = STREAM_MAX;
    for (size_t at = 0, step = 1; at < len && took >= 0; at += step, step *= 3) {
        if (step > len - at)
            step = len - at;
        PROMISE(fdio_write_all(writer, data + at, step, &e) == 0);
        while ((took = sock_inbox_take(&inbox, reader, &e)) > 0) {
            PROMISE(inbox.message.len <= WIRE_HEAD_MAX && inbox.passed.n == 0);
            look_at(&inbox.message);
        }
    }
    if (took < 0)
        PROMISE(e.kind == ERR_LIMIT);
    PROMISE(shutdown(writer, SHUT_WR) == 0);
    if (took == 0) {
        PROMISE(sock_inbox_take(&inbox, reader, &e) == -1);
        PROMISE(e.kind == ERR_CANCELLED || e.kind == ERR_PROTOCOL);
    }
    sock_inbox_clear(&inbox);
    return 0;
}
