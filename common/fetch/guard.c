#include "config.h"

#include "common/fetch/guard.h"

#include "common/base/auto.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HTTPS_PORT 443

struct range4 {
    uint8_t address[4];
    unsigned bits;
};

struct range6 {
    uint8_t address[16]; /* what is left out is zero */
    unsigned bits;
};

/* IANA's special-purpose registry, and what clouds put into public ranges. */
static const struct range4 refused4[] = {
    {{0, 0, 0, 0}, 8},        /* this network; 0.0.0.0 is this machine */
    {{10, 0, 0, 0}, 8},       /* private */
    {{100, 64, 0, 0}, 10},    /* shared by carriers; a metadata service (100.100.100.200) */
    {{127, 0, 0, 0}, 8},      /* loopback */
    {{168, 63, 129, 16}, 32}, /* a metadata service */
    {{169, 254, 0, 0}, 16},   /* link-local; metadata services (169.254.169.254, 169.254.170.2) */
    {{172, 16, 0, 0}, 12},    /* private */
    {{192, 0, 0, 0}, 24},     /* protocol assignments; a metadata service (192.0.0.192) */
    {{192, 0, 2, 0}, 24},     /* documentation */
    {{192, 31, 196, 0}, 24},  /* AS112 */
    {{192, 52, 193, 0}, 24},  /* AMT */
    {{192, 88, 99, 0}, 24},   /* relays of 6to4 */
    {{192, 168, 0, 0}, 16},   /* private */
    {{192, 175, 48, 0}, 24},  /* AS112 */
    {{198, 18, 0, 0}, 15},    /* benchmarks */
    {{198, 51, 100, 0}, 24},  /* documentation */
    {{203, 0, 113, 0}, 24},   /* documentation */
    {{224, 0, 0, 0}, 4},      /* multicast */
    {{240, 0, 0, 0}, 4},      /* reserved, broadcast */
};

/* All unicast addresses in use are in here, which leaves out loopback, mapped and translated IPv4
 * (::ffff:0:0/96, 64:ff9b::/96), unique local, link-local and multicast ones. */
static const struct range6 public6 = {{0x20}, 3};

static const struct range6 refused6[] = {
    {{0x20, 0x01, 0x00}, 23},          /* protocol assignments; Teredo, ORCHID */
    {{0x20, 0x01, 0x0d, 0xb8}, 32},    /* documentation */
    {{0x20, 0x02}, 16},                /* 6to4: an IPv4 address within */
    {{0x26, 0x20, 0, 0x4f, 0x80}, 48}, /* AS112 */
    {{0x3f, 0xfe}, 16},                /* the old test network */
    {{0x3f, 0xff, 0x00}, 20},          /* documentation */
};

static bool begins_with(const uint8_t *address, const uint8_t *range, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;

    if (memcmp(address, range, whole) != 0)
        return false;
    return rest == 0 || (address[whole] ^ range[whole]) >> (8 - rest) == 0;
}

static bool is_public4(const uint8_t address[4])
{
    for (size_t i = 0; i < ARRAY_LEN(refused4); i++)
        if (begins_with(address, refused4[i].address, refused4[i].bits))
            return false;
    return true;
}

static bool is_public6(const uint8_t address[16])
{
    if (!begins_with(address, public6.address, public6.bits))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(refused6); i++)
        if (begins_with(address, refused6[i].address, refused6[i].bits))
            return false;
    return true;
}

static void free_interfaces(struct ifaddrs **list)
{
    if (*list)
        freeifaddrs(*list);
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    if (!b || a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)(const void *)a)->sin_addr,
                      &((const struct sockaddr_in *)(const void *)b)->sin_addr, 4) == 0;
    return memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr, 16) == 0;
}

/* A public address of this machine leads to services that trust it. Not knowing our addresses is no
 * reason to go on. */
static bool is_own(const struct sockaddr *address)
{
    AUTO(free_interfaces) struct ifaddrs *list = NULL;

    if (getifaddrs(&list) < 0)
        return true;
    for (const struct ifaddrs *one = list; one; one = one->ifa_next)
        if (same_address(address, one->ifa_addr))
            return true;
    return false;
}

static bool is_public(const struct sockaddr *address, socklen_t len, uint16_t *out_port)
{
    if (address->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
        const struct sockaddr_in *in = (const void *)address;
        *out_port = ntohs(in->sin_port);
        return is_public4((const uint8_t *)&in->sin_addr);
    }
    if (address->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6)) {
        const struct sockaddr_in6 *in = (const void *)address;
        *out_port = ntohs(in->sin6_port);
        return is_public6(in->sin6_addr.s6_addr);
    }
    return false;
}

int guard_check(const struct sockaddr *address, socklen_t len, struct err *e)
{
    uint16_t port = 0;

    if (!is_public(address, len, &port) || is_own(address))
        return err_set(e, ERR_DENIED,
                       "url leads to an address that is private, local or reserved; only public "
                       "servers are fetched from");
    if (port != HTTPS_PORT)
        return err_set(e, ERR_DENIED, "url must use port %d", HTTPS_PORT);
    return 0;
}
