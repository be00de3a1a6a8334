/* H-55: addresses that nothing is fetched from, and what a fetch that is taken over cannot do. */
#include "config.h"

#include "common/fetch/fetch.h"
#include "common/fetch/guard.h"
#include "tests/unit/escapes.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

static enum err_kind verdict(const char *text, uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct err e = ERR_INIT;
    int rc;

    if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
        rc = guard_check((struct sockaddr *)&in, sizeof in, &e);
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
        rc = guard_check((struct sockaddr *)&in6, sizeof in6, &e);
    }
    assert_int_equal(rc, e.kind == ERR_NONE ? 0 : -1);
    return e.kind;
}

static void public_addresses_pass(void **state)
{
    static const char *const addresses[] = {
        "1.1.1.1",         "8.8.8.8",         "9.255.255.255",   "11.0.0.0",       "93.184.216.34",
        "100.63.255.255",  "100.128.0.0",     "126.255.255.255", "128.0.0.0",      "168.63.129.15",
        "168.63.129.17",   "169.253.255.255", "169.255.0.0",     "172.15.255.255", "172.32.0.0",
        "192.0.1.0",       "192.167.255.255", "192.169.0.0",     "198.17.255.255", "198.20.0.0",
        "223.255.255.255", "2000::1",         "2606:4700::1111", "2001:200::1",    "2001:db7::1",
        "2001:db9::1",     "2003::1",         "2a00::1",         "3ffd::1",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++)
        if (verdict(addresses[i], 443) != ERR_NONE)
            fail_msg("%s is refused", addresses[i]);
}

static void all_others_are_refused(void **state)
{
    static const char *const addresses[] = {
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.0",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "168.63.129.16",
        "169.254.0.1",
        "169.254.169.254",
        "169.254.170.2",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "192.168.255.255",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:10::1",
        "2001:1ff::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::1",
        "3fff::1",
        "3ffe::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fdff::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "ffff::1",
        "2620:4f:8000::1",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++)
        if (verdict(addresses[i], 443) != ERR_DENIED)
            fail_msg("%s passes", addresses[i]);
}

static void only_the_port_of_https_passes(void **state)
{
    static const uint16_t ports[] = {0, 22, 80, 442, 444, 2375, 8443, 65535};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
        assert_int_equal(verdict("8.8.8.8", ports[i]), ERR_DENIED);
        assert_int_equal(verdict("2606:4700::1111", ports[i]), ERR_DENIED);
    }
}

static void this_machines_own_addresses_are_refused(void **state)
{
    struct ifaddrs *list;

    (void)state;
    assert_int_equal(getifaddrs(&list), 0);
    for (const struct ifaddrs *one = list; one; one = one->ifa_next) {
        struct sockaddr_storage address = {0};
        struct err e = ERR_INIT;
        int family = one->ifa_addr ? one->ifa_addr->sa_family : AF_UNSPEC;
        if (family != AF_INET && family != AF_INET6)
            continue;
        memcpy(&address, one->ifa_addr,
               family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
        ((struct sockaddr_in *)&address)->sin_port = htons(443);
        assert_int_equal(guard_check((struct sockaddr *)&address, sizeof address, &e), -1);
        assert_int_equal(e.kind, ERR_DENIED);
    }
    freeifaddrs(list);
}

static void what_is_no_internet_address_is_refused(void **state)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "/var/run/docker.sock"};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(443)};
    struct err e = ERR_INIT;

    (void)state;
    inet_pton(AF_INET, "8.8.8.8", &in.sin_addr);
    assert_int_equal(guard_check((struct sockaddr *)&un, sizeof un, &e), -1);
    assert_int_equal(e.kind, ERR_DENIED);
    assert_int_equal(guard_check((struct sockaddr *)&in, sizeof in - 1, &e), -1);
}

static int enter(void *unused)
{
    struct err e = ERR_INIT;

    (void)unused;
    return fetch_process_enter(1000, &e);
}

static void the_process_reaches_nothing_but_https_servers(void **state)
{
    (void)state;
    assert_no_escape(enter, NULL, NEEDS_INTERNET);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(public_addresses_pass),
    cmocka_unit_test(all_others_are_refused),
    cmocka_unit_test(only_the_port_of_https_passes),
    cmocka_unit_test(this_machines_own_addresses_are_refused),
    cmocka_unit_test(what_is_no_internet_address_is_refused),
    cmocka_unit_test(the_process_reaches_nothing_but_https_servers),
};
UNIT_TESTS(tests)
