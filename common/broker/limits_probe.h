/*
 * Does the engine bound what a program takes? Found out from inside: in a container with small
 * limits one command takes more memory than that, another starts more processes. Engines take
 * limits without a word that their cgroups cannot hold (rootless, cgroup v1).
 */
#pragma once

#include "common/broker/spawn.h"

/* image: of any runner. -1: ERR_REFUSED and *e says which limits do not hold; otherwise why that
 * could not be found out. Takes a second or two. */
int limits_probe(const struct spawner *s, const char *image, struct err *e);
