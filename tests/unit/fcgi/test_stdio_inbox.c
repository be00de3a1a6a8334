/* The queue of standard input: order, cancellation, and what happens when it is full. */
#include "config.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "fcgi/stdio/stdio_inbox.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <poll.h>

#define LINE_MAX_BYTES 3000
#define LONG_MS        20000

static struct stdio_inbox inbox; /* its thread never ends: one test, one process */

static void send_request(int fd, int id, size_t padding)
{
    struct err e = ERR_INIT;
    AUTO_FREE char *line = mem_printf("{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"x\",\"params\":"
                                      "{\"a\":\"%0*d\"}}\n",
                                      id, (int)padding, 0);

    assert_works(fdio_write_all(fd, line, strlen(line), &e), e);
}

static long long id_of(const struct stdio_mail *m)
{
    return json_integer_value(m->message ? json_object_get(m->message, "id") : m->id);
}

static void a_flood_hides_no_cancellation(void **state)
{
    static const char cancel[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                                 "\"params\":{\"requestId\":1}}\n";
    struct stdio_mail *m;
    struct err e = ERR_INIT;
    int input[2], served = 0, refused = 0;

    (void)state;
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_true(dup2(input[0], STDIN_FILENO) >= 0);
    close(input[0]);
    assert_works(stdio_inbox_start(&inbox, LINE_MAX_BYTES, -1, &e), e);
    send_request(input[1], 1, 1);
    assert_non_null(m = stdio_inbox_next(&inbox, &e));
    int cancel_fd = stdio_inbox_begin(&inbox, json_object_get(m->message, "id"));
    stdio_mail_free(m);
    for (int id = 2; id <= 200; id++)
        send_request(input[1], id, 800);
    assert_works(fdio_write_all(input[1], cancel, sizeof cancel - 1, &e), e);
    struct pollfd p = {.fd = cancel_fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, LONG_MS), 1);
    assert_true(stdio_inbox_finish(&inbox, cancel_fd));
    close(input[1]);
    for (long long before = 1; (m = stdio_inbox_next(&inbox, &e)); stdio_mail_free(m)) {
        assert_true(id_of(m) > before);
        before = id_of(m);
        *(m->message ? &served : &refused) += 1;
    }
    assert_int_equal(e.kind, ERR_NONE);
    /* 16 of the longest lines; a request takes 900 bytes, and 112 for each of 10 marks in it. */
    assert_in_range(served, 18, 25);
    assert_in_range(refused, 1, 199 - served);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_hides_no_cancellation),
    };
    return RUN_TESTS(tests);
}
