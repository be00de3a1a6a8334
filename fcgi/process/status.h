/* How the running server is: what "sandcgi status" prints. */
#ifndef SANDCGI_FCGI_PROCESS_STATUS_H
#define SANDCGI_FCGI_PROCESS_STATUS_H

#include "common/base/buf.h"
#include "fcgi/settings.h"

#include <jansson.h>
#include <stdbool.h>

/*
 * Asks the broker of s and writes its answer to standard output, as JSON or for people. Returns the
 * exit status: 1 when nobody answers, which is said in one line on standard error.
 */
int status_show(const struct settings *s, bool as_json);

/* The answer for people; what is missing in it counts as 0. */
void status_format(const json_t *status, struct buf *out);

#endif
