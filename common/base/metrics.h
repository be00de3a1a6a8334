/*
 * Counts of what happens, in memory that the processes of a server share, and their form for
 * Prometheus. The process that does something counts it; without metrics_open (CGI, stdio, tests)
 * counting does nothing. No locks: a number is one atomic word.
 *
 * There are two parts: what workers and hub can write, which parse what clients send, and what only
 * the broker and its children can. Labels are read with suspicion: the writer may be hostile.
 */
#pragma once

#include "common/base/buf.h"

#include <stdint.h>

enum metric {
    /* of the broker and its children */
    METRIC_RUNS,         /* language, status */
    METRIC_TENANT_RUNS,  /* tenant: a hash */
    METRIC_CONTAINERS,   /* of runs: kind */
    METRIC_ENGINE_CALLS, /* result */
    METRIC_LOG_LINES,    /* level */
    METRIC_STARTED,      /* Unix seconds */
    METRIC_STARTED_BOOT, /* clock_boot_s then */
    METRIC_DISK_USED,    /* bytes of files and kept results */
    METRIC_CONVERSATIONS,
    METRIC_STORE_FILES, /* saved, as the next */
    METRIC_STORE_BYTES,
    METRIC_STORE_ERRORS, /* of saving */
    METRIC_STORE_LOADS,  /* result */
    /* of all */
    METRIC_CPU, /* microseconds; purpose (purpose.h) */
    /* of workers and hub */
    METRIC_REQUESTS,       /* route, outcome */
    METRIC_BYTES_RECEIVED, /* route */
    METRIC_BYTES_SENT,
    METRIC_STREAMS,
    METRIC_COUNT
};

enum metric_times { METRIC_QUEUE, METRIC_START, METRIC_RUN, METRIC_TOTAL, METRIC_TIMES };

enum metrics_part { METRICS_BACK, METRICS_FRONT, METRICS_PARTS };

/* Makes the memory, for this process and all that it forks; again: does nothing. This process
 * counts in METRICS_BACK. take_fd: of metrics_fd, to go on with what the program before this one
 * has counted, if it counts the same; -1: none. */
void metrics_open(int take_fd);
/* The memory as a descriptor, to be closed before another program; -1: there is none. A process
 * that has it reaches both parts, so those that are forked close it with metrics_close_fd. */
int metrics_fd(void);
void metrics_close_fd(void);
/* From now on this process and its children reach that part only. */
void metrics_enter(enum metrics_part part);

/* From now on this process only reads, of both parts. */
void metrics_read_only(void);

/* Does what this process counts go anywhere? */
bool metrics_are_counted(void);

/* labels: name="value" pairs, separated by commas, as metrics_label makes them; "": none. Beyond a
 * bound, series are counted as one with the value "other". n may be 0: the series is written from
 * then on. */
void metrics_add(enum metric metric, const char *labels, uint64_t n);
/* Of a metric without labels. */
void metrics_set(enum metric metric, uint64_t value);
uint64_t metrics_get(enum metric metric);
void metrics_observe(enum metric_times times, int64_t ms);
/* Appends name="value", after a comma unless out is empty; value is made harmless. */
void metrics_label(struct buf *out, const char *name, const char *value);

/* Everything counted so far, as Prometheus' text format 0.0.4. */
void metrics_write(struct buf *out);
/* One more family, for numbers that are asked elsewhere: its head, then each of its numbers; labels
 * as for metrics_add. */
void metrics_write_head(struct buf *out, const char *name, const char *type, const char *help);
void metrics_write_number(struct buf *out, const char *name, const char *labels, double value);
/* The same at once, of one without labels. */
void metrics_write_one(struct buf *out, const char *name, const char *type, const char *help,
                       double value);
