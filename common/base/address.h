/* Kinds of IP addresses: one table of special ranges, for code that connects on behalf of others.
 */
#ifndef SANDCGI_BASE_ADDRESS_H
#define SANDCGI_BASE_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

enum address_kind {
    ADDRESS_PUBLIC,
    ADDRESS_SPECIAL, /* routed in the public internet, yet not a server's: relays, sinks, tests */
    ADDRESS_PRIVATE, /* of a company's own network, of this machine, of documentation */
    ADDRESS_NEVER,   /* metadata services, link-local, multicast, unspecified, no IP at all */
};

/* An IPv4 address inside an IPv6 one (mapped, NAT64, 6to4) has its own kind. An address shorter
 * (len, in bytes) than its family's is ADDRESS_NEVER. */
enum address_kind address_kind_of(const struct sockaddr *address, socklen_t len);

/* Such an IPv4 address inside an IPv6 one. */
bool address_is_translated(const struct sockaddr *address, socklen_t len);

#endif
