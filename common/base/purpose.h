/*
 * What processor time and memory are used for: by programs and what prepares their containers, and
 * by each kind of process of the server. A process says once what it is; ps(1) shows it, and its
 * processor time counts as that in the metrics.
 */
#pragma once

#include <stdint.h>

enum purpose {
    /* of containers */
    PURPOSE_RUN,     /* programs */
    PURPOSE_START,   /* from a container's start until its interpreter is up */
    PURPOSE_LOAD,    /* libraries, before the first program */
    PURPOSE_WIPE,    /* between two programs: the removal of what is left, the next interpreter */
    PURPOSE_SANDBOX, /* persistent sandboxes */
    PURPOSE_WAITING, /* of memory: containers without a program */
    PURPOSE_OTHER,   /* of memory: containers of tests of the engine, and orphans */
    /* of processes */
    PURPOSE_MASTER, /* and the guard */
    PURPOSE_WORKER,
    PURPOSE_HUB,
    PURPOSE_OAUTH,
    PURPOSE_METRICS,
    PURPOSE_BROKER,
    PURPOSE_HELPER, /* housekeeper, retention, trash, saver, reading back */
    PURPOSE_JOB,
    PURPOSE_SUPERVISOR,
    PURPOSE_COUNT
};

const char *purpose_name(enum purpose purpose);
/* Of a process by its name in /proc (comm); PURPOSE_COUNT: it is none of ours. */
enum purpose purpose_of_process(const char *comm);

/* This process is for that, until it says otherwise. What it forks is for nothing until it says. */
void purpose_set(enum purpose purpose);
/* Counts the processor time that this process has used since it counted last. To be called before
 * it waits; it takes a microsecond at most, and nothing without metrics. */
void purpose_count(void);
/* Before its end: also what the children have used that it has waited for. They count nothing
 * themselves. */
void purpose_count_end(void);
/* Counts time that something else has used. */
void purpose_add_cpu(enum purpose purpose, uint64_t us);
