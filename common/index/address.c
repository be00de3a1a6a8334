#include "config.h"

#include "common/index/address.h"

#include "common/base/auto.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct range {
    const char *base;
    unsigned bits;
    enum index_address kind;
};

/* The first that fits counts. */
static const struct range v4[] = {
    {"0.0.0.0", 8, INDEX_ADDRESS_NEVER},
    {"169.254.0.0", 16, INDEX_ADDRESS_NEVER},     /* link-local, most clouds' metadata */
    {"100.100.100.200", 32, INDEX_ADDRESS_NEVER}, /* a cloud's metadata, as the next */
    {"168.63.129.16", 32, INDEX_ADDRESS_NEVER},
    {"192.0.0.192", 32, INDEX_ADDRESS_NEVER},
    {"224.0.0.0", 3, INDEX_ADDRESS_NEVER}, /* multicast, reserved, broadcast */
    {"10.0.0.0", 8, INDEX_ADDRESS_PRIVATE},
    {"100.64.0.0", 10, INDEX_ADDRESS_PRIVATE},
    {"127.0.0.0", 8, INDEX_ADDRESS_PRIVATE},
    {"172.16.0.0", 12, INDEX_ADDRESS_PRIVATE},
    {"192.0.0.0", 24, INDEX_ADDRESS_PRIVATE},
    {"192.0.2.0", 24, INDEX_ADDRESS_PRIVATE},
    {"192.168.0.0", 16, INDEX_ADDRESS_PRIVATE},
    {"198.18.0.0", 15, INDEX_ADDRESS_PRIVATE},
    {"198.51.100.0", 24, INDEX_ADDRESS_PRIVATE},
    {"203.0.113.0", 24, INDEX_ADDRESS_PRIVATE},
};
static const struct range v6[] = {
    {"::1", 128, INDEX_ADDRESS_PRIVATE},
    {"fd00:ec2::", 32, INDEX_ADDRESS_NEVER}, /* a cloud's metadata */
    {"fc00::", 7, INDEX_ADDRESS_PRIVATE},
    {"2001:db8::", 32, INDEX_ADDRESS_PRIVATE},
    {"2000::", 3, INDEX_ADDRESS_PUBLIC}, /* all that is public; the rest is special */
};

/* Where an IPv4 address stands in an IPv6 one. */
static const struct {
    const char *base;
    unsigned bits, at;
} embedded[] = {{"::ffff:0:0", 96, 12}, {"64:ff9b::", 96, 12}, {"2002::", 16, 2}};

static bool within(const uint8_t *address, int family, const char *base_text, unsigned bits)
{
    uint8_t base[16];
    unsigned whole = bits / 8, rest = bits % 8;

    if (inet_pton(family, base_text, base) != 1 || memcmp(address, base, whole) != 0)
        return false;
    return rest == 0 || (address[whole] ^ base[whole]) >> (8 - rest) == 0;
}

static enum index_address kind_of(const uint8_t *address, int family, const struct range *ranges,
                                  size_t n, enum index_address otherwise)
{
    for (size_t i = 0; i < n; i++)
        if (within(address, family, ranges[i].base, ranges[i].bits))
            return ranges[i].kind;
    return otherwise;
}

static enum index_address kind_of_v4(const uint8_t *address)
{
    return kind_of(address, AF_INET, v4, ARRAY_LEN(v4), INDEX_ADDRESS_PUBLIC);
}

enum index_address index_address_kind(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return kind_of_v4(
            (const uint8_t *)&((const struct sockaddr_in *)(const void *)address)->sin_addr);
    if (address->sa_family != AF_INET6)
        return INDEX_ADDRESS_NEVER;
    const uint8_t *bytes = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr.s6_addr;
    for (size_t i = 0; i < ARRAY_LEN(embedded); i++)
        if (within(bytes, AF_INET6, embedded[i].base, embedded[i].bits))
            return kind_of_v4(bytes + embedded[i].at);
    return kind_of(bytes, AF_INET6, v6, ARRAY_LEN(v6), INDEX_ADDRESS_NEVER);
}
