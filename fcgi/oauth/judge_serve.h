/*
 * The process that judges access tokens: the one decision for nginx, which asks on
 * judge.sock with each call, and for workers that check tokens themselves. It has the
 * workers' rights and may connect to the issuer; it opens no file but those of builtin.
 *
 * A question is a FastCGI request with HTTP_AUTHORIZATION; its connection may be kept. The answer
 * is 204 with Sandcgi-Row ("TENANT SCOPES", and perhaps a section of limits) and Sandcgi-Mark (MD5
 * of the token, base64url), or 401 with Sandcgi-Fault, the reason. X-Accel-Expires says for how
 * many seconds nginx may keep it.
 */
#pragma once

#include "common/base/err.h"
#include "fcgi/process/resources.h"

#define JUDGE_ROW   "Sandcgi-Row: "
#define JUDGE_MARK  "Sandcgi-Mark: "
#define JUDGE_FAULT "Sandcgi-Fault: "

/* What the process needs that only the server's account can open. */
struct judge_secrets {
    int state_fd; /* public folder of builtin; -1: none */
    char *client; /* "ID:SECRET"; NULL: none */
};

/* Opens and reads it, and makes the folder of builtin, SANDBOX_ROOT/.oauth/public, for the workers'
 * account. Clear it with judge_secrets_clear, also after a failure. */
int judge_secrets_open(const struct settings *s, const struct account *workers,
                       struct judge_secrets *out, struct err *e);
void judge_secrets_clear(struct judge_secrets *secrets);

/* Serves listen_fd, and the connections that come over asks_fd (sock_accept_over), until SIGTERM.
 * The process has given up its rights. */
int judge_serve(const struct settings *s, const struct judge_secrets *secrets, int listen_fd,
                int asks_fd, struct err *e);

/* The process: gives up its rights and serves. */
int judge_main(const struct settings *s, const struct account *workers, int listen_fd, int asks_fd,
               struct err *e);

/*
 * Asks that process about "Bearer TOKEN": over a pair of sockets (over; sock_connect_over), or
 * without one (-1) at path. *out_good; text: the row or the reason. -1: it does not answer.
 */
int judge_ask(int over, const char *path, int64_t limit_ms, const char *authorization,
              bool *out_good, char *text, size_t size, struct err *e);
