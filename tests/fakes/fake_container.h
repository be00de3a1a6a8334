/*
 * A container engine in this process's memory, for tests of what stands above struct engine. It
 * takes docker_engine_new's place at the link, as fake_psandbox.h does: the last reset counts. Its
 * programs are lists of words, one per line: out TEXT, err TEXT   print a line        raw TEXT
 * print without its end bytes HEX            print bytes         flood N    print N KiB of lines
 *   sleep MS   exit N    file NAME           stdin      print what came in
 *   load                 libraries that it needs are loaded, and it is held
 *   load forever         that does not end
 *   await                go on when the test has counted goes up
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FAKE_CONTAINER_MEMORY 5000000 /* what a warm container reports */

/* What a killed program has used. */
#define FAKE_KILLED_CPU_US 7000
#define FAKE_KILLED_MEMORY 4096

/* Shared by the processes that are forked after fake_container_reset. */
struct fake_container {
    int start_ms;       /* how long a start takes */
    int failing;        /* so many starts fail */
    int gone_at_run;    /* so many containers turn out to be gone when they get their program */
    int dies_after_ms;  /* a waiting container ends after this; 0: never */
    bool boots;         /* the interpreter of a container that is up does not say that it waits */
    bool paces;         /* the engine cannot change a container's limits */
    int failing_limits; /* so many changes of the limits are not answered */
    bool loads;         /* a preload does not end */
    int doubts;         /* so many wipes fail */
    int wipe_ms;        /* how long one takes */
    uint64_t cpu_milli; /* the limit of the container that was started last */
    uint64_t load_cpu_milli,
        run_cpu_milli; /* what it was at the last load, when the last run began */
    int goes;          /* so many programs go on that await it */
    int starts, alive, preloads, runs, wipes;
    char data_path[512]; /* of the last start */
    char load[64];       /* of the last run */
    char language[32];   /* of the last run, as it was told; "": it was not */
};

extern struct fake_container *fake_container;
extern struct engine *(*fake_container_new)(void);

void fake_container_reset(void);
