/* A parent that starts its child again when that is killed. */
#pragma once

struct guard {
    int signal_fd;              /* of SIGCHLD and the signals that are passed on (signalfd) */
    void (*life)(void *ctx);    /* of the child, which dies with its parent (SIGTERM) */
    void (*prepare)(void *ctx); /* before a child is started again; in the parent */
    void *ctx;
};

/* Returns the exit status: in the child after its life, in the parent after the end of a child that
 * was asked to end (SIGTERM, SIGINT) or ended well. */
int guard_main(const struct guard *g);
