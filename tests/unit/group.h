/*
 * Groups of tests, as main.c runs them: each in a process of its own, so that a crash, a changed
 * account or limit, and what it leaves behind stay in it. UNIT_TESTS (unit.h) and fuzz.h make them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct unit_group {
    const char *name; /* path of its source, or another one in that place */
    size_t n_tests;
    const char *(*test_name)(const struct unit_group *g, size_t i);
    /* Whether test i passes. The group is set up before the first, torn down after the last. */
    bool (*passes)(const struct unit_group *g, size_t i, bool first, bool last);
    const void *tests;
    int (*setup)(void **state), (*teardown)(void **state);
    /* For main.c. */
    struct unit_outcome *outcomes;
    bool again; /* this is the second attempt */
    pid_t pid;  /* 0: does not run */
    int output;
    struct unit_group *next;
};

void unit_add_group(struct unit_group *g);

/* A process that the product starts anew, of this program: with that first argument it does this.
 */
struct unit_command {
    const char *word;
    int (*run)(void);
    struct unit_command *next;
};

void unit_add_command(struct unit_command *c);

#define UNIT_COMMAND(command_word, fn)                                                             \
    __attribute__((constructor)) static void unit_add_##fn(void)                                   \
    {                                                                                              \
        static struct unit_command command = {.word = (command_word), .run = (fn)};                \
        unit_add_command(&command);                                                                \
    }
