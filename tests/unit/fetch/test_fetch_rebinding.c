/* H-55: name servers that answer differently each time, and redirects inward, against the real
 * guard. The name server is this test's, and one public address leads to the local server. */
#include "config.h"

#include "common/fetch/fetch.h"
#include "tests/unit/fetch/fetch_server.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OURS     "93.184.216.34"
#define DEAD     "93.184.216.35"
#define METADATA "169.254.169.254"
#define NAMED    "https://" REBOUND

/* What names lead to, an answer per question, each of one or two addresses; and who was connected
 * to. */
static struct {
    bool on;
    const char *answers[3][2];
    size_t questions, connects, inward;
} world;

static void name_server_says(const char *first, const char *first_too, const char *second)
{
    memset(&world, 0, sizeof world);
    world.on = true;
    world.answers[0][0] = first;
    world.answers[0][1] = first_too;
    world.answers[1][0] = second;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    struct addrinfo numeric = hints ? *hints : (struct addrinfo){.ai_socktype = SOCK_STREAM};

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!world.on)
        return real(node, service, hints, out);
    const char *const *answer = world.answers[world.questions++];
    if (!answer[0])
        return EAI_NONAME;
    numeric.ai_flags = AI_NUMERICHOST;
    int rc = real(answer[0], service, &numeric, out);
    if (rc == 0 && answer[1])
        rc = real(answer[1], service, &numeric, &(*out)->ai_next);
    return rc;
}

static bool is(const struct sockaddr_in *in, const char *address)
{
    struct in_addr want;

    inet_pton(AF_INET, address, &want);
    return in->sin_family == AF_INET && in->sin_addr.s_addr == want.s_addr;
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
    const struct sockaddr_in *in = (const void *)address;
    const struct sockaddr_in local = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)server.port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (!world.on)
        return (int)syscall(SYS_connect, fd, address, len);
    world.connects += in->sin_family == AF_INET;
    if (is(in, OURS))
        return (int)syscall(SYS_connect, fd, &local, sizeof local);
    if (is(in, DEAD)) {
        errno = ECONNREFUSED;
        return -1;
    }
    world.inward++;
    return (int)syscall(SYS_connect, fd, address, len);
}

static int fetch(const char *url, struct err *e)
{
    const struct fetch_limits limits = {
        .max_bytes = 1000, .timeout_ms = 20000, .ca_file = server.ca};
    AUTO_FD int fd = memfd_create("fetched", MFD_CLOEXEC);

    return fetch_url(url, fd, &limits, e);
}

static void assert_refused(const char *url, size_t connects)
{
    struct err e = ERR_INIT;

    assert_int_equal(fetch(url, &e), -1);
    if (e.kind != ERR_DENIED)
        fail_msg("%s: %s: %s", url, err_kind_name(e.kind), e.text);
    assert_int_equal(world.connects, connects);
    assert_int_equal(world.inward, 0);
}

static void a_name_that_leads_inward_the_second_time_is_refused_then(void **state)
{
    struct err e = ERR_INIT;

    (void)state;
    serve("plain", "200 OK\r\nContent-Length: 5", "hello");
    name_server_says(OURS, NULL, "127.0.0.1");
    if (fetch(NAMED "/plain", &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(world.connects, 1);
    assert_refused(NAMED "/plain", 1);
    assert_int_equal(world.questions, 2);
}

static void the_inward_one_of_two_addresses_is_refused(void **state)
{
    (void)state;
    name_server_says(DEAD, "127.0.0.1", NULL);
    assert_refused(NAMED "/plain", 1);
}

static void a_redirect_to_a_name_that_leads_inward_is_refused(void **state)
{
    static const char *const inward[] = {"127.0.0.1", METADATA, "10.0.0.1", "::1",
                                         "::ffff:10.0.0.1"};

    (void)state;
    serve_redirect("away", "https://elsewhere.example/secret");
    for (size_t i = 0; i < ARRAY_LEN(inward); i++) {
        name_server_says(OURS, NULL, inward[i]);
        assert_refused(NAMED "/away", 1);
        assert_int_equal(world.questions, 2);
    }
}

static void a_redirect_to_the_metadata_address_is_refused(void **state)
{
    (void)state;
    serve_redirect("metadata", "https://" METADATA "/latest/meta-data/");
    name_server_says(OURS, NULL, METADATA);
    assert_refused(NAMED "/metadata", 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_name_that_leads_inward_the_second_time_is_refused_then),
    cmocka_unit_test(the_inward_one_of_two_addresses_is_refused),
    cmocka_unit_test(a_redirect_to_a_name_that_leads_inward_is_refused),
    cmocka_unit_test(a_redirect_to_the_metadata_address_is_refused),
};
UNIT_TESTS_IN(tests, start_server, stop_server)
