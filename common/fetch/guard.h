/*
 * Which addresses may be fetched from: public ones, at port 443. The address that a socket is about
 * to be connected to is checked, so that no spelling, name, redirect or second answer of a name
 * server evades it.
 */
#pragma once

#include "common/base/err.h"

#include <stdint.h>
#include <sys/socket.h>

/* 0, or -1 with ERR_DENIED for private, local, shared, link-local, multicast, reserved and
 * translated addresses, those of clouds' metadata services, this machine's own, other ports, and
 * whatever is neither IPv4 nor IPv6. */
int guard_check(const struct sockaddr *address, socklen_t len, struct err *e);

/* The TCP ports that fetching needs, its own and the name servers'; 0 at the end. */
const uint16_t *guard_ports(void);
