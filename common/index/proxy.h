/*
 * The proxy between an installation's container and the package index: a process of its own behind
 * a Unix socket, which allows CONNECT to the hosts of one language's index and nothing else. It may
 * only open connections, uses a process per connection, and bounds everything.
 */
#ifndef SANDCGI_INDEX_PROXY_H
#define SANDCGI_INDEX_PROXY_H

#include "common/index/tunnel.h"

#include <sys/types.h>

#define INDEX_TUNNELS_MAX 32 /* at once; more wait */
#define INDEX_DOWN_MAX    (1024ll * 1024 * 1024)
#define INDEX_UP_MAX      (16ll * 1024 * 1024)

#define INDEX_PROXY_COMMAND "index-proxy"

/*
 * Starts it: this very program anew as "index-proxy", so that no secret of the caller's is in its
 * memory. It serves listen_fd (the caller's own copy is to be closed) until the caller dies or
 * kills it (SIGKILL), and everything it made dies with it. rules are copied. Returns its pid, to be
 * reaped by the caller, or -1.
 */
pid_t index_proxy_start(int listen_fd, const struct index_rules *rules, struct err *e);

/* That program; returns its exit status, and only when it cannot begin. */
int index_proxy_main(void);

#endif
