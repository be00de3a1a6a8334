#include "config.h"

#include "common/fetch/guard.h"

#include "common/base/address.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HTTPS_PORT 443
#define DNS_PORT   53

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

/* A public address of this machine leads to services that trust it. True when our addresses are
 * unknown. */
static bool is_own(const struct sockaddr *address)
{
    struct ifaddrs *list;

    if (getifaddrs(&list) < 0)
        return true;
    const struct ifaddrs *one = list;
    while (one && !same_address(address, one->ifa_addr))
        one = one->ifa_next;
    freeifaddrs(list);
    return one != NULL;
}

const uint16_t *guard_ports(void)
{
    static const uint16_t ports[] = {HTTPS_PORT, DNS_PORT, 0};

    return ports;
}

int guard_check(const struct sockaddr *address, socklen_t len, struct err *e)
{
    /* What a translator makes of an address is unknown. */
    if (address_kind_of(address, len) != ADDRESS_PUBLIC || address_is_translated(address, len) ||
        is_own(address))
        return err_set(e, ERR_DENIED,
                       "url leads to an address that is private, local or reserved; only public "
                       "servers are fetched from");
    in_port_t port = address->sa_family == AF_INET
                         ? ((const struct sockaddr_in *)(const void *)address)->sin_port
                         : ((const struct sockaddr_in6 *)(const void *)address)->sin6_port;
    if (ntohs(port) != HTTPS_PORT)
        return err_set(e, ERR_DENIED, "url must use port %d", HTTPS_PORT);
    return 0;
}
