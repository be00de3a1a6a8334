#include "config.h"

#include "common/base/address.h"

#include "common/base/auto.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

struct range {
    const char *base;
    unsigned bits;
    enum address_kind kind;
};

/* IANA's special-purpose registry, and the services of clouds in public ranges. The first match
 * counts; all other addresses are public. */
static const struct range v4[] = {
    {"0.0.0.0", 8, ADDRESS_NEVER},          /* this network; 0.0.0.0 is this machine */
    {"169.254.0.0", 16, ADDRESS_NEVER},     /* link-local, most clouds' metadata */
    {"100.100.100.200", 32, ADDRESS_NEVER}, /* a cloud's metadata, as the next two */
    {"168.63.129.16", 32, ADDRESS_NEVER},   {"192.0.0.192", 32, ADDRESS_NEVER},
    {"224.0.0.0", 3, ADDRESS_NEVER},       /* multicast, reserved, broadcast */
    {"10.0.0.0", 8, ADDRESS_PRIVATE},      /* private */
    {"100.64.0.0", 10, ADDRESS_PRIVATE},   /* shared by carriers */
    {"127.0.0.0", 8, ADDRESS_PRIVATE},     /* loopback */
    {"172.16.0.0", 12, ADDRESS_PRIVATE},   /* private */
    {"192.0.0.0", 24, ADDRESS_PRIVATE},    /* protocol assignments */
    {"192.0.2.0", 24, ADDRESS_PRIVATE},    /* documentation */
    {"192.168.0.0", 16, ADDRESS_PRIVATE},  /* private */
    {"198.18.0.0", 15, ADDRESS_PRIVATE},   /* benchmarks */
    {"198.51.100.0", 24, ADDRESS_PRIVATE}, /* documentation */
    {"203.0.113.0", 24, ADDRESS_PRIVATE},  /* documentation */
    {"192.31.196.0", 24, ADDRESS_SPECIAL}, /* AS112 */
    {"192.52.193.0", 24, ADDRESS_SPECIAL}, /* AMT */
    {"192.88.99.0", 24, ADDRESS_SPECIAL},  /* relays of 6to4 */
    {"192.175.48.0", 24, ADDRESS_SPECIAL}, /* AS112 */
};

/* As above, but other addresses, which are not in use, are ADDRESS_NEVER. */
static const struct range v6[] = {
    {"::1", 128, ADDRESS_PRIVATE},
    {"fd00:ec2::", 32, ADDRESS_NEVER},       /* a cloud's metadata */
    {"fc00::", 7, ADDRESS_PRIVATE},          /* unique local */
    {"2001:db8::", 32, ADDRESS_PRIVATE},     /* documentation */
    {"2001::", 23, ADDRESS_SPECIAL},         /* protocol assignments; Teredo, ORCHID */
    {"2620:4f:8000::", 48, ADDRESS_SPECIAL}, /* AS112 */
    {"3ffe::", 16, ADDRESS_SPECIAL},         /* the old test network */
    {"3fff::", 20, ADDRESS_SPECIAL},         /* documentation */
    {"2000::", 3, ADDRESS_PUBLIC},           /* all unicast addresses in use */
};

/* The offset of an IPv4 address inside an IPv6 one: mapped, NAT64, 6to4. */
static const struct translation {
    const char *base;
    unsigned bits, at;
} translations[] = {{"::ffff:0:0", 96, 12}, {"64:ff9b::", 96, 12}, {"2002::", 16, 2}};

static bool within(const uint8_t *address, int family, const char *base_text, unsigned bits)
{
    uint8_t base[16];
    unsigned whole = bits / 8, rest = bits % 8;

    if (inet_pton(family, base_text, base) != 1 || memcmp(address, base, whole) != 0)
        return false;
    return rest == 0 || (address[whole] ^ base[whole]) >> (8 - rest) == 0;
}

static enum address_kind kind_in(const uint8_t *address, int family, const struct range *ranges,
                                 size_t n, enum address_kind otherwise)
{
    for (size_t i = 0; i < n; i++)
        if (within(address, family, ranges[i].base, ranges[i].bits))
            return ranges[i].kind;
    return otherwise;
}

static enum address_kind kind_of_v4(const uint8_t *address)
{
    return kind_in(address, AF_INET, v4, ARRAY_LEN(v4), ADDRESS_PUBLIC);
}

/* Its 16 bytes; NULL: it is no IPv6 address. */
static const uint8_t *bytes_v6(const struct sockaddr *address, socklen_t len)
{
    if (address->sa_family != AF_INET6 || len < sizeof(struct sockaddr_in6))
        return NULL;
    return ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr.s6_addr;
}

static const struct translation *translation_of(const uint8_t *v6_bytes)
{
    for (size_t i = 0; i < ARRAY_LEN(translations); i++)
        if (within(v6_bytes, AF_INET6, translations[i].base, translations[i].bits))
            return &translations[i];
    return NULL;
}

enum address_kind address_kind_of(const struct sockaddr *address, socklen_t len)
{
    const struct sockaddr_in *in = (const void *)address;
    const uint8_t *bytes = bytes_v6(address, len);

    if (address->sa_family == AF_INET && len >= sizeof *in)
        return kind_of_v4((const uint8_t *)&in->sin_addr);
    if (!bytes)
        return ADDRESS_NEVER;
    const struct translation *inside = translation_of(bytes);
    if (inside)
        return kind_of_v4(bytes + inside->at);
    return kind_in(bytes, AF_INET6, v6, ARRAY_LEN(v6), ADDRESS_NEVER);
}

bool address_is_translated(const struct sockaddr *address, socklen_t len)
{
    const uint8_t *bytes = bytes_v6(address, len);

    return bytes && translation_of(bytes);
}
