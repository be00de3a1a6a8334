/* The engine layer against a real engine: what the cases share. */
#pragma once

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/engine/engine.h"
#include "common/protocol/entry_record.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define IMAGE  "sandcgi-runner-workbench:latest"
#define BASH   "bash" /* languages of it */
#define PYTHON "python"
#define PLAIN  "engine-live-plain:test"
#define KEEP   ((size_t)8 << 20)

extern struct engine_address address;
extern char instance[32];
extern char data_path[64];
extern int failures; /* of the case */
extern bool podman;  /* some things it does not tell or take */

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            note("line %d: %s", __LINE__, #what);                                                  \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

/* A line below that of the case. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One run: what is asked, then what came. */
struct live_run {
    struct engine_spec spec;
    struct engine_command program;
    struct buf streams; /* its code and input */
    char run_id[32];
    int cancel_fd;
    uint64_t stop_at; /* bytes of output; 0: never */

    int returned;
    struct engine_outcome out;
    struct err e;
    struct buf text[2]; /* the first KEEP bytes */
    uint64_t total;
    int64_t whole_ms;
};

/* A table of cases, ends with name NULL. */
struct live_case {
    const char *name;
    void (*run)(void);
};

extern const struct live_case run_cases[], waiting_cases[], psandbox_cases[];

/* In a language of IMAGE, or in the image PLAIN. */
struct live_run live(const char *what, const char *code);
/* Its standard input. */
void live_input(struct live_run *l, const char *text);
void live_clear(struct live_run *l);
/* Starts and runs l to its end, and sees to it that nothing is left. */
void go(struct live_run *l);
/* Gives l a run id that no other has. */
void name_run(struct live_run *l);
/* The sink of l. */
bool live_take(void *ctx, enum engine_stream stream, const char *data, size_t len);

struct engine *connect_engine(void);
/* For reap: takes every container, none. */
bool everything(void *ctx, const char *run_id, int64_t deadline);
bool nothing(void *ctx, const char *run_id, int64_t deadline);
/* How many containers of that instance the engine still has. */
size_t left_over(const char *of);
/* Whether ours are removed; a removal that another client began may take a moment. */
bool all_gone(void);
