/*
 * Does the engine bound what a program takes? Found out from inside: in a container with small
 * limits one command takes more memory than that, another starts more processes. Engines take
 * limits without a word that their cgroups cannot hold (rootless, cgroup v1).
 */
#pragma once

#include "common/broker/spawn.h"

enum limits_trial { LIMITS_MEMORY, LIMITS_PIDS, LIMITS_TRIALS };

/* What one trial proves, from what it has printed and how it ended (died: probe_run's error;
 * ERR_NONE: it ended). LIMITS_UNKNOWN: *e says why. */
enum limits_verdict limits_judge(enum limits_trial trial, const char *printed,
                                 const struct err *died, struct err *e);

/* image: of any runner. Unless they hold, *e says which do not, or why that could not be found out.
 * Takes a second or two. */
enum limits_verdict limits_probe(const struct spawner *s, const char *image, struct err *e);
