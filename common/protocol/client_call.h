/*
 * One call on the broker's socket, on a connection of its own. It blocks, and ends with
 * ERR_CANCELLED when a descriptor hangs up (-1: none): with cancel_fd the run that this call began
 * is cancelled, with leave_fd it goes on and its result is kept.
 */
#pragma once

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/protocol/ops.h"
#include "common/protocol/run.h"

struct broker_client {
    const char *path;   /* of the broker's socket; borrowed, as is tenant */
    const char *tenant; /* whose calls these are; NULL: of no tenant, or a ticket names it */
    int cancel_fd;
    int leave_fd;
    int64_t limit_ms; /* the call ends with ERR_TIMEOUT then; 0: no limit */
    /* Called when the call begins to wait and every tick_ms from then on; may be NULL. */
    void (*tick)(void *ctx);
    void *tick_ctx;
    int tick_ms;
};

/* From now on this process connects over fd (sock_connect_over), not by path. */
void client_connect_over(int fd);
/* ERR_AWAY: there is no broker. */
int client_connect(const struct broker_client *c, struct err *e);

/* From now on this process's calls for a tenant name this section of SANDBOX_TENANTS_FILE, whose
 * limits count instead of the tenant's; borrowed; NULL: none. */
void client_use_limits(const char *section);

#define CLIENT_LONG_MS 50
/* From now on f is called once in each call of this process that lasts longer; NULL: no more. */
void client_on_long_call(void (*f)(void *ctx), void *ctx);

#define CLIENT_SIGN_MS 1000
/* From now on f is called so often while a call of this process waits; NULL: no more. */
void client_while_waiting(void (*f)(void *ctx), void *ctx);

enum broker_live_kind {
    BROKER_LIVE_STDOUT,
    BROKER_LIVE_STDERR,
    BROKER_LIVE_SKIPPED, /* bytes that were dropped because the output came too fast */
};

/* A piece of a running program's output: whole lines, or a late partial line; valid UTF-8.
 * Borrowed.
 */
struct broker_live {
    enum broker_live_kind kind;
    struct run_text text;
    uint64_t skipped;
    uint64_t next_byte; /* offset in the combined output behind this piece */
};

/* What comes with ERR_BUSY. */
struct broker_busy {
    uint64_t retry_after_ms; /* an estimate; 0: unknown */
    uint64_t position;       /* runs in the queue */
};

/* Messages before the answer; any member may be NULL. */
struct broker_callbacks {
    void (*live)(void *ctx, const struct broker_live *piece);
    void (*queued)(void *ctx, uint64_t position); /* place in the queue, from 1 */
    void *ctx;
    struct broker_busy *busy; /* set when the call fails, to zeros if the error has none */
};

struct client_call {
    const struct broker_client *client;
    const json_t *head;
    int pass_fd;            /* rides along with the head; -1: none */
    const struct buf *body; /* as it is sent (run_body.h); NULL: none */
    bool cancel_on_hang_up; /* send {"cancel":true}, so that the broker ends what this call began */
    const struct broker_callbacks *callbacks; /* may be NULL */
    struct fds *out_fds; /* descriptors that ride along with the answer; NULL: none are accepted */
};

/* Adds the section of client_use_limits to a head that names a tenant. */
void client_head_add_limits(json_t *head);
/* A request's head with the client's tenant, and that section; format and members are
 * op_head_new's. */
json_t *client_head_new(const struct broker_client *c, enum broker_op op, const char *format, ...);

/* The answer's result (new reference), or NULL. ERR_LOST: the process that carried out the
 * operation ended without an answer. */
json_t *client_call(const struct client_call *call, struct err *e);

/* A request in one message without descriptors; the head is client_head_new's. */
json_t *client_ask(const struct broker_client *c, struct err *e, enum broker_op op,
                   const char *format, ...);
/* The same with a head, which it takes; pass_fd -1: none. *out_fd is the answer's descriptor, -1:
 * it has none; NULL: it must have none. */
json_t *client_ask_with_fd(const struct broker_client *c, json_t *take_head, int pass_fd,
                           int *out_fd, struct err *e);
