/* A server without descriptors pauses, whichever way its connections come, and goes on. */
#include "config.h"

#include "common/base/acceptor.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 30

struct world {
    struct loop loop;
    int taken[CONNECTIONS];
    size_t n;
};

static void take(void *owner, int take_fd)
{
    struct world *w = owner;

    assert_true(w->n < CONNECTIONS);
    w->taken[w->n++] = take_fd;
}

static size_t turns(struct world *w, struct acceptor *a, int ms)
{
    struct deadline end = deadline_in_ms(ms);
    struct err e = ERR_INIT;
    size_t n = 0;

    for (; !deadline_passed(end); n++) {
        assert_true(loop_wait(&w->loop, deadline_min(end, a->again), NULL, &e) >= 0);
        acceptor_tick(a);
    }
    return n;
}

static void take_all(struct world *w, struct acceptor *a)
{
    struct rlimit before, few;
    struct err e = ERR_INIT;

    assert_works(loop_init(&w->loop, w, &e), e);
    assert_works(acceptor_open(a, &w->loop, &e), e);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    AUTO_FD int lowest = dup(a->fd); /* as many as are open, and some */
    few = (struct rlimit){(rlim_t)lowest + 10, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_true(turns(w, a, 800) < 40);
    assert_true(w->n > 0 && w->n < CONNECTIONS);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    turns(w, a, 800);
    assert_int_equal(w->n, CONNECTIONS);
    assert_int_equal(a->failure.kind, ERR_NONE);
    acceptor_close(a);
    loop_clear(&w->loop);
    for (size_t i = 0; i < w->n; i++)
        close(w->taken[i]);
}

static void without_descriptors_it_pauses_and_goes_on(void **state)
{
    char folder[PATH_MAX];
    struct world w = {.loop = LOOP_INIT};
    int clients[CONNECTIONS];
    struct err e = ERR_INIT;

    (void)state;
    unit_make_folder(folder);
    AUTO_FREE char *path = mem_printf("%s/s", folder);
    AUTO_FD int fd = sock_listen(path, NULL, &e);
    assert_true(fd >= 0);
    for (size_t i = 0; i < CONNECTIONS; i++)
        assert_true((clients[i] = sock_connect_unix(path, &e)) >= 0);
    struct acceptor a = ACCEPTOR_INIT(fd, false, take);
    take_all(&w, &a);
    for (size_t i = 0; i < CONNECTIONS; i++)
        close(clients[i]);
    unit_remove_tree(folder);
}

static void the_same_where_connections_are_handed_over(void **state)
{
    struct world w = {.loop = LOOP_INIT};
    int pair[2], clients[CONNECTIONS];
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    for (size_t i = 0; i < CONNECTIONS; i++)
        assert_true((clients[i] = sock_connect_over(pair[1], &e)) >= 0);
    struct acceptor a = ACCEPTOR_INIT(pair[0], true, take);
    take_all(&w, &a);
    for (size_t i = 0; i < CONNECTIONS; i++)
        close(clients[i]);
    close(pair[0]);
    close(pair[1]);
}

static void a_socket_that_does_not_listen_is_a_failure(void **state)
{
    struct world w = {.loop = LOOP_INIT};
    struct err e = ERR_INIT;
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    close(pair[1]);
    struct acceptor a = ACCEPTOR_INIT(pair[0], false, take);
    assert_works(loop_init(&w.loop, &w, &e), e);
    assert_works(acceptor_open(&a, &w.loop, &e), e);
    assert_true(turns(&w, &a, 100) < 10);
    assert_int_equal(a.failure.kind, ERR_IO);
    loop_clear(&w.loop);
    close(pair[0]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(without_descriptors_it_pauses_and_goes_on),
    cmocka_unit_test(the_same_where_connections_are_handed_over),
    cmocka_unit_test(a_socket_that_does_not_listen_is_a_failure),
};
UNIT_TESTS(tests)
