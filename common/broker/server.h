/*
 * The broker: the one process that may touch the engine and the sandbox tree.
 *
 * broker_serve is its main loop. It never blocks on the engine: each connection is handled by a
 * forked child that reads top to bottom (job.c), and engine housekeeping (discovery of runner
 * images, reaping of left-over containers) is done by one long-lived child, the housekeeper
 * (housekeeper.c). A run therefore outlives the broker that started it.
 */
#pragma once

#include "common/base/err.h"
#include "common/scheduler/broker_config.h"

/*
 * Serves on listen_fd, and what each sender hands over (sock_accept_over) through its conns[enum
 * op_sender] (-1: none; conns NULL: no sender), until SIGTERM or SIGINT, then takes no more
 * connections, lets the running jobs end, closes persistent sandboxes, and returns 0. SIGHUP: the
 * same, but another broker takes over and the sandboxes stay. -1: it could not start (the sandbox
 * root is unusable); *e says what to change. The caller has blocked no signals.
 */
int broker_serve(const struct broker_config *config, int listen_fd, const int *conns,
                 struct err *e);
