/*
 * The master: starts one broker, the hub and the workers, restarts a child that dies (at once if it
 * ran for a while, else after growing pauses), keeps SANDCGI_WORKERS workers free, and ends all in
 * order. The guard (serve_run) starts a master for each generation of processes.
 */
#pragma once

#include "fcgi/process/sockets.h"

struct master_config {
    struct settings *settings;
    struct account workers;
    const struct server_sockets *sockets;
    int sessions_fd;
    int oauth_fd;  /* folder of the authorization server; -1: there is none */
    int signal_fd; /* of SIGCHLD, SIGTERM, SIGINT, SIGHUP and SIGURG (signalfd) */
    bool draining; /* from the start */
    sigset_t mask; /* of the children */
};

/*
 * Returns when it has been asked to end and its children have ended:
 *
 *   SIGTERM, SIGINT   the server ends: connection attempts fail, the connections in the queue are
 *                     served, the broker waits for its runs; a second signal kills all processes
 *   SIGHUP            another master follows on the same sockets: workers answer the calls that
 *                     they have, the broker leaves its runs to the next one
 *   SIGURG            the server is to end soon: /readyz answers 503, all else is served
 */
void master_run(const struct master_config *config);
