/*
 * Whether the machine's memory holds one more program. Limits are ceilings, of which most programs
 * take little: what is free tells what those that run have taken, and how it falls whether they
 * still take more. Plain data: the clock and the figures are parameters.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_YOUNG_MS                                                                            \
    500 /* for so long a program counts with its limit: nothing is known of it */
#define MEMORY_LOOK_MS  250 /* between looks, while a run waits */
#define MEMORY_STALE_MS 50  /* older figures are of no use */

struct memory_look {
    int64_t at_ms; /* 0: there was none */
    uint64_t free; /* bytes, above the reserve */
};

struct memory_room {
    uint64_t limit;   /* of a program, bytes */
    uint64_t reserve; /* of the machine; 0: everything fits */
    struct memory_look latest;
    struct memory_look marks[2]; /* MEMORY_LOOK_MS apart at least */
};

struct memory_programs {
    size_t running;
    size_t young; /* of these, up to MEMORY_YOUNG_MS */
};

/* Is a new look needed? */
bool memory_room_is_stale(const struct memory_room *r, int64_t now_ms);
void memory_room_look(struct memory_room *r, uint64_t available, int64_t now_ms);

/*
 * The only program always fits. Another one fits when all could reach their limits; or when the
 * young ones and it could, and nothing has been taken lately: then the others have what they need.
 */
bool memory_room_fits(const struct memory_room *r, struct memory_programs programs);
