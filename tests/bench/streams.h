/*
 * What streams that wait cost everybody else: requests per second and their times with and without
 * so many open subscriptions/listen, turn by turn; and what one costs the hub in memory.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct streams_bench {
    const char *address, *token;
    uint64_t rounds;
    uint64_t duration_ms; /* of one measurement; a round has 24 */
    uint64_t streams;
    pid_t hub; /* 0: its memory cannot be looked at */
};

/* Measures and prints. */
void streams_bench_run(const struct streams_bench *b);
