/* Which addresses the names of an index may lead to. */
#ifndef SANDCGI_INDEX_ADDRESS_H
#define SANDCGI_INDEX_ADDRESS_H

struct sockaddr;

enum index_address {
    INDEX_ADDRESS_PUBLIC,
    INDEX_ADDRESS_PRIVATE, /* of a company's own network, or this machine */
    INDEX_ADDRESS_NEVER,   /* metadata services, link-local, multicast, unspecified, no IP at all */
};

/* An IPv4 address inside an IPv6 one (mapped, NAT64, 6to4) counts as what it is itself. */
enum index_address index_address_kind(const struct sockaddr *address);

#endif
