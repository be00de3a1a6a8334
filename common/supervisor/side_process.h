/*
 * A child process that works something out while the loop goes on, and writes the result to a pipe.
 * It dies with its parent.
 */
#pragma once

#include "common/base/loop.h"

#include <sys/types.h>

struct side_process {
    pid_t pid; /* 0: none */
    int fd;    /* to read from, without blocking */
    struct loop *loop;
    struct loop_watch watch;
};

/* As fork: in the child 0, and *out_fd is to be written to. In the parent on_ready is called with
 * item when something is there. */
pid_t side_process_fork(struct side_process *p, struct loop *loop, loop_handler *on_ready,
                        void *item, int *out_fd, struct err *e);
/* Kills it, if there is one. */
void side_process_end(struct side_process *p);
