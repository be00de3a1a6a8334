/*
 * Which addresses may be fetched from: those of the public internet, at port 443. It checks the
 * very address that a socket is about to be connected to, so that no spelling of an address, no
 * name, no redirect and no second answer of a name server gets around it.
 */
#ifndef SANDCGI_FETCH_GUARD_H
#define SANDCGI_FETCH_GUARD_H

#include "common/base/err.h"

#include <sys/socket.h>

/* 0, or -1 with ERR_DENIED for private, local, shared, link-local, multicast, reserved and
 * translated addresses, those of clouds' metadata services, this machine's own, other ports, and
 * whatever is neither IPv4 nor IPv6. */
int guard_check(const struct sockaddr *address, socklen_t len, struct err *e);

#endif
