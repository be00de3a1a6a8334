/* The parts of warm.so, for the files beside this one only. */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <stddef.h>
#include <stdint.h>

/* As in runners/common/entry.h. */
#define HOOK_FD  3
#define FORK_FDS 4

/* template.c: blocks what programs can send to a template. */
void template_block_signals(void) __attribute__((visibility("hidden")));

/* bun.c, for runners/workbench/typescript/warm.mjs. Forks whenever the entry program asks for it.
 * Returns in a child, when its program has come: the length of the packet G, of size bytes at most.
 * A process that cannot be forked ends. */
int sandbox_child(char *packet, size_t size);
/* A seed for random numbers, from the kernel. */
uint32_t sandbox_seed(void);
