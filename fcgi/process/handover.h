/* What a guard hands to the program that it becomes (exec), in the environment: processes and
 * descriptors by name, "master=17 old=9 fastcgi=4 …". A name that is not known is of another
 * version. */
#pragma once

#include "fcgi/process/sockets.h"

#define OLD_MAX 32 /* masters of earlier generations; the next reload waits for their end */

struct handover {
    pid_t master;       /* 0: none runs */
    pid_t old[OLD_MAX]; /* masters of earlier generations, which end when their calls have ended */
    size_t n_old;
    struct server_sockets sockets;
    pid_t asked_pid; /* who sent the last signal or order; 0: not known */
    uid_t asked_uid;
    bool draining;  /* sandcgi drain: that waits while settings are reloaded */
    int metrics_fd; /* of the program before; -1: none */
    int lock_fd;    /* of SANDBOX_ROOT; -1: not locked */
    int order_fd;   /* of the order that waits for the outcome (control.h); -1: none */
};

#define HANDOVER_INIT                                                                              \
    ((struct handover){                                                                            \
        .sockets = SERVER_SOCKETS_INIT, .metrics_fd = -1, .lock_fd = -1, .order_fd = -1})

/* Adds a master to those of earlier generations. */
void handover_add_old(struct handover *h, pid_t pid);

/* Takes what the program before has left, before the settings are read, which refuse an unknown
 * name. */
void handover_take(struct handover *h);

/* Executes program with "serve" and the settings file (NULL: none). Returns only when that fails,
 * with everything as before. */
int handover_exec(const struct handover *h, const char *program, const char *config_path,
                  struct err *e);
