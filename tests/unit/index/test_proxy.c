/* A connection through the proxy, to a listener of the test's own. */
#include "config.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/index/proxy.h"
#include "tests/unit/escapes.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct world {
    int there; /* listens where the index is */
    uint16_t port;
    struct index_source source;
    struct index_budget budget;
};

static void world_open(struct world *w, const char *host)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;

    *w = (struct world){.budget = {.down = 1 << 20, .up = 1 << 20}};
    w->there = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w->there, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(w->there, 4), 0);
    assert_int_equal(getsockname(w->there, (struct sockaddr *)&a, &len), 0);
    w->port = ntohs(a.sin_port);
    snprintf(w->source.hosts[0].name, sizeof w->source.hosts[0].name, "%s", host);
    w->source.hosts[0].port = w->port;
    w->source.n_hosts = 1;
}

/* The client's end of a connection that a process serves. */
static int begin(struct world *w, bool private_ok, pid_t *pid)
{
    const struct index_rules rules = {.source = &w->source, .private_ok = private_ok};
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    *pid = fork();
    if (*pid == 0) {
        close(pair[0]);
        index_tunnel_serve(pair[1], &rules, &w->budget);
        _exit(0);
    }
    close(pair[1]);
    return pair[0];
}

static void ask(int fd, const char *host, uint16_t port, const char *more)
{
    char text[256];
    struct err e = ERR_INIT;
    int len = snprintf(text, sizeof text, "CONNECT %s:%u HTTP/1.1\r\n\r\n%s", host, port, more);

    assert_works(fdio_write_all(fd, text, (size_t)len, &e), e);
}

static void expect(int fd, const char *wanted)
{
    char text[256] = "";

    unit_read_full(fd, text, strlen(wanted));
    assert_string_equal(text, wanted);
}

static void end(struct world *w, int fd, pid_t pid)
{
    close(fd);
    close(w->there);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void bytes_go_both_ways_and_ends_are_told(void **state)
{
    struct world w;
    pid_t pid;
    char byte;
    struct err e = ERR_INIT;

    (void)state;
    world_open(&w, "127.0.0.1");
    int fd = begin(&w, false, &pid);
    ask(fd, "127.0.0.1", w.port, "early");
    int there = accept(w.there, NULL, NULL);
    expect(fd, "HTTP/1.1 200 Connection established\r\n\r\n");
    expect(there, "early");
    assert_works(fdio_write_all(fd, "up", 2, &e), e);
    expect(there, "up");
    shutdown(fd, SHUT_WR);
    assert_int_equal(read(there, &byte, 1), 0);
    assert_works(fdio_write_all(there, "down", 4, &e), e);
    close(there);
    expect(fd, "down");
    assert_int_equal(read(fd, &byte, 1), 0);
    end(&w, fd, pid);
}

static void a_name_for_a_private_address_needs_the_operators_word(void **state)
{
    struct world w;
    pid_t pid;

    (void)state;
    world_open(&w, "localhost");
    int fd = begin(&w, false, &pid);
    ask(fd, "localhost", w.port, "");
    expect(fd, "HTTP/1.1 403 ");
    close(fd);
    waitpid(pid, NULL, 0);
    fd = begin(&w, true, &pid);
    ask(fd, "localhost", w.port, "");
    expect(fd, "HTTP/1.1 200 ");
    end(&w, fd, pid);
}

static void other_hosts_and_ports_are_refused(void **state)
{
    struct world w;
    pid_t pid;

    (void)state;
    world_open(&w, "127.0.0.1");
    int fd = begin(&w, true, &pid);
    ask(fd, "127.0.0.1", (uint16_t)(w.port ^ 1), "");
    expect(fd, "HTTP/1.1 403 ");
    end(&w, fd, pid);
}

static void the_budget_ends_a_connection(void **state)
{
    struct world w;
    pid_t pid;
    char data[4096] = "";
    struct err e = ERR_INIT;
    ssize_t n, got = 0;

    (void)state;
    world_open(&w, "127.0.0.1");
    w.budget.down = 10000;
    int fd = begin(&w, false, &pid);
    ask(fd, "127.0.0.1", w.port, "");
    int there = accept(w.there, NULL, NULL);
    /* The proxy may end before all is written to it. */
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    for (int i = 0; i < 8; i++)
        fdio_write_all(there, data, sizeof data, &e);
    while ((n = read(fd, data, sizeof data)) > 0)
        got += n;
    assert_true(got < 8 * (ssize_t)sizeof data);
    close(there);
    end(&w, fd, pid);
}

static void the_process_serves_until_it_is_killed(void **state)
{
    AUTO_FREE char *path = mem_printf("/tmp/sandcgi-proxy-%d", getpid());
    struct world w;
    struct err e = ERR_INIT;
    const struct sock_owner anybody = {.uid = (uid_t)-1, .gid = (gid_t)-1, .mode = 0600};

    (void)state;
    world_open(&w, "127.0.0.1");
    const struct index_rules rules = {.source = &w.source};
    int listen_fd = sock_listen(path, &anybody, &e);
    assert_true(listen_fd >= 0);
    pid_t pid = index_proxy_start(listen_fd, &rules, &e);
    close(listen_fd);
    assert_true(pid > 0);
    for (int i = 0; i < 3; i++) {
        int fd = sock_connect_unix(path, &e);
        ask(fd, "127.0.0.1", w.port, "");
        expect(fd, "HTTP/1.1 200 ");
        close(fd);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(sock_connect_unix(path, &e), -1);
    unlink(path);
    close(w.there);
}

static void a_client_ends_the_process_and_what_others_have_open(void **state)
{
    static const char close_all[] = "DELETE / HTTP/1.1\r\n\r\n";
    AUTO_FREE char *path = mem_printf("/tmp/sandcgi-proxy-%d", getpid());
    struct world w;
    char byte;
    struct err e = ERR_INIT;
    const struct sock_owner anybody = {.uid = (uid_t)-1, .gid = (gid_t)-1, .mode = 0600};

    (void)state;
    world_open(&w, "127.0.0.1");
    const struct index_rules rules = {.source = &w.source};
    int listen_fd = sock_listen(path, &anybody, &e);
    pid_t pid = index_proxy_start(listen_fd, &rules, &e);
    close(listen_fd);
    int open = sock_connect_unix(path, &e);
    ask(open, "127.0.0.1", w.port, "");
    expect(open, "HTTP/1.1 200 Connection established\r\n\r\n");
    int fd = sock_connect_unix(path, &e);
    assert_works(fdio_write_all(fd, close_all, sizeof close_all - 1, &e), e);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(sock_connect_unix(path, &e), -1);
    assert_int_equal(read(open, &byte, 1), 0);
    close(open);
    close(fd);
    unlink(path);
    close(w.there);
}

static int enter(void *source)
{
    struct err e = ERR_INIT;

    return index_proxy_enter(source, &e);
}

static void the_process_reaches_nothing_but_its_index(void **state)
{
    struct index_source source = {.n_hosts = 1, .hosts[0] = {.name = "localhost", .port = 443}};

    (void)state;
    assert_no_escape(enter, &source, NEEDS_INTERNET | NEEDS_CHILDREN);
}

UNIT_COMMAND(INDEX_PROXY_COMMAND, index_proxy_main)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bytes_go_both_ways_and_ends_are_told),
    cmocka_unit_test(a_name_for_a_private_address_needs_the_operators_word),
    cmocka_unit_test(other_hosts_and_ports_are_refused),
    cmocka_unit_test(the_budget_ends_a_connection),
    cmocka_unit_test(the_process_serves_until_it_is_killed),
    cmocka_unit_test(a_client_ends_the_process_and_what_others_have_open),
    cmocka_unit_test(the_process_reaches_nothing_but_its_index),
};
UNIT_TESTS(tests)
