/* The programs of the commands and of the server's processes; each runs until it is asked to stop,
 * or its work is done. */
#pragma once

#include "common/base/buf.h"
#include "common/broker/server.h"
#include "fcgi/app.h"
#include "fcgi/process/resources.h"

#include <limits.h>

/*
 * The guard, which is the process of `sandcgi serve`: opens the sockets and starts a master,
 * another one when that is killed. config_path: NULL: the environment alone. Returns the exit
 * status.
 *
 *   SIGTERM, SIGINT   stop: passed on to the master (master.h)
 *   SIGHUP            has the program at its path look at the settings, and becomes that program:
 * it starts a new generation of processes on the same sockets, or on others if the settings say so.
 * A complaint is logged, and nothing has changed.
 *   SIGURG            the server is to end soon (drain_run); a reload takes it back
 */
int serve_run(const char *config_path);

/* A worker: serves one request at a time from listen_fd (FastCGI, non-blocking, shared) until
 * SIGTERM, and then, if the server ends, those in the queue. Returns 0, or -1 when the socket is
 * unusable. */
int fastcgi_serve(const struct app *app, int listen_fd, struct err *e);

/*
 * The hub: holds the long-lived streams (GET /mcp, subscriptions/listen, replays), so that they
 * occupy no worker. Its loop never blocks: short-lived children (hub_jobs.c) ask the broker. Serves
 * listen_fd (FastCGI, non-blocking) and events_fds (events.h) until SIGTERM, then ends every stream
 * in order. Returns 0, or -1 when a socket is unusable.
 */
#define HUB_EVENTS 2 /* sockets: events.sock, and one end of a pair, the workers' */
int hub_serve(const struct app *app, int listen_fd, const int events_fds[HUB_EVENTS],
              struct err *e);

/* The process that answers SANDCGI_METRICS (Prometheus): with the workers' rights, as it parses
 * what any account of this machine sends. Serves listen_fd until SIGTERM. calls: the workers', and
 * how many there may be; conns_fd: see sock_connect_over. */
int metrics_main(const struct settings *s, const struct account *workers,
                 const struct call_place *calls, int listen_fd, int conns_fd, struct err *e);

/* CGI (RFC 3875): one request from the environment and standard input. */
void cgi_serve(const struct app *app);

/* The stdio transport of MCP: one JSON-RPC message per line, until the end of standard input.
 * events_fd: the socket of events.h; -1: none. Returns 0, or -1 when input or output fails. */
int stdio_serve(const struct app *app, int events_fd, struct err *e);

/*
 * "sandcgi setup": becomes the script of nginx/ that puts the server into an existing nginx. It
 * lies beside the build folder, or is installed. words follow "setup" and end with NULL. Returns 1,
 * with one line on standard error, when there is no such script.
 */
int setup_run(char *const *words);
/* Path of this program, as it was named at the start. False when the kernel does not tell. */
bool program_find(char out[PATH_MAX]);
/* The path of a script ("nginx/…") of the tree that this program was built in, or else of the
 * installed one. Caller frees. */
char *script_find(const char *name);

/*
 * "sandcgi backup", "restore" and "purge" (sandcgi(1)), as root, which then becomes the owner of
 * SANDBOX_ROOT, or as that account. Return the exit status; what was done and what was left goes to
 * standard error, what purge removes to output.
 */
struct backup_words {
    const char *file;                               /* "-": standard output or input */
    const char *tenant, *conversation, *older_than; /* NULL: any */
    bool replace, skip_existing, yes, dry_run;
};
int backup_run(const char *config_path, const struct backup_words *w);
int restore_run(const char *config_path, const struct backup_words *w);
int purge_run(const char *config_path, const struct backup_words *w);

/*
 * "sandcgi token add|list|revoke": changes SANDCGI_TOKENS_FILE, or that of --file, in one step, and
 * has nginx read it. words follow "token" and end with NULL. Returns the exit status: 1 nothing
 * has changed, 2 wrong words, 3 it has, but nginx could not be told.
 */
int token_run(char *const *words);

/*
 * "sandcgi drain": tells the server that it is to end soon, so that /readyz answers 503; waits
 * until no program runs, wait_ms at most; ends it, and waits until it has ended. Returns the exit
 * status, with one line on standard error when it is 1.
 */
int drain_run(const struct settings *s, uint64_t wait_ms);

/*
 * "sandcgi reload", "restart" and "stop": orders to the server of that settings file, and the wait
 * for the outcome (control.h). wait: a time, how long a reload may take, or how long programs may
 * run on after a stop; NULL: the default, or until they end. "sandcgi logs" becomes the program
 * that shows the log's last lines; follow: and those that come. Each returns the exit status, with
 * one line on standard error when it is not 0.
 */
int reload_run(const char *config_path, const char *wait);
int restart_run(const char *config_path);
int stop_run(const char *config_path, const char *wait);
int logs_run(const char *config_path, const char *lines, bool follow);

/* "sandcgi nodes": writes the edge's list of nodes when it has changed. words follow "nodes" and
 * end with NULL. Returns the exit status: 1 it could not be done, 2 wrong words. */
int nodes_run(char *const *words);

/* "sandcgi oauth passphrase": words follow "oauth" and end with NULL. Returns the exit status. */
int oauth_run(char *const *words);

/* Prints what is wrong with the server, its engine, disk, clock and site, and what mends it; quiet:
 * only what is wrong. nginx_folder is where render.sh has put nginx's files; NULL: the default of
 * setup, if it is there. Returns the exit status: 1 when something is wrong. */
int doctor_show(const struct settings *s, const char *config_path, const char *nginx_folder,
                bool as_json, bool quiet);
/* The same for settings that cannot be loaded. */
int doctor_show_error(const struct err *e, bool as_json);

/* "sandcgi prove": runs programs that mean harm on the running server, in a conversation of their
 * own, and prints which walls around programs hold; quiet: only what is missing or could not be
 * tried. Returns the exit status: 0 all hold. */
#define PROVE_MISSING 1
#define PROVE_UNTRIED 2
int prove_run(const struct settings *s, bool quiet);

/* Prints the server's status, as JSON or for people; watch: every two seconds, until a signal.
 * Returns the exit status: 1 when the broker does not answer, with one line on standard error,
 * which names config_path (NULL: none); STATUS_NO_ENGINE: no program can run. */
#define STATUS_NO_ENGINE 3
int status_show(const struct settings *s, const char *config_path, bool as_json, bool watch);
/* The server's guard, which has opened that socket (the broker's, or that of orders). -1: there is
 * none, or it runs in another container, where processes have other numbers. */
pid_t guard_find(const char *socket, struct err *e);
/* The status for people; missing values count as 0. */
void status_format(const json_t *status, struct buf *out);

/* The broker's configuration, borrowed from s. client_uid may connect besides the broker's own. */
struct broker_config broker_config_of(const struct settings *s, uid_t client_uid);

/*
 * CGI and stdio need a broker, too: the one at SANDCGI_BROKER, else a private one, which ends with
 * this process (also when it is killed). Sets s->broker and, for a private one, s->events. http:
 * its log is ours until private_broker_let_go.
 */
int private_broker_ensure(struct settings *s, bool http, struct err *e);
/* Was a private one started? */
bool private_broker_is_ours(void);
/* For CGI, when the answer is there: the web server may end it, whatever still has to be tidied up.
 */
void private_broker_let_go(void);
/* Ends the private one, if there is one, after its jobs, and removes its socket. */
void private_broker_end(void);
