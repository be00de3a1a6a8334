/* Answers one connection from a process that must not wait: the only or last message on it. */
#ifndef SANDCGI_PROTOCOL_REPLY_H
#define SANDCGI_PROTOCOL_REPLY_H

#include "common/base/err.h"

#include <jansson.h>

/* Sends the message and closes the connection; takes both. A caller that has left is logged. */
void reply_send(int take_fd, json_t *take_reply);
/* The same with {"error": …}. */
void reply_send_error(int take_fd, const struct err *why);

#endif
