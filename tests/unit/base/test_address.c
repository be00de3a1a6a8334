#include "config.h"

#include "common/base/address.h"
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

static enum address_kind kind(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return address_kind_of((const struct sockaddr *)&v4, sizeof v4);
    if (inet_pton(AF_INET6, text, &v6.sin6_addr) != 1)
        fail_msg("%s is no address", text);
    return address_kind_of((const struct sockaddr *)&v6, sizeof v6);
}

static void every_address_is_of_its_kind(void **state)
{
    static const char *const public[] = {
        "1.1.1.1",      "151.101.0.223",  "172.32.0.1",       "100.128.0.1",     "223.255.255.255",
        "2606:4700::1", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1", "11.0.0.0"};
    static const char *const special[] = {
        "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.175.48.1",    "2001::1",
        "2001:1ff::1",  "3ffe::1",      "3fff::1",     "2620:4f:8000::1", "::ffff:192.88.99.1"};
    static const char *const private[] = {
        "10.1.2.3",       "127.0.0.1",  "172.16.0.1",       "172.31.9.9",
        "192.168.0.1",    "100.64.0.1", "198.18.0.1",       "::1",
        "fc00::1",        "fd12:3::1",  "::ffff:127.0.0.1", "64:ff9b::a01:203",
        "2002:a01:203::", "2001:db8::1"};
    static const char *const never[] = {"0.0.0.0",
                                        "169.254.169.254",
                                        "169.254.170.2",
                                        "100.100.100.200",
                                        "168.63.129.16",
                                        "224.0.0.1",
                                        "255.255.255.255",
                                        "240.0.0.1",
                                        "::",
                                        "fe80::1",
                                        "ff02::1",
                                        "fd00:ec2::254",
                                        "::ffff:0.0.0.0",
                                        "::ffff:169.254.1.1",
                                        "64:ff9b::a9fe:a9fe",
                                        "2002:a9fe:a9fe::1",
                                        "192.0.0.192",
                                        "64:ff9b:1::1",
                                        "::1.2.3.4"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(public); i++)
        if (kind(public[i]) != ADDRESS_PUBLIC)
            fail_msg("%s is not public", public[i]);
    for (size_t i = 0; i < ARRAY_LEN(special); i++)
        if (kind(special[i]) != ADDRESS_SPECIAL)
            fail_msg("%s is not special", special[i]);
    for (size_t i = 0; i < ARRAY_LEN(private); i++)
        if (kind(private[i]) != ADDRESS_PRIVATE)
            fail_msg("%s is not private", private[i]);
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        if (kind(never[i]) != ADDRESS_NEVER)
            fail_msg("%s is not refused", never[i]);
}

static void what_is_no_ip_is_refused(void **state)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    (void)state;
    assert_int_equal(address_kind_of((const struct sockaddr *)&a, sizeof a), ADDRESS_NEVER);
}

static void an_address_cut_short_is_refused(void **state)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    (void)state;
    assert_int_equal(inet_pton(AF_INET, "1.1.1.1", &v4.sin_addr), 1);
    assert_int_equal(inet_pton(AF_INET6, "2606:4700::1", &v6.sin6_addr), 1);
    assert_int_equal(address_kind_of((const struct sockaddr *)&v4, sizeof v4 - 1), ADDRESS_NEVER);
    assert_int_equal(address_kind_of((const struct sockaddr *)&v6, sizeof v6 - 1), ADDRESS_NEVER);
}

static bool translated(const char *text)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return address_is_translated((const struct sockaddr *)&v6, sizeof v6);
}

static void a_translated_address_is_known(void **state)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};

    (void)state;
    assert_true(translated("::ffff:1.1.1.1"));
    assert_true(translated("64:ff9b::101:101"));
    assert_true(translated("2002:101:101::1"));
    assert_false(translated("2606:4700::1"));
    assert_false(translated("::1.2.3.4"));
    assert_false(address_is_translated((const struct sockaddr *)&v4, sizeof v4));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_address_is_of_its_kind),
    cmocka_unit_test(what_is_no_ip_is_refused),
    cmocka_unit_test(an_address_cut_short_is_refused),
    cmocka_unit_test(a_translated_address_is_known),
};
UNIT_TESTS(tests)
