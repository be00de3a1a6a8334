/*
 * Does a network keep what it promises? Found out from inside: a container on it sends a datagram
 * to its gateway, to private addresses and to another container, and sees what comes back. Silence
 * is not taken for a rule: the rules of nginx/setup/network.sh refuse with an ICMP message of their
 * own.
 */
#pragma once

#include "common/broker/spawn.h"

/* image: of any runner. -1: *e says what it does not keep, or why that could not be found out.
 * Takes a second or two. */
int network_probe(const struct spawner *s, const char *image, enum network_tier tier,
                  struct err *e);

/* The test's verdict on lines "ADDRESS WORD …" of "entry probe" (runners/common/probe.c): others
 * are the addresses of the other container. */
int network_probe_judge(enum network_tier tier, char *lines, const char *others, struct err *e);

/* As strings, separated by blanks: what the probe sends to, besides the other container. */
const char *network_probe_targets(enum network_tier tier);
