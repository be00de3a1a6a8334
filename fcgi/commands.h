/* The programs of the commands and of the server's processes; each runs until it is asked to stop,
 * or its work is done. */
#pragma once

#include "common/base/buf.h"
#include "common/broker/server.h"
#include "fcgi/app.h"

/*
 * The master: opens the sockets, starts one broker, the hub and the workers, restarts a child that
 * dies (at once if it ran for a while, else after growing pauses), and ends them in order.
 *
 *   SIGTERM, SIGINT   drain: workers finish their request, the broker its runs, then everything
 *                     ends; a second signal kills all processes
 *   SIGHUP            reload the settings; a new generation of processes takes over, the old one
 *                     drains
 *
 * guarded: this process keeps the sockets, passes the signals on, and starts another master when
 * one is killed. take_settings is owned by the master. config_path: the file for SIGHUP (NULL:
 * none). Returns the exit status.
 */
int master_run(struct settings *take_settings, const char *config_path, bool guarded);

/* A worker: serves one request at a time from listen_fd (FastCGI, non-blocking, shared) until
 * SIGTERM. Returns 0, or -1 when the socket is unusable. */
int fastcgi_serve(const struct app *app, int listen_fd, struct err *e);

/*
 * The hub: holds the long-lived streams (GET /mcp, subscriptions/listen, replays), so that they
 * occupy no worker. Its loop never blocks: short-lived children (hub_jobs.c) ask the broker. Serves
 * listen_fd (FastCGI, non-blocking) and events_fds (events.h) until SIGTERM, then ends every stream
 * in order. Returns 0, or -1 when a socket is unusable.
 */
#define HUB_EVENTS 2 /* sockets: SANDCGI_EVENTS, and one end of a pair, the workers' */
int hub_serve(const struct app *app, int listen_fd, const int events_fds[HUB_EVENTS],
              struct err *e);

/* CGI (RFC 3875): one request from the environment and standard input. */
void cgi_serve(const struct app *app);

/* The stdio transport of MCP: one JSON-RPC message per line, until the end of standard input.
 * events_fd: the socket of events.h; -1: none. Returns 0, or -1 when input or output fails. */
int stdio_serve(const struct app *app, int events_fd, struct err *e);

/* Prints the server's status, as JSON or for people. Returns the exit status: 1 when the broker
 * does not answer, with one line on standard error. */
int status_show(const struct settings *s, bool as_json);
/* The status for people; missing values count as 0. */
void status_format(const json_t *status, struct buf *out);

/* The broker's configuration, borrowed from s. client_uid may connect besides the broker's own. */
struct broker_config broker_config_of(const struct settings *s, uid_t client_uid);

/*
 * CGI and stdio need a broker, too: the one at SANDCGI_BROKER, else a private one, which ends with
 * this process (also when it is killed). Sets s->broker and, for a private one, s->events.
 */
int private_broker_ensure(struct settings *s, struct err *e);
/* Was a private one started? */
bool private_broker_is_ours(void);
/* Ends the private one, if there is one, after its jobs, and removes its socket. */
void private_broker_end(void);
