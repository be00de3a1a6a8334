/*
 * Orders to the guard, on a Unix socket beside the broker's: one connection for each, messages as
 * those of sock.h. The order is a word of order_names. The guard answers "note TEXT" any number of
 * times, then "done" or "refused TEXT"; one that stops ends the connection with itself.
 */
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <sys/types.h>

enum order { ORDER_NONE, ORDER_RELOAD, ORDER_RESTART, ORDER_STOP, ORDER_STOP_NOW, N_ORDERS };

extern const char *const order_names[N_ORDERS];

#define CONTROL_NOTE    "note "
#define CONTROL_DONE    "done"
#define CONTROL_REFUSED "refused "

/* The socket's path, by the broker's; caller frees. */
char *control_path(const char *broker);

/* Takes one order. Root and this account may give any; others are refused, as is a connection that
 * does not tell its order within a second. *out_fd waits for the answer; the others say who gave
 * it. ORDER_NONE: there is none. */
enum order control_take(int listen_fd, int *out_fd, pid_t *out_pid, uid_t *out_uid);

/* Neither waits. fd -1: nothing happens. The last one closes *fd; wrong NULL: it is done. */
void control_note(int fd, const char *text);
void control_answer(int *fd, const struct err *wrong);
