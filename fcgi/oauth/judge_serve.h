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

#include "common/base/buf.h"
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

#define JUDGE_TEXT_MAX 320

/* What that process says about a token. */
struct judge_verdict {
    bool good;
    char text[JUDGE_TEXT_MAX]; /* the row, or the reason */
    struct err why;            /* ERR_NONE: it has answered */
};

/* A question that is under way, for a process that must not wait. */
struct judge_question {
    int fd; /* readable when there is more of the answer; -1: the verdict is there */
    struct buf answer;
    struct judge_verdict verdict;
};

/* over and path: as for judge_ask. A failure is a verdict, too. */
void judge_question_begin(struct judge_question *q, int over, const char *path,
                          const char *authorization);
/* Reads what has come. true: the verdict is there. */
bool judge_question_go_on(struct judge_question *q);
/* Its time is over. */
void judge_question_give_up(struct judge_question *q);
void judge_question_clear(struct judge_question *q);

/* Asks that process about "Bearer TOKEN": over a pair of sockets (over; sock_connect_over), or
 * without one (-1) at path. */
void judge_ask(int over, const char *path, int64_t limit_ms, const char *authorization,
               struct judge_verdict *out);
