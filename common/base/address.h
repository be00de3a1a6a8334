/* Kinds of IP addresses, by a table of special ranges. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

enum address_kind {
    ADDRESS_PUBLIC,
    ADDRESS_SPECIAL, /* publicly routed, but without servers: relays, sinks, tests */
    ADDRESS_PRIVATE, /* private networks, loopback, documentation */
    ADDRESS_NEVER,   /* metadata services, link-local, multicast, unspecified, no IP at all */
};

/* An IPv4 address inside an IPv6 one (mapped, NAT64, 6to4) has its own kind. An address shorter
 * (len, in bytes) than its family's is ADDRESS_NEVER. */
enum address_kind address_kind_of(const struct sockaddr *address, socklen_t len);

/* Is it an IPv4 address inside an IPv6 one? */
bool address_is_translated(const struct sockaddr *address, socklen_t len);
