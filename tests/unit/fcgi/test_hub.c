/* What the hub is made of: connections that take text in FastCGI records, and events. */
#include "config.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "fcgi/commands.h"
#include "fcgi/hub/events.h"
#include "fcgi/hub/hub_stream.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

static char folder[PATH_MAX], path[PATH_MAX + 20];

static int setup(void **state)
{
    (void)state;
    unit_make_folder(folder);
    snprintf(path, sizeof path, "%s/events.sock", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static struct hub_stream *open_stream(int *peer)
{
    struct err e = ERR_INIT;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_works(fdio_set_nonblocking(pair[0], &e), e);
    *peer = pair[1];
    struct hub_stream *s = hub_stream_new(pair[0], 100);
    s->reader->request_id = 0x1234;
    hub_stream_begin(s, NULL, NULL);
    return s;
}

static void text_travels_in_records(void **state)
{
    (void)state;
    static const unsigned char expected[] = "\1\6\x12\x34\0\5\0\0hello\1\6\x12\x34\0\0\0\0"
                                            "\1\3\x12\x34\0\x08\0\0\0\0\0\0\0\0\0";
    unsigned char got[100];
    AUTO_FD int peer = -1;
    struct hub_stream *s = open_stream(&peer);

    assert_int_equal(hub_stream_add(s, "hello", 5), 0);
    assert_false(hub_stream_is_idle(s));
    hub_stream_end(s);
    hub_stream_end(s);
    assert_int_equal(hub_stream_add(s, "late", 4), 0);
    assert_int_equal(hub_stream_flush(s), 0);
    assert_true(hub_stream_is_idle(s));
    assert_int_equal(recv(peer, got, sizeof got, 0), sizeof expected);
    assert_memory_equal(got, expected, sizeof expected);
    hub_stream_free(s);
    assert_int_equal(recv(peer, got, sizeof got, 0), 0);
}

static void long_text_is_cut_into_records(void **state)
{
    (void)state;
    unsigned char head[8];
    AUTO_FD int peer = -1;
    struct hub_stream *s = open_stream(&peer);
    AUTO_FREE char *text = mem_alloc(70000);
    size_t left = 70000;

    s->out.max = 100000;
    assert_int_equal(hub_stream_add(s, text, left), 0);
    assert_int_equal(hub_stream_flush(s), 0);
    while (left > 0) {
        char room[65536];
        assert_int_equal(recv(peer, head, sizeof head, MSG_WAITALL), sizeof head);
        size_t n = (size_t)head[4] << 8 | head[5];
        assert_in_range(n, 1, left);
        assert_int_equal(recv(peer, room, n, MSG_WAITALL), n);
        left -= n;
    }
    hub_stream_free(s);
}

static void a_slow_reader_is_noticed_and_one_that_left_too(void **state)
{
    (void)state;
    char text[1000] = "";
    int peer = -1, added = 0;
    struct hub_stream *s = open_stream(&peer);

    while (added < 100000 && hub_stream_add(s, text, sizeof text) == 0) {
        assert_int_equal(hub_stream_flush(s), 0);
        added++;
    }
    assert_in_range(added, HUB_QUEUE_MAX / 1100, 99999);
    assert_in_range(s->out.len, 1, HUB_QUEUE_MAX);
    close(peer);
    assert_int_equal(hub_stream_flush(s), -1);
    hub_stream_free(s);
}

static void events_arrive_as_they_were_sent(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct event_sender sender;
    struct mcp_event got;
    struct stat st;
    const struct account self = {geteuid(), getegid()};
    const struct mcp_event event = {
        .kind = MCP_EVENT_RESOURCE, .tenant = "t", .uri = "sandbox://c/\xc3\xa4.txt"};

    event_sender_init(&sender, path, EVENTS_TIMEOUT_MS);
    event_sender_publish(&sender, &event); /* without a listener */
    AUTO_FD int fd = events_listen(path, &self, &e);
    assert_true(fd >= 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_null(events_receive(fd, &got));
    assert_int_equal(
        sendto(sender.fd, "nonsense", 8, 0, (struct sockaddr *)&sender.to, sizeof sender.to), 8);
    assert_int_equal(sendto(sender.fd, "{}", 2, 0, (struct sockaddr *)&sender.to, sizeof sender.to),
                     2);
    assert_int_equal(
        sendto(fd, "{}", 2, MSG_NOSIGNAL, (struct sockaddr *)&sender.to, sizeof sender.to),
        -1); /* the hub itself */
    assert_int_equal(errno, EPIPE);
    event_sender_publish(&sender, &event);
    json_auto_t *source = events_receive(fd, &got);
    assert_non_null(source);
    assert_int_equal(got.kind, MCP_EVENT_RESOURCE);
    assert_string_equal(got.tenant, "t");
    assert_string_equal(got.uri, event.uri);
    assert_null(events_receive(fd, &got));
    event_sender_clear(&sender);
}

static void the_end_of_a_run_is_an_event_of_its_task_and_its_files(void **state)
{
    static const enum mcp_event_kind kinds[] = {MCP_EVENT_TASK, MCP_EVENT_RESOURCE,
                                                MCP_EVENT_RESOURCES};
    const struct account self = {geteuid(), getegid()};
    struct settings settings = {.events = path, .edge_secret = (char[]){""}};
    json_auto_t *files = json_pack("[{s:s}]", "name", "a.txt");
    const struct broker_run_news news = {
        .tenant = "t", .conversation = "c", .run_id = "id", .files = files};
    struct err e = ERR_INIT;

    (void)state;
    AUTO_FD int fd = events_listen(path, &self, &e);
    assert_true(fd >= 0);
    const struct broker_config config = broker_config_of(&settings, 0);
    config.run_ended(config.run_ended_ctx, &news);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct mcp_event got;
        json_auto_t *source = events_receive(fd, &got);
        assert_non_null(source);
        assert_int_equal(got.kind, kinds[i]);
        assert_string_equal(got.tenant, "t");
        if (got.kind == MCP_EVENT_TASK)
            assert_string_equal(got.task, "id");
        if (got.kind == MCP_EVENT_RESOURCE)
            assert_string_equal(got.uri, "sandbox://c/a.txt");
    }
}

static void a_sender_does_not_wait_for_a_hub_that_sleeps(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct event_sender sender;
    struct mcp_event got;
    const struct account self = {geteuid(), getegid()};
    const struct mcp_event event = {.kind = MCP_EVENT_TOOLS};
    int n = 0;

    AUTO_FD int fd = events_listen(path, &self, &e);
    assert_true(fd >= 0);
    event_sender_init(&sender, path, EVENTS_TIMEOUT_MS);
    int64_t began = clock_mono_ms();
    while (deadline_passed(sender.no_wait_until) && n < 100000) { /* until one was given up */
        began = clock_mono_ms();
        event_sender_publish(&sender, &event);
        n++;
    }
    assert_in_range(clock_mono_ms() - began, 20, 20000);
    began = clock_mono_ms();
    for (int i = 0; i < 1000; i++)
        event_sender_publish(&sender, &event);
    assert_in_range(clock_mono_ms() - began, 0, 20000); /* it does not wait for each */
    for (json_t *source; (source = events_receive(fd, &got)); json_decref(source))
        n--;
    assert_int_equal(n, 1); /* the one that was given up */
    event_sender_clear(&sender);
}

static void the_broker_never_waits_for_a_hub_that_sleeps(void **state)
{
    const struct account self = {geteuid(), getegid()};
    struct settings settings = {.events = path, .edge_secret = (char[]){""}};
    const struct broker_config config = broker_config_of(&settings, 0);
    struct err e = ERR_INIT;

    (void)state;
    AUTO_FD int fd = events_listen(path, &self, &e);
    assert_true(fd >= 0);
    for (int i = 0; i < 600; i++) /* more than the kernel queues */
        config.runners_changed(config.runners_changed_ctx);
    int64_t began = clock_mono_ms();
    for (int i = 0; i < 200; i++)
        assert_false(config.runners_changed(config.runners_changed_ctx)); /* call it again */
    assert_in_range(clock_mono_ms() - began, 0, 200 * EVENTS_TIMEOUT_MS / 2);
    json_decref(events_receive(fd, &(struct mcp_event){0}));
    assert_true(config.runners_changed(config.runners_changed_ctx));
}

static void a_socket_in_use_is_not_taken_over(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    const struct account self = {geteuid(), getegid()};

    AUTO_FD int fd = events_listen(path, &self, &e);
    assert_true(fd >= 0);
    assert_fails(events_listen(path, &self, &e), ERR_BUSY, e);
    auto_close_fd(&fd);
    fd = events_listen(path, &self, &e); /* stale now */
    assert_true(fd >= 0);
    auto_close_fd(&fd);
    unlink(path);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_fails(events_listen(path, &self, &e), ERR_INVALID, e);
    assert_fails(events_listen("", &self, &e), ERR_INVALID, e);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(text_travels_in_records),
    cmocka_unit_test(long_text_is_cut_into_records),
    cmocka_unit_test(a_slow_reader_is_noticed_and_one_that_left_too),
    cmocka_unit_test_setup_teardown(events_arrive_as_they_were_sent, setup, teardown),
    cmocka_unit_test_setup_teardown(the_end_of_a_run_is_an_event_of_its_task_and_its_files, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_sender_does_not_wait_for_a_hub_that_sleeps, setup, teardown),
    cmocka_unit_test_setup_teardown(the_broker_never_waits_for_a_hub_that_sleeps, setup, teardown),
    cmocka_unit_test_setup_teardown(a_socket_in_use_is_not_taken_over, setup, teardown),
};
UNIT_TESTS(tests)
